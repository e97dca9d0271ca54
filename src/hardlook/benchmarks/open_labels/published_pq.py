"""Published panoptic results of the open metrics' paper, for leaderboards.

Printed in percent; here from 0 to 1.

>>> [row.values["open-pq"] for row in PUBLISHED_PQ if row.method == "FC-CLIP" and row.source == "Table 5, A-150"]
[0.288]
"""

from __future__ import annotations

from hardlook.contract.published import PublishedResult

Printed = tuple[tuple[float, float], tuple[float, float], tuple[float, float]]

_NOTE = "comparable with a run on the dataset's whole validation set with --variant published and --measure path"
_LOW = f"{_NOTE}; the printed PQ is far below the product of the printed SQ and RQ"
# PQ, SQ and RQ, each vanilla and open.
TABLE_5: dict[tuple[str, str], Printed] = {
    ("OPSNet", "COCO"): ((44.0, 45.9), (83.5, 83.4), (62.1, 63.4)),
    ("OPSNet", "A-150"): ((17.8, 21.9), (54.6, 76.0), (21.6, 26.7)),
    ("ODISE", "COCO"): ((34.9, 37.1), (84.3, 84.1), (53.5, 55.4)),
    ("ODISE", "A-150"): ((23.2, 25.6), (74.4, 79.4), (27.9, 30.9)),
    ("FC-CLIP", "COCO"): ((54.4, 55.3), (83.0, 83.0), (64.8, 65.9)),
    ("FC-CLIP", "A-150"): ((26.8, 28.8), (71.6, 77.9), (32.3, 34.8)),
}
TABLE_6: dict[tuple[str, str], Printed] = {
    ("CGG", "known"): ((48.1, 48.8), (82.4, 82.3), (57.8, 58.6)),
    ("CGG", "unknown"): ((34.6, 35.3), (77.6, 81.9), (40.9, 41.8)),
}
# Table 10: FC-CLIP on A-150 under other measures; vanilla scores, and those of Path, are those of Table 5.
_OPEN_10 = {"GloVe": (31.5, 77.7, 38.2), "T5": (30.7, 77.8, 37.1)}


def _with_open(printed: Printed, opened: tuple[float, float, float]) -> Printed:
    (pq, _), (sq, _), (rq, _) = printed
    return (pq, opened[0]), (sq, opened[1]), (rq, opened[2])


_FC_CLIP = TABLE_5["FC-CLIP", "A-150"]
TABLE_10: dict[tuple[str, str], Printed] = {
    ("FC-CLIP", "Path"): _FC_CLIP,
    **{("FC-CLIP", measure): _with_open(_FC_CLIP, opened) for measure, opened in _OPEN_10.items()},
}
_PQ_BELOW_ITS_PARTS = {("OPSNet", "COCO"), ("ODISE", "COCO")}


def _values(printed: Printed) -> dict[str, float]:
    values = {}
    for name, (vanilla, opened) in zip(("pq", "sq", "rq"), printed, strict=True):
        values[name], values[f"open-{name}"] = round(vanilla / 100, 4), round(opened / 100, 4)
    return values


PUBLISHED_PQ = (
    *(
        PublishedResult(
            method,
            f"Table 5, {dataset}",
            _values(row),
            _LOW if (method, dataset) in _PQ_BELOW_ITS_PARTS else _NOTE,
            {"dataset": dataset},
        )
        for (method, dataset), row in TABLE_5.items()
    ),
    *(
        PublishedResult(
            method,
            f"Table 6, COCO, {classes} things",
            _values(row),
            f"{_NOTE}, of the {classes} thing classes alone",
            {"dataset": "COCO", "kind": "things", "classes": classes},
        )
        for (method, classes), row in TABLE_6.items()
    ),
    *(
        PublishedResult(
            method,
            f"Table 10, A-150, {measure}",
            _values(row),
            "not comparable: the paper does not say which vectors or texts the measure was trained on",
            {"dataset": "A-150", "measure": measure.lower()},
        )
        for (method, measure), row in TABLE_10.items()
        if measure != "Path"
    ),
)
