"""Published panoptic results of the open metrics' paper, for leaderboards.

Printed in percent; here from 0 to 1.

>>> [row.values["open-pq"] for row in PUBLISHED_PQ if row.method == "FC-CLIP" and row.source == "Table 5, A-150"]
[0.288]
"""

from __future__ import annotations

from hardlook.contract.published import PublishedResult

Printed = tuple[tuple[float, float], tuple[float, float], tuple[float, float]]

_NOTE = "comparable with the variant published and the measure path, on the same predictions"
_LOW = f"{_NOTE}; the printed PQ is far below the product of the printed SQ and RQ"
# PQ, SQ and RQ, each vanilla and open.
_TABLE_5: dict[tuple[str, str], Printed] = {
    ("OPSNet", "COCO"): ((44.0, 45.9), (83.5, 83.4), (62.1, 63.4)),
    ("OPSNet", "A-150"): ((17.8, 21.9), (54.6, 76.0), (21.6, 26.7)),
    ("ODISE", "COCO"): ((34.9, 37.1), (84.3, 84.1), (53.5, 55.4)),
    ("ODISE", "A-150"): ((23.2, 25.6), (74.4, 79.4), (27.9, 30.9)),
    ("FC-CLIP", "COCO"): ((54.4, 55.3), (83.0, 83.0), (64.8, 65.9)),
    ("FC-CLIP", "A-150"): ((26.8, 28.8), (71.6, 77.9), (32.3, 34.8)),
}
_TABLE_6: dict[tuple[str, str], Printed] = {
    ("CGG", "known"): ((48.1, 48.8), (82.4, 82.3), (57.8, 58.6)),
    ("CGG", "unknown"): ((34.6, 35.3), (77.6, 81.9), (40.9, 41.8)),
}
_TABLE_10: dict[tuple[str, str], Printed] = {
    ("FC-CLIP", "Path"): ((26.8, 28.8), (71.6, 77.9), (32.3, 34.8)),
    ("FC-CLIP", "GloVe"): ((26.8, 31.5), (71.6, 77.7), (32.3, 38.2)),
    ("FC-CLIP", "T5"): ((26.8, 30.7), (71.6, 77.8), (32.3, 37.1)),
}
_PQ_BELOW_ITS_PARTS = {("OPSNet", "COCO"), ("ODISE", "COCO")}


def _values(printed: Printed) -> dict[str, float]:
    values = {}
    for name, (vanilla, opened) in zip(("pq", "sq", "rq"), printed, strict=True):
        values[name], values[f"open-{name}"] = round(vanilla / 100, 4), round(opened / 100, 4)
    return values


PUBLISHED_PQ = (
    *(
        PublishedResult(key[0], f"Table 5, {key[1]}", _values(row), _LOW if key in _PQ_BELOW_ITS_PARTS else _NOTE)
        for key, row in _TABLE_5.items()
    ),
    *(
        PublishedResult(method, f"Table 6, COCO, {classes} things", _values(row), f"{_NOTE}; things of a class set")
        for (method, classes), row in _TABLE_6.items()
    ),
    *(
        PublishedResult(method, f"Table 10, A-150, {measure}", _values(row), "the measure's corpus is not stated")
        for (method, measure), row in _TABLE_10.items()
        if measure != "Path"
    ),
)
