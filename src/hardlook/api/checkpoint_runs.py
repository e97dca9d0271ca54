"""A run of every checkpoint in a folder, ending in their comparison and the leaderboard beside published results.

After each run its checkpoint's cost is measured, once; no score depends on it.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook.api import run_costs
from hardlook.api.run_costs import build_costs_sections
from hardlook.api.runs import Run
from hardlook.api.several_models import ModelRuns, Overview, check_models, run_each, split_model_arguments
from hardlook.cloud.data_copies import fetch_data
from hardlook.cloud.run_folders import locate_run
from hardlook.errors import HardlookError, ModelError, OptionError, RunWarning, TooManyFailures
from hardlook.harness.benchmark import Benchmark
from hardlook.harness.registry import find_benchmark
from hardlook.harness.sections import Section, Table
from hardlook.models.families.downloads import forbid_downloads
from hardlook.models.interactive.checkpoint_folder import CheckpointFolder, FoundCheckpoint, find_checkpoints

if TYPE_CHECKING:
    from hardlook.api.comparing import Leaderboards

ROLE = "promptable-segmenter"
"""The role whose checkpoints are known by their tensors."""


class CheckpointRuns(ModelRuns):
    """The runs of a folder's checkpoints by the names of their files: `runs["coco_lvis_h18_itermask"]`.

    `checkpoints` says what each file is and which files are none, `stopped` by name why some could not run;
    `leaderboard` has the runs beside published results, and is None while no run is scored.
    """

    def __init__(
        self,
        runs: Mapping[str, Run],
        overview: Overview | None,
        checkpoints: CheckpointFolder,
        leaderboard: Leaderboards | None,
        stopped: Mapping[str, str],
    ) -> None:
        super().__init__(runs, overview)
        self.checkpoints, self.leaderboard, self.stopped = checkpoints, leaderboard, stopped


@dataclass(frozen=True)
class PlannedCheckpoint:
    """A checkpoint and all arguments of its model."""

    checkpoint: FoundCheckpoint
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class CheckpointPlan:
    """What will run, by the name of each run's folder."""

    checkpoints: CheckpointFolder
    runs: Mapping[str, PlannedCheckpoint]


def plan_checkpoints(
    benchmark: Benchmark, folder: str | Path, model_args: Mapping[str, Any], **taken: Any
) -> CheckpointPlan:
    """The checkpoints of a folder with their arguments, checked before anything runs.

    `taken` are options that choose a model in another way, of which none may be given.
    """
    if benchmark.card.role != ROLE:
        raise OptionError(
            f"checkpoints are of interactive segmenters, and {benchmark.card.name} runs a {benchmark.card.role}",
            remedy="give --model; `hardlook models` lists them",
        )
    if given := [name for name, value in taken.items() if value]:
        raise OptionError(
            f"the checkpoints of {folder} are the models, and {', '.join(given)} is given beside them",
            remedy="give one of them",
        )
    checkpoints = find_checkpoints(fetch_data(folder).expanduser())
    arguments = split_model_arguments([one.name for one in checkpoints.found], model_args)
    runs = {one.name: PlannedCheckpoint(one, {**arguments[one.name], **one.arguments}) for one in checkpoints.found}
    for planned in runs.values():
        check_models(ROLE, {planned.checkpoint.model: planned.arguments})
    return CheckpointPlan(checkpoints, runs)


def run_plan(
    benchmark: Benchmark,
    plan: CheckpointPlan,
    out: Path,
    run_one: Callable[[str], Run],
    show: Callable[[Overview], None] | None = None,
    *,
    cost: Callable[[Run], None] | None = None,
) -> CheckpointRuns:
    """Run what is planned, each in the folder of its name below `out`, and write the overview and the leaderboard.

    A checkpoint that cannot be loaded, or fails on too many units, is a warning, and the others run; an error where
    none can. `cost` is called after each run and may leave what its model costs in its folder.
    """
    from hardlook.api.comparing import leaderboard

    stopped: dict[str, HardlookError] = {}

    def run_and_measure(name: str) -> Run | None:
        try:
            run = run_one(name)
        except HardlookError as error:
            if not _is_of_checkpoint(error, plan.runs[name].checkpoint):
                raise
            stopped[name] = error
            if len(stopped) == len(plan.runs):
                raise
            warnings.warn(f"{name} did not run: {error.what}; the others do", RunWarning, stacklevel=2)
            return None
        if cost is not None:
            cost(run)
        return run

    def build_more() -> list[Section]:
        costs = build_costs_sections(benchmark, [out / name for name in plan.runs])
        return [*costs, build_checkpoints_section(plan.checkpoints, _list_reasons(stopped))]

    done = run_each(benchmark, list(plan.runs), out, run_and_measure, show, build_more)
    board = None if done.overview is None else leaderboard(out, benchmark=benchmark.card.name, out=out)
    runs = dict(zip(done.names, done, strict=True))
    return CheckpointRuns(runs, done.overview, plan.checkpoints, board, _list_reasons(stopped))


def _is_of_checkpoint(error: HardlookError, checkpoint: FoundCheckpoint) -> bool:
    """Whether an error is one of this checkpoint alone, so that others may run."""
    return isinstance(error, ModelError | TooManyFailures) or error.file == str(checkpoint.path)


def _list_reasons(stopped: Mapping[str, HardlookError]) -> dict[str, str]:
    return {name: error.what for name, error in stopped.items()}


def run_checkpoints(
    benchmark: str | Benchmark,
    folder: str | Path,
    run_one: Callable[..., Run],
    *,
    model_args: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    offline: bool = False,
    threads: int = 1,
    measure_cost: bool = True,
    **taken: Any,
) -> CheckpointRuns:
    """Run every checkpoint of a folder; `run_one` is `hl.run` with all other arguments."""
    found = find_benchmark(benchmark) if isinstance(benchmark, str) else benchmark
    with forbid_downloads(offline):
        plan = plan_checkpoints(found, folder, model_args or {}, **taken)
        if refused := plan.checkpoints.refused:
            what = "; ".join(f"{name}: {why}" for name, why in refused.items())
            warnings.warn(f"{folder}: {len(refused)} files are not recognised: {what}", RunWarning, stacklevel=3)
        target = Path(tempfile.mkdtemp(prefix="hardlook-")) if out is None else locate_run(Path(out).expanduser())

        def run_planned(name: str) -> Run:
            planned = plan.runs[name]
            return run_one(
                benchmark, model=planned.checkpoint.model, model_args=dict(planned.arguments), out=target / name
            )

        measure = partial(run_costs.measure_cost, found, threads=threads) if measure_cost else None
        return run_plan(found, plan, target, run_planned, cost=measure)


def build_checkpoints_section(checkpoints: CheckpointFolder, stopped: Mapping[str, str]) -> Section:
    """Each file with the model that ran it, those that could not run, and files that were not recognised."""
    tables = [
        Table(
            "The checkpoints of this run",
            "Model and size are recognised by the tensors in each file.",
            ("file", "model", "size", "decided by", "its report"),
            tuple(
                (one.path.name, one.model, one.size, one.note or "its tensors", _name_report(one, stopped))
                for one in checkpoints.found
            ),
        )
    ]
    if stopped:
        tables.append(
            Table(
                f"{len(stopped)} checkpoints that could not run",
                "They were recognised, but could not be loaded, or failed on too many units.",
                ("checkpoint", "why"),
                tuple(stopped.items()),
            )
        )
    if checkpoints.refused:
        tables.append(
            Table(
                f"{len(checkpoints.refused)} files that were not recognised",
                "They have the ending of a checkpoint, and did not run.",
                ("file", "why"),
                tuple(checkpoints.refused.items()),
            )
        )
    others = f"; {checkpoints.others} others have no ending of a checkpoint" if checkpoints.others else ""
    failed = f" ({len(stopped)} of them could not run)" if stopped else ""
    found, refused = len(checkpoints.found), len(checkpoints.refused)
    counts = f"{found} files are checkpoints{failed}, {refused} were not recognised{others}."
    return Section("The checkpoints", counts, tuple(tables))


def _name_report(checkpoint: FoundCheckpoint, stopped: Mapping[str, str]) -> str:
    return "did not run" if checkpoint.name in stopped else f"{checkpoint.name}/report.html"
