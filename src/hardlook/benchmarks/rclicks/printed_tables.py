"""The tables of the RClicks paper, whole and as printed.

From "RClicks: Realistic Click Simulation for Benchmarking Interactive Segmentation" (NeurIPS 2024). Tables 9 to 12 have
a row for each checkpoint and dataset here. Table 4 prints parts of Table 9 again.

>>> [(table.name, len(table.rows)) for table in printed_tables()][3:6]
[('table-4', 33), ('table-5', 4), ('table-6', 25)]
"""

from __future__ import annotations

from collections.abc import Mapping

from hardlook.benchmarks.rclicks.printed_click_tables import SOURCE, click_tables
from hardlook.benchmarks.rclicks.published import CHECKPOINTS, DATASETS, TITLES, Checkpoint
from hardlook.contract.published import PublishedCell, PublishedTable

# Table 4 shows the clicks of these three, and calls three sizes of Hiera the next one up.
_TABLE_4_DATASETS = ("davis", "coco-mval", "tetris")
_TABLE_4_NAMES = {"Hiera-S": "Hiera-B+", "Hiera-B+": "Hiera-L", "Hiera-L": "Hiera-H"}
_TABLE_4_SCORES = {"noc90": "Sample", "noc90-std": "std", "dsb": "dSB %", "dgr": "dGR %"}
_TABLES: Mapping[int, tuple[str, str, Mapping[str, str]]] = {
    9: (
        "clicks to 90 % IoU",
        "Clicks; differences in percent.",
        {"noc90": "Sample", "noc90-std": "std", "noc90-base": "Base", "dsb": "dSB %", "dgr": "dGR %", "dhh": "dHH %"},
    ),
    10: (
        "instances that fail to reach 90 % IoU",
        "Instances.",
        {"nof": "Sample", "nof-std": "std", "nof-base": "Base", "dsb-nof": "dSB", "dgr-nof": "dGR", "dhh-nof": "dHH"},
    ),
    11: (
        "area under IoU against clicks",
        "Percent.",
        {"auc": "Sample", "auc-std": "std", "auc-base": "Base", "dsb-iou": "dSB", "dgr-iou": "dGR", "dhh-iou": "dHH"},
    ),
    12: (
        "one click, and noise to signal",
        "Percent. NSR@1 is of people's clicks, NSR@20 of sampled ones.",
        {
            "user-iou1": "User@1",
            "user-iou1-std": "std of User@1",
            "sample-iou1": "Sample@1",
            "sample-iou1-std": "std of Sample@1",
            "base-iou1": "Base@1",
            "nsr1": "NSR@1",
            "nsr": "NSR@20",
        },
    ),
}


def printed_tables() -> tuple[PublishedTable, ...]:
    """Tables 1 to 12."""
    clicks = click_tables()
    return (*clicks[:3], _table_4(), *clicks[3:], *(_checkpoints(number) for number in _TABLES))


def _table_4() -> PublishedTable:
    columns = [f"{TITLES[dataset]}: {word}" for dataset in _TABLE_4_DATASETS for word in _TABLE_4_SCORES.values()]
    rows: list[tuple[PublishedCell, ...]] = []
    for one in CHECKPOINTS:
        cells = [one.scores[dataset][name] for dataset in _TABLE_4_DATASETS for name in _TABLE_4_SCORES]
        rows.append((one.method, _TABLE_4_NAMES.get(one.backbone, one.backbone), one.trained_on, *cells))
    return PublishedTable(
        "table-4",
        "Table 4: clicks to 90 % IoU on three datasets",
        ("method", "backbone", "trained on", *columns),
        tuple(rows),
        SOURCE,
        "Table 9 has the same values. Small, base+ and large Hiera stand one size too large here, as printed.",
    )


def _checkpoints(number: int) -> PublishedTable:
    title, note, scores = _TABLES[number]
    rows = [
        (*_named(one), TITLES[dataset], *_cells(one, dataset, scores)) for one in CHECKPOINTS for dataset in DATASETS
    ]
    return PublishedTable(
        f"table-{number}",
        f"Table {number}: {title}",
        ("checkpoint", "backbone", "trained on", "dataset", *scores.values()),
        tuple(rows),
        SOURCE,
        note,
    )  # fmt: skip


def _named(one: Checkpoint) -> tuple[str, str, str]:
    return one.name, one.backbone, one.trained_on


def _cells(one: Checkpoint, dataset: str, scores: Mapping[str, str]) -> tuple[PublishedCell, ...]:
    return tuple(one.scores[dataset][name] for name in scores)
