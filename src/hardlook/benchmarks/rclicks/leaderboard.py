"""A run beside the 33 published checkpoints: over the datasets that both have, and by dataset.

>>> from hardlook.contract.scorecard import Score
>>> scores = (Score("noc90", 1.9, 50), Score("noc90", 1.9, 50, slice={"dataset": "grabcut"}))
>>> section = leaderboard(Scorecard("rclicks", "1", "mobile-sam", scores))
>>> [row[:4] for row in section.blocks[0].rows[:2]]
[('mobile-sam', '', '', 1.9), ('MobileSAM', 'ViT-Tiny', 'SA-1B', 1.81)]
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from hardlook.benchmarks.rclicks.correlations import published_correlations
from hardlook.benchmarks.rclicks.published import CHECKPOINTS, DATASETS, TITLES, Checkpoint
from hardlook.contract.scorecard import Scorecard
from hardlook.contract.sections import Block, HeatMap, ScatterChart, Section, Spot, Table

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
TOLD = ("noc90", "noc90-base", "dgr", "nof", "auc", "user-iou1")
CORRELATED = ("noc90", "noc90-base", "dsb", "dgr", "nof", "auc", "nsr", "sample-iou1", "nsr1")
Values = Mapping[str, float]
Theirs = Sequence[tuple[Checkpoint, Values]]
Cell = str | float | int | None


def leaderboard(scorecard: Scorecard) -> Section | None:
    """Tables, NoC against dGR, and what goes with what; None for a run without NoC@90.

    Where the run and the paper share datasets, both stand for those alone; else the published means over all five
    stand beside a run of other images.
    """
    if "noc90" not in _ours(scorecard, {}):
        return None
    ran = {score.slice["dataset"] for score in scorecard.scores if set(score.slice) == {"dataset"}}
    shared = tuple(name for name in DATASETS if name in ran)
    ours = _shared_means(scorecard, ran, shared)
    theirs = [(one, one.mean(shared or DATASETS)) for one in CHECKPOINTS]
    where = ", ".join(TITLES[name] for name in shared) or "the paper's five datasets"
    blocks: list[Block] = [_table(scorecard, ours, theirs, where), _scatter(scorecard, ours, theirs, where)]
    if len(shared) > 1:
        blocks += [_dataset_table(scorecard, name) for name in shared]
    blocks.append(_table(scorecard, ours, theirs, f"{where}, one click", ONE_CLICK))
    if shared:
        blocks.append(correlation_map())
    words = [*_datasets_words(ran, shared), _stands(scorecard, _told_slice(ran, shared)), _own_words(scorecard)]
    return Section("Beside the published checkpoints", " ".join(filter(None, words)), tuple(blocks))


def correlation_map() -> HeatMap:
    """How the chief scores go together over the published checkpoints."""
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
    theirs: Theirs,
    where: str,
    columns: Mapping[str, str] = COLUMNS,
    words: str = "",
) -> Table:
    rows: list[tuple[Cell, ...]] = [(_name(scorecard), "", "", *(ours.get(name) for name in columns))]
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
    theirs = [(one, one.scores[dataset]) for one in CHECKPOINTS]
    return _table(scorecard, _ours(scorecard, where), theirs, TITLES[dataset], words=_stands(scorecard, where))


def _scatter(scorecard: Scorecard, ours: Values, theirs: Theirs, where: str) -> ScatterChart:
    spots = [Spot(values["noc90"], values["dgr"], one.label, "published") for one, values in theirs]
    if "dgr" in ours:
        spots.append(Spot(ours["noc90"], ours["dgr"], _name(scorecard), _group(scorecard)))
    return ScatterChart(
        f"Clicks needed, and how much it matters who clicks: {where}",
        "Left and low is better: few clicks are needed, and no more where few people click than where most do.",
        tuple(spots),
        x_axis="NoC@90",
        y_axis="dGR, %",
    )


def _group(scorecard: Scorecard) -> str:
    """What this run's spot is called: whether it may be compared is said beside it."""
    words = {score.comparable for score in scorecard.scores if score.name == "noc90" and "group" not in score.slice}
    return "this run, not comparable" if any(text.startswith("not comparable") for text in words) else "this run"


def _name(scorecard: Scorecard) -> str:
    return scorecard.model or "this run"


def _own_checkpoint(scorecard: Scorecard) -> Checkpoint | None:
    """The published checkpoint of the model that ran, where the name tells: `mobile-sam` is one."""
    spelled = scorecard.model.replace("-", "_")
    return next((one for one in CHECKPOINTS if one.name == spelled), None)


def _own_words(scorecard: Scorecard) -> str:
    own = _own_checkpoint(scorecard)
    return f"The second row of each table is the paper's own run of {own.label}." if own else ""


def _datasets_words(ran: set[str], shared: Sequence[str]) -> list[str]:
    if not shared:
        return ["The published means are those of other images: they show what is usual, and no more."]
    left = sorted(ran - set(shared))
    return [f"Datasets of this run that the paper has not are left out here: {', '.join(left)}."] if left else []


def _told_slice(ran: set[str], shared: Sequence[str]) -> dict[str, str] | None:
    """Which scores the first table shows; None where it shows means that the run does not score."""
    if not shared or len(shared) == len(ran):
        return {}
    return {"dataset": shared[0]} if len(shared) == 1 else None


def _stands(scorecard: Scorecard, where: Mapping[str, str] | None) -> str:
    """Which scores of a slice may be compared, and why the others may not."""
    said: dict[str, list[str]] = {}
    for score in scorecard.scores:
        if score.name in TOLD and score.comparable and dict(score.slice) == where:
            said.setdefault(score.comparable, []).append(score.name)
    if len(said) == 1:
        only = next(iter(said))
        return f"{only[:1].upper()}{only[1:]}."
    return " ".join(f"{', '.join(f'`{name}`' for name in names)}: {why}." for why, names in said.items())
