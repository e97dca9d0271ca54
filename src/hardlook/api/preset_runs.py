"""The runs of a preset: one for each dataset that is given, and one table beside the published rows at the end."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook.api.runs import Run, RunList
from hardlook.cloud.run_folders import locate_run
from hardlook.errors import OptionError, RunWarning
from hardlook.harness.benchmark import Benchmark
from hardlook.harness.presets import Preset, PresetPart, find_preset
from hardlook.harness.registry import find_benchmark
from hardlook.harness.runs.folder import RunFolder

if TYPE_CHECKING:
    from hardlook.api.comparing import Leaderboards
    from hardlook.report.leaderboard.preset_table import PresetTable

DATASET, LABELS = "{dataset}", "{labels}"
"""What stands for a part's data and its label set in `pred` and in arguments of models."""


class PresetRuns(RunList):
    """The runs of a preset by the name of their data: `runs["ade20k"]`, of several models `runs["ade20k/san"]`.

    `table` has their scores beside the published rows, also those of runs that were in the folder before; `page` shows
    it. `leaderboard` is None while no run is scored.
    """

    def __init__(
        self, runs: Mapping[str, Run], table: PresetTable, page: Path, leaderboard: Leaderboards | None
    ) -> None:
        super().__init__(list(runs.values()), tuple(runs))
        self.table, self.page, self.leaderboard = table, page, leaderboard

    def __repr__(self) -> str:
        return "\n".join([super().__repr__(), *(f"not here: {text}" for text in self.table.describe_absent())])


@dataclass(frozen=True)
class PlannedPart:
    """A part with the options that it runs with (those of `hl.run`), and what stands for `{dataset}` and `{labels}`."""

    part: PresetPart
    options: Mapping[str, Any]
    words: Mapping[str, str]

    def fill(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments of a model with the part's words in the place of `{dataset}` and `{labels}`."""
        return {name: self._fill(value) for name, value in arguments.items()}

    def _fill(self, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [self._fill(one) for one in value]
        if isinstance(value, str):
            for word, text in self.words.items():
                value = value.replace(word, text)
        return value


@dataclass(frozen=True)
class PresetPlan:
    """What will run, by the name of the data, and the parts that have none."""

    preset: Preset
    runs: Mapping[str, PlannedPart]
    missing: tuple[PresetPart, ...]

    def describe(self) -> list[str]:
        """Which datasets run and which do not, for people."""
        names = ", ".join(planned.part.dataset for planned in self.runs.values())
        lines = [f"{self.preset.name} ({self.preset.table}): {names}"]
        if self.missing:
            absent = ", ".join(f"{part.dataset} (--data {part.data}=PATH)" for part in self.missing)
            lines.append(f"no data given for {absent}")
        return lines


def is_whole_preset(name: Any) -> bool:
    """Whether `preset` names all of a preset, and not one part of it.

    >>> is_whole_preset("cross-dataset"), is_whole_preset("cross-dataset/ade20k"), is_whole_preset(None)
    (True, False, False)
    """
    return isinstance(name, str) and bool(name) and "/" not in name


def plan_preset(benchmark: Benchmark, name: str, given: Mapping[str, Any], *, has_model: bool) -> PresetPlan:
    """The runs of a preset for the options `given` (with `data`, `gt`, `pred`), checked before anything runs.

    With a model, the words it may choose from are the labels of each dataset, unless `pred_labels` is given or its
    words are free.
    """
    preset, _ = find_preset(benchmark.card.presets(), name)
    data = dict(given.get("data") or {})
    for one in data:
        preset.find_part(one)
    chosen = [part for part in preset.parts if part.data in data]
    if given.get("gt") is not None:
        if len(preset.parts) > 1 or data:
            names = ", ".join(part.data for part in preset.parts)
            what = f"--gt beside --preset {name}: it is not said of which dataset"
            raise OptionError(what, remedy=f"give --data NAME=PATH of {names}")
        chosen = list(preset.parts)
    if not chosen:
        wanted = " ".join(f"--data {part.data}=PATH" for part in preset.parts)
        raise OptionError(f"--preset {name} needs data", remedy=f"give one or more of {wanted}")
    pred = given.get("pred")
    if pred is not None and len(chosen) > 1 and DATASET not in str(pred):
        what = f"--pred {pred} is one place, and {', '.join(part.data for part in chosen)} are {len(chosen)} datasets"
        remedy = f"write {DATASET} where their names stand in the paths (out/{DATASET}/inference), or give one dataset"
        raise OptionError(what, remedy=remedy)
    runs = {}
    for part in chosen:
        labels = str(given.get("labels") or part.options.get("labels", ""))
        own: dict[str, Any] = {**given, "preset": preset.name_part(part)}
        own["data"] = {part.data: data[part.data]} if part.data in data else {}
        planned = PlannedPart(part, own, {DATASET: part.data, LABELS: labels})
        if pred is not None:
            own["pred"] = Path(planned.fill({"pred": str(pred)})["pred"])
        elif has_model and labels and given.get("pred_labels") is None and given.get("pred_words") != "free":
            own["pred_labels"] = labels
        runs[part.data] = planned
    return PresetPlan(preset, runs, tuple(part for part in preset.parts if part not in chosen))


def run_plan(
    benchmark: Benchmark, plan: PresetPlan, out: Path, run_one: Callable[[str], Mapping[str, Run]]
) -> PresetRuns:
    """Run what is planned, each in the folder of its data below `out`; table and page are written also where one stops.

    `run_one` gets the name of the data and returns runs by name.
    """
    from hardlook.api.comparing import leaderboard
    from hardlook.report.leaderboard.preset_table import build_preset_table, write_preset_table

    if RunFolder(out).exists():
        what = "this is a run, and the runs of a preset lie in folders of their own below --out"
        raise OptionError(what, file=out, remedy="choose another folder")
    runs: dict[str, Run] = {}
    try:
        for name in plan.runs:
            runs.update(run_one(name))
    finally:
        table = build_preset_table(benchmark, plan.preset, out)
        page = write_preset_table(table, out) if out.is_dir() else out
    board = leaderboard(out, benchmark=benchmark.card.name, out=out) if table.runs else None
    return PresetRuns(runs, table, page, board)


def run_preset(
    benchmark: str | Benchmark,
    name: str,
    run_part: Callable[..., Any],
    given: Mapping[str, Any],
    *,
    model: Any = None,
    model_args: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
) -> PresetRuns:
    """Run a preset; `run_part` is `hl.run` with the arguments that all parts share."""
    found = find_benchmark(benchmark) if isinstance(benchmark, str) else benchmark
    plan = plan_preset(found, name, given, has_model=model is not None)
    if plan.missing:
        warnings.warn(plan.describe()[-1], RunWarning, stacklevel=3)
    target = Path(tempfile.mkdtemp(prefix="hardlook-")) if out is None else locate_run(Path(out).expanduser())

    def run_one(data: str) -> dict[str, Run]:
        planned = plan.runs[data]
        done = run_part(
            benchmark, model=model, model_args=planned.fill(model_args or {}), out=target / data, **planned.options
        )
        return name_part_runs(data, done)

    return run_plan(found, plan, target, run_one)


def name_part_runs(data: str, done: Any) -> dict[str, Run]:
    """The run of a part, or its runs of several models, by the names that `PresetRuns` has for them."""
    if isinstance(done, Run):
        return {data: done}
    return {f"{data}/{name}": run for name, run in zip(done.names, done, strict=True)}
