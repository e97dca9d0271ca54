"""Published accuracies of eight methods on three backbones, 5-way (Table 6) and 10-way (Table 7).

From "MetaCoCo: A New Few-Shot Classification Benchmark with Spurious Correlation" (ICLR 2024). Values are fractions of
1; half widths are those of 95 % intervals. The nine rows that Table 2 has too agree with it.

Kept as printed: one-shot Versa answers by chance (Conv64F 5-way, and 10-way everywhere), and so does ANIL with ResNet18
10-way; the half width of 10-way 5-shot DN4 with ResNet18 is three times that of its neighbours.

>>> TABLE_7[0].method, TABLE_7[0].ways, TABLE_7[0].five_shot
('Versa', 10, Accuracy(value=0.3688, half_width=0.0021))
"""

from __future__ import annotations

from hardlook.benchmarks.metacoco.published import PublishedRow, accuracy

# Method, backbone, type; then 5-way and 10-way: 1-shot, its half width, 5-shot, its half width, in percent.
# fmt: off
_ROWS = (
    ("Versa", "Conv64F", "Meta", (20.00, 0.00, 51.95, 0.35), (10.00, 0.00, 36.88, 0.21)),
    ("R2D2", "Conv64F", "Meta", (39.56, 0.36, 51.29, 0.36), (24.80, 0.20, 35.98, 0.21)),
    ("ANIL", "Conv64F", "Meta", (37.24, 0.36, 48.04, 0.39), (22.39, 0.19, 33.05, 0.22)),
    ("CAN", "Conv64F", "Metric", (43.02, 0.42, 55.48, 0.40), (28.19, 0.23, 39.06, 0.23)),
    ("ProtoNet", "Conv64F", "Metric", (37.92, 0.35, 51.39, 0.38), (23.72, 0.19, 35.49, 0.22)),
    ("DN4", "Conv64F", "Metric", (38.87, 0.36, 52.72, 0.38), (26.26, 0.21, 37.54, 0.22)),
    ("Baseline", "Conv64F", "Fine-tuning", (37.97, 0.32, 52.08, 0.35), (23.71, 0.18, 35.70, 0.21)),
    ("Baseline++", "Conv64F", "Fine-tuning", (40.45, 0.36, 53.42, 0.37), (25.55, 0.20, 36.34, 0.21)),
    ("Versa", "ResNet12", "Meta", (39.64, 0.39, 53.06, 0.40), (10.00, 0.00, 40.21, 0.22)),
    ("R2D2", "ResNet12", "Meta", (45.25, 0.42, 60.14, 0.37), (31.16, 0.23, 42.10, 0.22)),
    ("ANIL", "ResNet12", "Meta", (36.58, 0.38, 50.54, 0.40), (22.94, 0.20, 33.77, 0.22)),
    ("CAN", "ResNet12", "Metric", (48.93, 0.42, 62.36, 0.40), (31.92, 0.24, 44.78, 0.23)),
    ("ProtoNet", "ResNet12", "Metric", (42.69, 0.39, 59.50, 0.40), (29.59, 0.22, 42.38, 0.24)),
    ("DN4", "ResNet12", "Metric", (45.04, 0.39, 57.68, 0.39), (30.69, 0.22, 40.31, 0.21)),
    ("Baseline", "ResNet12", "Fine-tuning", (46.78, 0.41, 60.78, 0.40), (31.88, 0.24, 43.40, 0.23)),
    ("Baseline++", "ResNet12", "Fine-tuning", (46.95, 0.42, 58.50, 0.36), (31.01, 0.23, 39.89, 0.21)),
    ("Versa", "ResNet18", "Meta", (38.88, 0.36, 53.18, 0.36), (10.00, 0.00, 36.51, 0.21)),
    ("R2D2", "ResNet18", "Meta", (45.26, 0.38, 58.53, 0.38), (29.73, 0.22, 39.74, 0.21)),
    ("ANIL", "ResNet18", "Meta", (37.26, 0.36, 49.42, 0.39), (10.47, 0.10, 33.83, 0.23)),
    ("CAN", "ResNet18", "Metric", (48.18, 0.42, 62.38, 0.41), (33.16, 0.25, 43.47, 0.23)),
    ("ProtoNet", "ResNet18", "Metric", (43.14, 0.37, 57.84, 0.39), (29.34, 0.22, 41.34, 0.22)),
    ("DN4", "ResNet18", "Metric", (43.73, 0.38, 56.56, 0.39), (29.05, 0.21, 30.12, 0.78)),
    ("Baseline", "ResNet18", "Fine-tuning", (46.49, 0.41, 60.22, 0.39), (33.12, 0.25, 44.63, 0.24)),
    ("Baseline++", "ResNet18", "Fine-tuning", (47.26, 0.40, 60.10, 0.38), (32.19, 0.23, 43.32, 0.22)),
)
# fmt: on


def _table(table: int, ways: int) -> tuple[PublishedRow, ...]:
    rows = []
    for method, backbone, kind, five_way, ten_way in _ROWS:
        one, one_half, five, five_half = five_way if ways == 5 else ten_way
        rows.append(
            PublishedRow(table, method, kind, ways, accuracy(one, one_half), accuracy(five, five_half), backbone)
        )
    return tuple(rows)


TABLE_6 = _table(6, 5)
TABLE_7 = _table(7, 10)
