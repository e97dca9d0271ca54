"""Published scores of RClicks: 33 checkpoints of 11 methods on five datasets, under our names of scores.

From "RClicks: Realistic Click Simulation for Benchmarking Interactive Segmentation" (NeurIPS 2024), Tables 9 (NoC),
10 (NoF), 11 (IoU-AuC) and 12 (one click, NSR). Values are as printed: clicks, instances, and the rest in percent. NoC
is printed at 90 % alone. Means over datasets are ours: Table 4, which speaks of them, prints DAVIS, COCO-MVal and
TETRIS one by one.

Table 4 calls the small, base+ and large Hiera of both SAM 2 the next size up (B+, L and H); the sizes here are those
of the checkpoints' names.

>>> mobile = checkpoint("mobile_sam")
>>> mobile.label, mobile.scores["grabcut"]["noc90-base"], round(mobile.mean()["dgr"], 3)
('MobileSAM ViT-Tiny (SA-1B)', 1.7, 15.48)
>>> len(CHECKPOINTS), len(PUBLISHED)
(33, 198)
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType

from hardlook.contract.published import PublishedResult
from hardlook.contract.scorecard import Scorecard

# Instances of each dataset, all of which the published scores count.
INSTANCES = MappingProxyType({"grabcut": 50, "berkeley": 100, "davis": 345, "coco-mval": 800, "tetris": 2531})
DATASETS = tuple(INSTANCES)
TITLES = MappingProxyType(
    {"grabcut": "GrabCut", "berkeley": "Berkeley", "davis": "DAVIS", "coco-mval": "COCO-MVal", "tetris": "TETRIS"}
)
_NOTE = (
    "comparable with all {instances} instances of {where}, 20 rounds and ten groups of the threshold rule, drawn from "
    "the paper's own clickability network; scores of the centre rule need no click model"
)


@dataclass(frozen=True)
class Checkpoint:
    """A published checkpoint: the authors' name for it, what it is, and its scores by dataset and name."""

    name: str
    method: str
    backbone: str
    trained_on: str
    scores: Mapping[str, Mapping[str, float]]

    @property
    def label(self) -> str:
        """Method, backbone and training data."""
        return f"{self.method} {self.backbone} ({self.trained_on})"

    def mean(self, datasets: Iterable[str] = DATASETS) -> dict[str, float]:
        """Every score's plain mean over these datasets, each of which weighs alike."""
        chosen = [self.scores[dataset] for dataset in datasets]
        if not chosen:
            raise ValueError(f"expected at least one of {', '.join(DATASETS)}, got no dataset")
        return {name: sum(scores[name] for scores in chosen) / len(chosen) for name in SCORE_NAMES}


def checkpoint(name: str) -> Checkpoint:
    """The checkpoint of that name, as the authors spell it; a KeyError where there is none."""
    return _BY_NAME[name]


def published_slice(scorecard: Scorecard) -> dict[str, str]:
    """The slice that scores over all units are of: one dataset, some of them, or all five (none).

    >>> from hardlook.contract.scorecard import Score
    >>> published_slice(Scorecard("rclicks", "1", "", (Score("noc90", 2.0, 50, slice={"dataset": "grabcut"}),)))
    {'dataset': 'grabcut'}
    """
    ran = {score.slice["dataset"] for score in scorecard.scores if set(score.slice) == {"dataset"}}
    if ran == set(DATASETS):
        return {}
    return {"dataset": ", ".join(sorted(ran))} if ran else {}


def _read() -> tuple[Checkpoint, ...]:
    text = files("hardlook.benchmarks.rclicks").joinpath("published_checkpoints.csv").read_text(encoding="utf-8")
    found: dict[tuple[str, str, str, str], dict[str, Mapping[str, float]]] = {}
    for row in csv.DictReader(text.splitlines()):
        who = (row.pop("checkpoint"), row.pop("method"), row.pop("backbone"), row.pop("trained_on"))
        dataset = row.pop("dataset")
        scores = {name: float(value) for name, value in row.items()}
        found.setdefault(who, {})[dataset] = MappingProxyType(scores)
    return tuple(Checkpoint(*who, MappingProxyType(scores)) for who, scores in found.items())


def _results() -> Iterable[PublishedResult]:
    everywhere = _NOTE.format(instances=f"{sum(INSTANCES.values()):,}", where="the five datasets")
    everywhere += "; our mean of the five, for the paper prints none"
    for one in CHECKPOINTS:
        yield PublishedResult(one.label, "Tables 9 to 12, mean of five", one.mean(), everywhere)
    for dataset, instances in INSTANCES.items():
        note = _NOTE.format(instances=f"{instances:,}", where=TITLES[dataset])
        for one in CHECKPOINTS:
            source, where = f"Tables 9 to 12, {TITLES[dataset]}", {"dataset": dataset}
            yield PublishedResult(one.label, source, one.scores[dataset], note, where)


# In the order of the paper.
CHECKPOINTS = _read()
_BY_NAME = {one.name: one for one in CHECKPOINTS}
SCORE_NAMES = tuple(CHECKPOINTS[0].scores["grabcut"])
PUBLISHED = tuple(_results())
