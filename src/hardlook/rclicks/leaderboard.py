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
from collections.abc import Mapping, Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from hardlook.harness.scorecard import Scorecard
from hardlook.harness.sections import Block, HeatMap, ScatterChart, Section, Spot, Table
from hardlook.harness.stats.association import average_ranks, pearson
from hardlook.rclicks.published import DATASETS, TITLES, Checkpoint, find_checkpoint, list_checkpoints

Numbers = NDArray[np.float64]
Averaging = Literal["released", "ours"]
# By dataset, the scores of each checkpoint by name.
Rows = Mapping[str, Sequence[Mapping[str, float]]]
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


def build_leaderboard(scorecard: Scorecard) -> Section | None:
    """Tables, NoC against dGR, and correlations of scores; None for a run without NoC@90.

    Where run and paper share datasets, both are scored on those alone; else the paper's means over all five are shown.
    """
    if "noc90" not in _ours(scorecard, {}):
        return None
    ran, shared = _list_datasets(scorecard), find_shared_datasets(scorecard)
    ours = get_shared_values(scorecard, shared)
    if not shared or len(shared) == len(ran):
        comparable = _describe_comparability(scorecard, {})
    else:
        # A mean over some of the datasets that ran is not a score of the run.
        comparable = _describe_comparability(scorecard, {"dataset": shared[0]}) if len(shared) == 1 else ""
    theirs = [(one, one.mean(shared or DATASETS)) for one in list_checkpoints()]
    where = ", ".join(TITLES[name] for name in shared) or "the paper's five datasets"
    blocks: list[Block] = [_table(scorecard, ours, theirs, where), _scatter(scorecard, ours, theirs, where)]
    if len(shared) > 1:
        for name in shared:
            own, printed = _ours(scorecard, {"dataset": name}), [(one, one.scores[name]) for one in list_checkpoints()]
            why = _describe_comparability(scorecard, {"dataset": name})
            blocks.append(_table(scorecard, own, printed, TITLES[name], words=why))
    blocks.append(_table(scorecard, ours, theirs, f"{where}, one click", ONE_CLICK))
    if shared:
        blocks.append(_correlation_map())
    words = []
    if not shared:
        words.append("The published means are those of other images: they show what is usual, and no more.")
    elif others := sorted(ran - set(shared)):
        words.append(f"Datasets of this run that are not in the paper are left out here: {', '.join(others)}.")
    words.append(comparable)
    if checkpoint := _own_checkpoint(scorecard):
        words.append(f"The second row of each table is the paper's own run of {checkpoint.label}.")
    return Section("Beside the published checkpoints", " ".join(filter(None, words)), tuple(blocks))


def _list_datasets(scorecard: Scorecard) -> set[str]:
    return {score.slice["dataset"] for score in scorecard.scores if set(score.slice) == {"dataset"}}


def find_shared_datasets(scorecard: Scorecard) -> tuple[str, ...]:
    """The datasets of a run that are in the paper, in its order."""
    ran = _list_datasets(scorecard)
    return tuple(name for name in DATASETS if name in ran)


def get_shared_values(scorecard: Scorecard, shared: Sequence[str]) -> dict[str, float]:
    """The scores of a run on these datasets, their mean where it had others too; all its scores where it shares none.

    Scores that are undefined are left out.
    """
    if not shared or len(shared) == len(_list_datasets(scorecard)):
        return _ours(scorecard, {})
    parts = [_ours(scorecard, {"dataset": name}) for name in shared]
    everywhere = [name for name in parts[0] if all(name in part for part in parts)]
    return {name: sum(part[name] for part in parts) / len(parts) for name in everywhere}


def _correlation_map() -> HeatMap:
    """Correlations of the main scores over the published checkpoints."""
    _, matrix = published_correlations(names=CORRELATED)
    names = tuple((COLUMNS | ONE_CLICK)[name] for name in CORRELATED)
    caption = (
        "Correlation over the 33 checkpoints, mean over the five datasets, then without its sign "
        "(`averaging=released`, as in the paper's figure 14): Pearson above the diagonal, Spearman below. Near 0: a "
        "model's rank by one score says nothing of its rank by the other."
    )
    return HeatMap("Which scores tell the same, over the published checkpoints", caption, names, names, matrix.tolist())


def _ours(scorecard: Scorecard, where: Mapping[str, str]) -> dict[str, float]:
    found = (score for score in scorecard.scores if dict(score.slice) == dict(where))
    return {score.name: score.value for score in found if not math.isnan(score.value)}


def _table(
    scorecard: Scorecard,
    ours: Values,
    theirs: PublishedValues,
    where: str,
    columns: Mapping[str, str] = COLUMNS,
    words: str = "",
) -> Table:
    rows: list[tuple[str | float | int | None, ...]] = [
        (scorecard.model or "this run", "", "", *(ours.get(name) for name in columns))
    ]
    for one, values in sorted(theirs, key=lambda pair: pair[0] != _own_checkpoint(scorecard)):
        rows.append((one.method, one.backbone, one.trained_on, *(values[name] for name in columns)))
    caption = "The first row is this run. The others are Tables 9 to 12 of the paper, or their mean over datasets."
    return Table(
        f"Published checkpoints: {where}",
        f"{caption} {words}".strip(),
        ("model", "backbone", "trained on", *columns.values()),
        tuple(rows),
        decimals=2,
    )


def _scatter(scorecard: Scorecard, ours: Values, theirs: PublishedValues, where: str) -> ScatterChart:
    spots = [Spot(values["noc90"], values["dgr"], one.label, "published") for one, values in theirs]
    if "dgr" in ours:
        whole = [score for score in scorecard.scores if score.name == "noc90" and "group" not in score.slice]
        other = any(score.comparable.startswith("not comparable") for score in whole)
        group = "this run, not comparable" if other else "this run"
        spots.append(Spot(ours["noc90"], ours["dgr"], scorecard.model or "this run", group))
    return ScatterChart(
        f"Clicks needed, and how much it matters who clicks: {where}",
        "Left and low is better: few clicks are needed, and no more where few people click than where most do.",
        tuple(spots),
        x_axis="NoC@90",
        y_axis="dGR, %",
    )


def _own_checkpoint(scorecard: Scorecard) -> Checkpoint | None:
    """The published checkpoint with the name of the model that ran, such as `mobile-sam`."""
    return find_checkpoint(scorecard.model.replace("-", "_"))


def _describe_comparability(scorecard: Scorecard, where: Mapping[str, str]) -> str:
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
    if averaging not in get_args(Averaging):
        raise ValueError(f"averaging: expected one of {', '.join(get_args(Averaging))}, got {averaging!r}")
    if not rows:
        raise ValueError("rows: expected at least one dataset, got none")
    signed = np.stack([_dataset_correlations(name, here, names) for name, here in rows.items()])
    return np.asarray(np.abs(signed.mean(0)) if averaging == "released" else np.abs(signed).mean(0))


def published_correlations(
    more: Rows | None = None, averaging: Averaging = "released", names: Sequence[str] = FIGURE_14
) -> tuple[tuple[str, ...], Numbers]:
    """Names (K,) and correlations (K, K) over the 33 published checkpoints, and `more` of your own beside them.

    `more` holds scores by dataset, under the names of the paper's five; a dataset may be left out.

    >>> own = {"grabcut": [{"noc90": 1.5, "dgr": 40.0}]}
    >>> published_correlations(own, names=("noc90", "dgr"))[1].shape
    (2, 2)
    """
    more = more or {}
    if others := [name for name in more if name not in DATASETS]:
        raise ValueError(f"more: expected datasets out of {', '.join(DATASETS)}, got {', '.join(others)}")
    rows = {name: (*(one.scores[name] for one in list_checkpoints()), *more.get(name, ())) for name in DATASETS}
    return tuple(names), correlation_matrix(rows, names, averaging)


def _dataset_correlations(dataset: str, rows: Sequence[Mapping[str, float]], names: Sequence[str]) -> Numbers:
    """Signed correlations within one dataset, 0 where there is none."""
    if absent := sorted({name for row in rows for name in names if name not in row}):
        raise ValueError(f"{dataset}: expected every checkpoint to have {', '.join(absent)}")
    columns = [[row[name] for row in rows] for name in names]
    ranks = [average_ranks(column) for column in columns]
    matrix = np.zeros((len(names), len(names)))
    for one in range(len(names)):
        for other in range(one, len(names)):
            matrix[other, one] = pearson(ranks[one], ranks[other])
            matrix[one, other] = pearson(columns[one], columns[other])
    return np.nan_to_num(matrix)
