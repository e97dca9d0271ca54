"""The tables of the TOSS paper, whole and as printed; those of its supplement are in `printed_supplement`.

From "What Ails One-Shot Image Segmentation: A Data Perspective" (NeurIPS 2022 D&B). Folds are 1 to 4, as printed.

>>> [table.name for table in printed_tables()][:4]
['table-1', 'table-2a', 'table-2b', 'table-3']
>>> support_table().rows[2]
('null mask', 35.4, 12.9, 24.1, 24.8, 24.3)
"""

from __future__ import annotations

from hardlook.benchmarks.toss.printed_supplement import supplement_tables
from hardlook.benchmarks.toss.published import PUBLISHED, FoldResult
from hardlook.benchmarks.toss.published_biases import REMEDIES, SALIENCE, SUPPORTS
from hardlook.contract.published import PublishedCell, PublishedTable, percent

SOURCE = "What Ails One-Shot Image Segmentation: A Data Perspective, NeurIPS 2022 D&B"
FOLDS = ("fold 1", "fold 2", "fold 3", "fold 4", "mean")
SCORES = ("lca", "hca", "scs", "gs")
# In the order of Table 4, which is not that of the supplement.
_ORDER = ("Baseline", "RPMM", "PFENet", "RePRI", "HSNet")
_SHORT = {"Baseline": "Base", "RPMM": "RPMM", "PFENet": "PFENet"}
_SUPPORT_NAMES = {
    "correct": "correct support",
    "other class": "class differs",
    "null mask": "null mask",
    "null image": "null image",
    "other class, null mask": "class differs + null mask",
}


def printed_tables() -> tuple[PublishedTable, ...]:
    """Every table of the paper, then of the supplement."""
    trained = {"none": "", "leave-out": "Leaveout", "sgtss": "SGTSS"}
    return (
        _remedies("table-1", "Table 1: leave-out training and SGTSS", trained),
        support_table(),
        salience_table(),
        suppression_table(),
        _scores(),
        *supplement_tables(),
    )


def support_table() -> PublishedTable:
    """Table 2A."""
    return PublishedTable(
        "table-2a",
        "Table 2A: mIoU of the baseline under spurious supports",
        ("support", *FOLDS),
        tuple((name, *_percents(SUPPORTS[key])) for key, name in _SUPPORT_NAMES.items()),
        SOURCE,
        "Percent, PASCAL-5i. The first row is not that of Table 1.",
    )


def salience_table() -> PublishedTable:
    """Table 2B."""
    return PublishedTable(
        "table-2b",
        "Table 2B: mIoU of salient and of other targets",
        ("method", "salient", "non-salient"),
        tuple((method, percent(row.salient), percent(row.non_salient)) for method, row in SALIENCE.items()),
        SOURCE,
        "Percent. The pairs behind it are not published.",
    )


def suppression_table() -> PublishedTable:
    """Table 3."""
    return _remedies("table-3", "Table 3: saliency suppression (SSSI)", {"none, table 3": "", "sssi": "SSSI"})


def _remedies(name: str, title: str, remedies: dict[str, str]) -> PublishedTable:
    rows: list[tuple[PublishedCell, ...]] = [
        (_SHORT[method] + (f"+{word}" if word else ""), *_percents(rows[remedy]))
        for method, rows in REMEDIES.items()
        for remedy, word in remedies.items()
    ]
    note = "Percent mIoU of the fixed pairs of PASCAL-5i. Fold 1 of PFENet is 52.87 in Table 1 and 52.86 in Table 3."
    if name == "table-3":
        note += " The mean of RPMM+SSSI is not that of its folds (50.78)."
    return PublishedTable(name, title, ("method", *FOLDS), tuple(rows), SOURCE, note)


def _scores() -> PublishedTable:
    values = {row.method: row.values for row in PUBLISHED}
    return PublishedTable(
        "table-4",
        "Table 4: TOSS scores",
        ("method", *(name.upper() for name in SCORES)),
        tuple((method, *(percent(values[method][name]) for name in SCORES)) for method in _ORDER),
        SOURCE,
        "Percent. SCS of PFENet and HSNet, and GS of Baseline, do not follow from the supplement's tables.",
    )


def _percents(row: FoldResult) -> tuple[float, ...]:
    return tuple(percent(value) for value in (*row.folds, row.mean))
