"""A run beside the 33 published checkpoints, and how scores correlate over checkpoints, as in the paper's figure 14.

Correlations are taken over checkpoints for each dataset and averaged over datasets: Pearson's above the diagonal and
Spearman's below it (the figure's labels say the opposite). A score that is the same for all checkpoints of a dataset
has no correlation there, which counts as 0, on the diagonal too. The printed figure is the absolute value of the mean
(`released`): what is positive in one dataset and negative in another cancels. `ours` is the mean of absolute values.

>>> from hardlook.harness.scorecard import Score
>>> scores = (Score("noc90", 1.9, 50), Score("noc90", 1.9, 50, slice={"dataset": "grabcut"}))
>>> section = build_leaderboard(Scorecard("rclicks", "1", "mobile-sam", scores))
>>> [row[:4] for row in section.blocks[0].rows[:2]]
[('mobile-sam', '', '', 1.9), ('MobileSAM', 'ViT-Tiny', 'SA-1B', 1.81)]
>>> names, matrix = published_correlations()
>>> first, second = names.index("user-iou1"), names.index("sample-iou1")
>>> round(float(matrix[first, second]), 2), round(float(matrix[second, first]), 2)
(1.0, 0.99)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hardlook.harness.scorecard import Scorecard
from hardlook.harness.sections import Block, HeatMap, ScatterChart, Section, Spot, Table
from hardlook.harness.stats.association import average_ranks, pearson
from hardlook.rclicks.published import DATASETS, TITLES, Checkpoint, list_checkpoints

Numbers = NDArray[np.float64]

Averaging = Literal["released", "ours"]

# By dataset, a mapping of scores by name for each checkpoint.
Rows = Mapping[str, Sequence[Mapping[str, float]]]

_AVERAGES: Mapping[str, Callable[[Numbers], Numbers]] = MappingProxyType(
    {"released": lambda signed: np.abs(signed.mean(0)), "ours": lambda signed: np.abs(signed).mean(0)}
)

_NO_ROWS: Rows = MappingProxyType({})

# The figure's order; its last row, NSR of the groups' first clicks, is in no table.
FIGURE_14 = (
    *("dgr", "dhh", "dsb", "dgr-nof", "dhh-nof", "dsb-nof", "dgr-iou", "dhh-iou", "dsb-iou"),
    *("noc90-base", "noc90", "noc90-std", "nof-base", "nof", "nof-std", "auc-base", "auc", "auc-std", "nsr"),
    *("base-iou1", "user-iou1", "sample-iou1", "user-iou1-std", "sample-iou1-std", "nsr1"),
)

COLUMNS = {
    "noc90": "NoC@90",
    "noc90-std": "spread",
    "noc90-base": "centre NoC@90",
    "dsb": "dSB %",
    "dgr": "dGR %",
    "dhh": "dHH %",
    "nof": "NoF",
    "nof-base": "centre NoF",
    "auc": "IoU-AuC",
    "auc-base": "centre IoU-AuC",
    "nsr": "NSR@20 %",
}

ONE_CLICK = {"user-iou1": "User@1", "sample-iou1": "Sample@1", "base-iou1": "Base@1", "nsr1": "NSR@1 of people %"}

COMPARED = ("noc90", "noc90-base", "dgr", "nof", "auc", "user-iou1")

CORRELATED = ("noc90", "noc90-base", "dsb", "dgr", "nof", "auc", "nsr", "sample-iou1", "nsr1")

Values = Mapping[str, float]

PublishedValues = Sequence[tuple[Checkpoint, Values]]

Cell = str | float | int | None


def build_leaderboard(scorecard: Scorecard) -> Section | None:
    """Tables, NoC against dGR, and correlations of scores; None for a run without NoC@90.

    Where the run and the paper share datasets, both are scored on those alone; else the published means over all
    five are shown beside a run of other images.
    """
    if "noc90" not in _ours(scorecard, {}):
        return None
    ran = {score.slice["dataset"] for score in scorecard.scores if set(score.slice) == {"dataset"}}
    shared = tuple(name for name in DATASETS if name in ran)
    ours = _shared_means(scorecard, ran, shared)
    theirs = [(one, one.mean(shared or DATASETS)) for one in list_checkpoints()]
    where = ", ".join(TITLES[name] for name in shared) or "the paper's five datasets"
    blocks: list[Block] = [_table(scorecard, ours, theirs, where), _scatter(scorecard, ours, theirs, where)]
    if len(shared) > 1:
        blocks += [_dataset_table(scorecard, name) for name in shared]
    blocks.append(_table(scorecard, ours, theirs, f"{where}, one click", ONE_CLICK))
    if shared:
        blocks.append(_correlation_map())
    words = [
        *_describe_datasets(ran, shared),
        _describe_comparability(scorecard, _table_slice(ran, shared)),
        _describe_own_checkpoint(scorecard),
    ]
    return Section("Beside the published checkpoints", " ".join(filter(None, words)), tuple(blocks))


def _correlation_map() -> HeatMap:
    """Correlations of the main scores over the published checkpoints."""
    _, matrix = published_correlations(names=CORRELATED)
    labels = tuple((COLUMNS | ONE_CLICK)[name] for name in CORRELATED)
    return HeatMap(
        "Which scores tell the same, over the published checkpoints",
        "Correlation over the 33 checkpoints, mean over the five datasets, then without its sign "
        "(`averaging=released`, as in the paper's figure 14): Pearson above the diagonal, Spearman below. Near 0: a "
        "model's rank by one score says nothing of its rank by the other.",
        labels,
        labels,
        matrix.tolist(),
    )


def _ours(scorecard: Scorecard, where: Mapping[str, str]) -> dict[str, float]:
    found = (score for score in scorecard.scores if dict(score.slice) == dict(where))
    return {score.name: score.value for score in found if not math.isnan(score.value)}


def _shared_means(scorecard: Scorecard, ran: set[str], shared: Sequence[str]) -> dict[str, float]:
    """Our scores over the shared datasets; over all that ran where nothing is shared, or nothing else ran."""
    if not shared or len(shared) == len(ran):
        return _ours(scorecard, {})
    parts = [_ours(scorecard, {"dataset": name}) for name in shared]
    return {name: sum(part[name] for part in parts) / len(parts) for name in parts[0] if all(name in p for p in parts)}


def _table(
    scorecard: Scorecard,
    ours: Values,
    theirs: PublishedValues,
    where: str,
    columns: Mapping[str, str] = COLUMNS,
    words: str = "",
) -> Table:
    rows: list[tuple[Cell, ...]] = [(_run_name(scorecard), "", "", *(ours.get(name) for name in columns))]
    for one, values in sorted(theirs, key=lambda pair: pair[0] != _own_checkpoint(scorecard)):
        rows.append((one.method, one.backbone, one.trained_on, *(values[name] for name in columns)))
    caption = (
        "The first row is this run. The others are Tables 9 to 12 of the paper; of several datasets, their plain mean."
    )
    return Table(
        f"Published checkpoints: {where}",
        f"{caption} {words}".strip(),
        ("model", "backbone", "trained on", *columns.values()),
        tuple(rows),
        decimals=2,
    )


def _dataset_table(scorecard: Scorecard, dataset: str) -> Table:
    where = {"dataset": dataset}
    theirs = [(one, one.scores[dataset]) for one in list_checkpoints()]
    return _table(
        scorecard, _ours(scorecard, where), theirs, TITLES[dataset], words=_describe_comparability(scorecard, where)
    )


def _scatter(scorecard: Scorecard, ours: Values, theirs: PublishedValues, where: str) -> ScatterChart:
    spots = [Spot(values["noc90"], values["dgr"], one.label, "published") for one, values in theirs]
    if "dgr" in ours:
        spots.append(Spot(ours["noc90"], ours["dgr"], _run_name(scorecard), _run_group(scorecard)))
    return ScatterChart(
        f"Clicks needed, and how much it matters who clicks: {where}",
        "Left and low is better: few clicks are needed, and no more where few people click than where most do.",
        tuple(spots),
        x_axis="NoC@90",
        y_axis="dGR, %",
    )


def _run_group(scorecard: Scorecard) -> str:
    """The group of this run's spot, which says whether it is comparable."""
    words = {score.comparable for score in scorecard.scores if score.name == "noc90" and "group" not in score.slice}
    return "this run, not comparable" if any(text.startswith("not comparable") for text in words) else "this run"


def _run_name(scorecard: Scorecard) -> str:
    return scorecard.model or "this run"


def _own_checkpoint(scorecard: Scorecard) -> Checkpoint | None:
    """The published checkpoint of the model that ran, where the name tells: `mobile-sam` is one."""
    spelled = scorecard.model.replace("-", "_")
    return next((one for one in list_checkpoints() if one.name == spelled), None)


def _describe_own_checkpoint(scorecard: Scorecard) -> str:
    own = _own_checkpoint(scorecard)
    return f"The second row of each table is the paper's own run of {own.label}." if own else ""


def _describe_datasets(ran: set[str], shared: Sequence[str]) -> list[str]:
    if not shared:
        return ["The published means are those of other images: they show what is usual, and no more."]
    left = sorted(ran - set(shared))
    return [f"Datasets of this run that the paper has not are left out here: {', '.join(left)}."] if left else []


def _table_slice(ran: set[str], shared: Sequence[str]) -> dict[str, str] | None:
    """Which scores the first table shows; None where it shows means that the run does not score."""
    if not shared or len(shared) == len(ran):
        return {}
    return {"dataset": shared[0]} if len(shared) == 1 else None


def _describe_comparability(scorecard: Scorecard, where: Mapping[str, str] | None) -> str:
    """Which scores of a slice may be compared, and why the others may not."""
    sentences: dict[str, list[str]] = {}
    for score in scorecard.scores:
        if score.name in COMPARED and score.comparable and dict(score.slice) == where:
            sentences.setdefault(score.comparable, []).append(score.name)
    if len(sentences) == 1:
        only = next(iter(sentences))
        return f"{only[:1].upper()}{only[1:]}."
    return " ".join(f"{', '.join(f'`{name}`' for name in names)}: {why}." for why, names in sentences.items())


def correlation_matrix(rows: Rows, names: Sequence[str], averaging: Averaging = "released") -> Numbers:
    """Correlations of the named scores over checkpoints, (K, K) in [0, 1], mean over datasets.

    Every checkpoint of a dataset has a finite value of every score; datasets may have different checkpoints.

    >>> here = [{"noc90": 1.0, "dgr": 5.0}, {"noc90": 2.0, "dgr": 9.0}, {"noc90": 4.0, "dgr": 4.0}]
    >>> correlation_matrix({"mine": here}, ("noc90", "dgr")).round(3)
    array([[1.   , 0.371],
           [0.5  , 1.   ]])
    """
    if averaging not in _AVERAGES:
        raise ValueError(f"averaging: expected one of {', '.join(_AVERAGES)}, got {averaging!r}")
    if not rows:
        raise ValueError("rows: expected at least one dataset, got none")
    return _AVERAGES[averaging](np.stack([_dataset_correlations(name, here, names) for name, here in rows.items()]))


def published_correlations(
    more: Rows = _NO_ROWS, averaging: Averaging = "released", names: Sequence[str] = FIGURE_14
) -> tuple[tuple[str, ...], Numbers]:
    """Names (K,) and correlations (K, K) over the 33 published checkpoints, and `more` of your own beside them.

    `more` holds scores by dataset, under the names of the paper's five; a dataset may be left out.

    >>> own = {"grabcut": [{"noc90": 1.5, "dgr": 40.0}]}
    >>> published_correlations(own, names=("noc90", "dgr"))[1].shape
    (2, 2)
    """
    others = [name for name in more if name not in DATASETS]
    if others:
        raise ValueError(f"more: expected datasets out of {', '.join(DATASETS)}, got {', '.join(others)}")
    rows = {name: (*(one.scores[name] for one in list_checkpoints()), *more.get(name, ())) for name in DATASETS}
    return tuple(names), correlation_matrix(rows, names, averaging)


def _dataset_correlations(dataset: str, rows: Sequence[Mapping[str, float]], names: Sequence[str]) -> Numbers:
    """Signed correlations within one dataset, 0 where there is none."""
    absent = sorted({name for row in rows for name in names if name not in row})
    if absent:
        raise ValueError(f"{dataset}: expected every checkpoint to have {', '.join(absent)}")
    columns = [[row[name] for row in rows] for name in names]
    ranks = [average_ranks(column) for column in columns]
    matrix = np.zeros((len(names), len(names)))
    for one in range(len(names)):
        for other in range(one, len(names)):
            matrix[other, one] = pearson(ranks[one], ranks[other])
            matrix[one, other] = pearson(columns[one], columns[other])
    return np.nan_to_num(matrix)
