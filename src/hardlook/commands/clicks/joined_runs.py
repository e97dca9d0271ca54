"""Runs of RClicks side by side: what each instance's IoU after one click is on average, and how it spreads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.benchmarks.rclicks.difficulty import Difficulty, difficulty_of
from hardlook.benchmarks.rclicks.played import Played, played
from hardlook.errors import RunError
from hardlook.metrics.click_robustness import instance_difficulty, sample_and_deviation

Numbers = NDArray[np.float64]
GROUPS = "the groups' clicks"


@dataclass(frozen=True)
class ClickRun:
    """A run's folder, a name of its own, its model, its clicks and what they found.

    `options` are those it was started with, `planned` its instances, answered or not, and `people_file` the
    fingerprint of the file of people's clicks, "" where there is none.
    """

    folder: Path
    name: str
    model: str
    clicks: str
    table: Played = field(repr=False)
    options: Mapping[str, Any] = field(repr=False)
    planned: int
    people_file: str = ""


@dataclass(frozen=True)
class JoinedRuns:
    """The instances that all runs have: `mean` and `std` (runs, N) of the IoU after one click, in [0, 1].

    `who` says whose clicks; `alone` counts, for each run, its instances that another run lacks, and `clicked` those
    of the N on which people clicked twice or more.
    """

    runs: tuple[ClickRun, ...]
    units: tuple[str, ...]
    datasets: tuple[str, ...]
    mean: Numbers
    std: Numbers
    who: str
    alone: tuple[int, ...]
    clicked: tuple[int, ...]

    @property
    def by_groups(self) -> bool:
        """Whether the groups' clicks count, not people's."""
        return self.who == GROUPS

    @cached_property
    def difficulty(self) -> Numbers:
        """(N,) mean deviation over mean of means; infinite where no click of any run found anything."""
        ratio = instance_difficulty(self.mean, self.std)
        return np.where(np.isnan(ratio), np.inf, ratio)

    @property
    def widest(self) -> ClickRun:
        """The run whose IoUs spread most, in whose pictures there is most to see."""
        return self.runs[int(np.argmax(self.std.mean(1)))]

    @property
    def hardest_first(self) -> NDArray[np.int64]:
        """(N,) places; equal ones by name."""
        return np.asarray(np.argsort(-self.difficulty, kind="stable"), np.int64)


def read_run(folder: Path) -> ClickRun:
    """The answers of a run of RClicks; one without answers, or of another benchmark, is a `RunError`."""
    from hardlook.commands.answers_of_runs import model_of, read_answers

    manifest, records = read_answers(folder, "rclicks")
    if not len(records):
        raise RunError("the run has no answer yet", file=folder, remedy="give its command again to finish it")
    model = model_of(manifest)
    options = manifest["options"]
    people = str(manifest["answers"].get("parts", {}).get("data user_clicks", ""))
    clicks = options.get("clicks", "")
    return ClickRun(folder, folder.name, model, clicks, played(records), options, manifest["units"], people)


def join_runs(runs: Sequence[ClickRun]) -> JoinedRuns:
    """The runs on the instances that all of them have; none in common is a `RunError`.

    People's clicks count where every run has them on all these instances, else the clicking groups'.
    """
    if len(runs) < 2:
        raise RunError("one run alone", remedy="give two or more; the report of a run has its own hard instances")
    shared = sorted(set.intersection(*(set(run.table.units) for run in runs)))
    if not shared:
        raise RunError(
            "the runs have no instance in common",
            file=runs[-1].folder,
            remedy="run all models on the same data with the same --seed and --at-most",
        )
    tables = [run.table.some(np.isin(run.table.units, shared)) for run in runs]
    found = [difficulty_of(table) for table in tables]
    if len({one.who for one in found}) > 1:
        found = [_by_groups(table) for table in tables]
    names = _own_names(runs)
    return JoinedRuns(
        tuple(replace(run, name=name) for run, name in zip(runs, names, strict=True)),
        tables[0].units,
        tuple(tables[0].dataset.tolist()),
        np.stack([one.mean for one in found]),
        np.stack([one.deviation for one in found]),
        found[0].who,
        tuple(len(run.table) - len(shared) for run in runs),
        tuple(sum(len(ious) >= 2 for ious in table.people) for table in tables),
    )


def _by_groups(table: Played) -> Difficulty:
    return Difficulty(*sample_and_deviation(table.iou[:, table.groups, 0]), GROUPS)


def _own_names(runs: Sequence[ClickRun]) -> list[str]:
    """The folders' names, with their parents' where two are called alike."""
    names = [run.name for run in runs]
    return [
        name if names.count(name) == 1 else f"{run.folder.resolve().parent.name}/{name}"
        for run, name in zip(runs, names, strict=True)
    ]
