"""The tables of the RClicks paper about clicks and click models, whole and as printed.

>>> [table.name for table in click_tables()]
['table-1', 'table-2', 'table-3', 'table-5', 'table-6', 'table-7', 'table-8']
>>> click_tables()[1].rows[-1]
('All', 185349, 290195, 475544)
"""

from __future__ import annotations

from hardlook.benchmarks.rclicks.published import DATASETS, TITLES
from hardlook.benchmarks.rclicks.published_tables import (
    CLICK_COUNTS,
    CLICK_MODELS,
    COSTS,
    DEVICES,
    DISPLAY_MODES,
    MODELS,
    SIGMAS,
    ClickModelResult,
)
from hardlook.contract.published import PublishedTable

SOURCE = "RClicks: Realistic Click Simulation for Benchmarking Interactive Segmentation, NeurIPS 2024"
# The paper's own short names.
_SHORT = dict(zip(MODELS, ("UD", "DT", "SI", "SM", "Ours"), strict=True))
_MEASURES = ("KS", "PL1", "WD", "NSS", "PDE")
_TABLE_3 = ("uniform", "distance", "saliency", "clickability")
_NAMES = "UD uniform, DT distance transform, SI saliency on the crop, SM with grey around the object, Ours the network."


def click_tables() -> tuple[PublishedTable, ...]:
    """Tables 1, 2, 3, 5, 6, 7 and 8."""
    return (_display_modes(), _counts(), _on_tetris(), _costs(), _models(), _sigmas(), _devices())


def _display_modes() -> PublishedTable:
    return PublishedTable(
        "table-1",
        "Table 1: how the object is shown, against clicks after a description",
        ("display mode", "PL1", "KS", "WD"),
        tuple((mode, row.pl1, row.ks, row.wd) for mode, row in DISPLAY_MODES.items()),
        SOURCE,
        "KS: share of tests with p > .05, higher is better; PL1 and WD lower.",
    )


def _counts() -> PublishedTable:
    rows = [(TITLES[name], row.first, row.later, row.all) for name, row in CLICK_COUNTS.items()]
    counts = CLICK_COUNTS.values()
    totals = (sum(one.first for one in counts), sum(one.later for one in counts), sum(one.all for one in counts))
    return PublishedTable(
        "table-2",
        "Table 2: clicks that were collected",
        ("dataset", "first round", "later rounds", "all"),
        (*rows, ("All", *totals)),
        SOURCE,
    )


def _on_tetris() -> PublishedTable:
    return PublishedTable(
        "table-3",
        "Table 3: click models on the validation part of TETRIS",
        ("model", *_MEASURES),
        tuple((_SHORT[name], *_measured(CLICK_MODELS["tetris"][name])) for name in _TABLE_3),
        SOURCE,
        f"{_NAMES} Table 6 has the same rows.",
    )


def _costs() -> PublishedTable:
    return PublishedTable(
        "table-5",
        "Table 5: what a click model costs",
        ("model", "M parameters", "GFLOPs", "GB", "ms", "+- ms", "height", "width"),
        tuple(
            (name, row.parameters, row.gflops, row.memory, row.milliseconds, row.spread, row.side, row.side)
            for name, row in COSTS.items()
        ),
        SOURCE,
        "The text calls the network five times as fast as SAM; this table gives 6.5.",
    )


def _models() -> PublishedTable:
    titles = {**TITLES, "tetris": "TETRIS (val)"}
    return PublishedTable(
        "table-6",
        "Table 6: click models on five datasets",
        ("dataset", "model", *_MEASURES),
        tuple(
            (titles[dataset], _SHORT[name], *_measured(CLICK_MODELS[dataset][name]))
            for dataset in DATASETS
            for name in MODELS
        ),
        SOURCE,
        _NAMES,
    )


def _sigmas() -> PublishedTable:
    return PublishedTable(
        "table-7",
        "Table 7: the spread of click maps that the network is trained on",
        ("sigma", *_MEASURES),
        tuple((sigma, *_measured(row)) for sigma, row in SIGMAS.items()),
        SOURCE,
        "Sigma in pixels of a 1920x1080 frame; the validation part of TETRIS.",
    )


def _devices() -> PublishedTable:
    return PublishedTable(
        "table-8",
        "Table 8: clicks on PCs against clicks on phones",
        ("dataset", "KS", "WD", "PL1"),
        tuple((TITLES[name], row.ks, row.wd, row.pl1) for name, row in DEVICES.items()),
        SOURCE,
        "WD and PL1 are wrong: the released code compares (x, x) with (x, y). KS is right.",
    )


def _measured(row: ClickModelResult) -> tuple[float, ...]:
    return (row.ks, row.pl1, row.wd, row.nss, row.pde)
