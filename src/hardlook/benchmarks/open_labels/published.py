"""Published results of the open metrics' paper, for leaderboards: vanilla and open mIoU by dataset.

Printed in percent; `PUBLISHED_MIOU` is from 0 to 1. POMP has no results on three datasets.

>>> [row.values["open-miou"] for row in PUBLISHED_MIOU if row.method == "SAN" and row.where["dataset"] == "PAS-20"]
[0.96]
"""

from __future__ import annotations

from hardlook.contract.published import PublishedResult

_NOTE = "comparable with a run on the dataset's whole validation set with --variant published and --measure path"
SEMANTIC_DATASETS = ("A-847", "PC-459", "A-150", "PC-59", "PAS-20")
# Table 4: vanilla and open mIoU in percent.
TABLE_4: dict[str, dict[str, tuple[float, float]]] = {
    "SimSeg": {
        "A-847": (6.7, 12.9),
        "PC-459": (8.7, 14.5),
        "A-150": (20.4, 29.0),
        "PC-59": (47.3, 50.8),
        "PAS-20": (88.3, 90.2),
    },
    "POMP": {"A-150": (20.7, 29.6), "PC-59": (51.0, 54.5)},
    "OVSeg": {
        "A-847": (8.9, 15.7),
        "PC-459": (12.3, 17.4),
        "A-150": (29.6, 36.9),
        "PC-59": (55.8, 59.6),
        "PAS-20": (94.7, 95.6),
    },
    "SAN": {
        "A-847": (12.8, 19.2),
        "PC-459": (16.6, 19.9),
        "A-150": (31.9, 39.0),
        "PC-59": (57.5, 60.4),
        "PAS-20": (95.2, 96.0),
    },
    "CAT-Seg": {
        "A-847": (11.4, 18.4),
        "PC-459": (16.2, 20.3),
        "A-150": (31.5, 39.9),
        "PC-59": (61.6, 65.4),
        "PAS-20": (96.5, 97.2),
    },
    "FC-CLIP": {
        "A-847": (14.8, 20.6),
        "PC-459": (13.8, 16.3),
        "A-150": (34.1, 40.4),
        "PC-59": (58.4, 61.3),
        "PAS-20": (95.4, 96.2),
    },
}

PUBLISHED_MIOU = tuple(
    PublishedResult(
        method,
        f"Table 4, {dataset}",
        {"miou": round(vanilla / 100, 6), "open-miou": round(opened / 100, 6)},
        _NOTE,
        {"dataset": dataset},
    )
    for method, datasets in TABLE_4.items()
    for dataset, (vanilla, opened) in datasets.items()
)
