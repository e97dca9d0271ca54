"""The runs of a leaderboard: their names, how they differ from the first run, and the slice of their overall scores.

Runs are ranked together where units, data, settings and readings are the same. What belongs to the method itself (the
model, stored predictions, the encoder of a few-shot learner) may differ.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hardlook.errors import HardlookError
from hardlook.harness.benchmark import Benchmark
from hardlook.harness.options import parse_options
from hardlook.report.leaderboard.runs import LeaderboardRun

Settings = Mapping[str, Any]

ModelMarks = Callable[[str], Sequence[str]]

# Options that change neither the units nor the input of a model, and paths, which have fingerprints.
_FREE = {"resamples", "level", "compare", "keep_predictions", "prompts_a_call", "reading", "data", "gt", "gt_masks"}

# Parts of the method, by the role of the model under test.
_METHOD = {"few-shot-learner": {"encoder", "encoder_args", "encoder model"}}


@dataclass(frozen=True)
class RunEntry:
    """A run with its name and data, why it has no rank (empty where it has), and the slice of its overall scores."""

    run: LeaderboardRun
    method: str
    flags: tuple[str, ...]
    where: Mapping[str, str]
    data: str

    @property
    def readings(self) -> str:
        """The readings that ran, as they are given on a command line."""
        return ", ".join(f"{reading.name}={reading.value}" for reading in self.run.scorecard.readings)


def make_run_entries(
    benchmark: Benchmark, runs: Sequence[LeaderboardRun], marks: ModelMarks | None = None
) -> tuple[tuple[RunEntry, ...], RunEntry]:
    """All entries in the order of their runs, and the one that the others are compared with."""
    settings = [collect_settings(run, benchmark.card.role) for run in runs]
    first = find_first_run(settings)
    named = [(run.scorecard.model, (run.manifest["model"] or {}).get("args", {}), run.folder) for run in runs]
    models = {model for model, _, _ in named}
    transductive = {model for model in models if marks and "transductive" in marks(model)}
    entries = []
    for run, name, own in zip(runs, name_runs(named), settings, strict=True):
        flags, units = list(describe_differences(own, settings[first])), run.scorecard.units
        if units.failed:
            flags.append(f"{units.failed} of {units.planned} units failed")
        if (run.scorecard.model in transductive) != (runs[first].scorecard.model in transductive):
            flags.append("this run or the first is transductive: it sees all queries of a task together")
        where, data = _find_published_slice(benchmark, run), describe_data(run.manifest["options"])
        entries.append(RunEntry(run, name, tuple(flags), where, data))
    return tuple(entries), entries[first]


def collect_settings(run: LeaderboardRun, role: str) -> Settings:
    """Everything that must be the same for two runs to be ranked together, as a flat dict."""
    method = _METHOD.get(role, set())
    parts = run.manifest["answers"].get("parts", {})
    settings: dict[str, Any] = {"units": parts.get("units", "")}
    for name, value in parts.items():
        source = name.removeprefix("data ")
        if name.startswith("data ") and not source.startswith("pred") and source not in method:
            settings[name] = value
    for name, value in run.manifest["options"].items():
        if name not in _FREE | method and not name.startswith("pred"):
            settings[f"option {name}"] = value
    for reading in run.scorecard.readings:
        settings[f"reading {reading.name}"] = reading.value
    return settings


def find_first_run(settings: Sequence[Settings]) -> int:
    """The run that the others are compared with: the earliest of the largest group with the same settings.

    >>> find_first_run([{"units": "b"}, {"units": "a"}, {"units": "a"}])
    1
    """
    groups: dict[str, list[int]] = {}
    for index, one in enumerate(settings):
        groups.setdefault(_dump(one), []).append(index)
    return max(groups.values(), key=lambda group: (len(group), -group[0]))[0]


def describe_differences(settings: Settings, first: Settings) -> tuple[str, ...]:
    """How settings differ from those of the first run; a setting that only one of the two has is not compared.

    >>> describe_differences({"units": "a", "option rounds": 8}, {"units": "a", "option rounds": 20})
    ('other settings than the first run: rounds=8',)
    """
    differing = [name for name in settings if name in first and _dump(settings[name]) != _dump(first[name])]

    def select(start: str) -> list[str]:
        return [name.removeprefix(start) for name in differing if name.startswith(start)]

    def text(value: Any) -> str:
        return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)

    flags = []
    if "units" in differing:
        flags.append("other units than the first run")
    else:
        if names := select("data "):
            flags.append(f"other data than the first run: {', '.join(names)}")
        if names := select("option "):
            values = ", ".join(f"{name}={text(settings[f'option {name}'])}" for name in names)
            flags.append(f"other settings than the first run: {values}")
    if names := select("reading "):
        values = ", ".join(f"{name}={settings[f'reading {name}']}" for name in names)
        flags.append(f"other readings than the first run: {values}")
    return tuple(flags)


def name_runs(runs: Sequence[tuple[str, Mapping[str, Any], str]]) -> list[str]:
    """A name for each (model, arguments, folder): the model, its differing arguments, and the folder where needed.

    >>> name_runs([("net", {"k": 1, "seed": 0}, "a"), ("net", {"k": 2, "seed": 0}, "b"), ("other", {}, "c")])
    ['net k=1', 'net k=2', 'other']
    >>> name_runs([("net", {}, "a"), ("net", {}, "b")])
    ['net (a)', 'net (b)']
    """
    values: dict[str, dict[str, set[str]]] = {}
    counts = Counter(model for model, _, _ in runs)
    for model, arguments, _ in runs:
        for key, value in arguments.items():
            values.setdefault(model, {}).setdefault(key, set()).add(str(value))
    names = []
    for model, arguments, _ in runs:
        differing = [key for key in arguments if len(values[model][key]) > 1] if counts[model] > 1 else []
        names.append(" ".join([model, *(f"{key}={arguments[key]}" for key in differing)]))
    repeated = Counter(names)
    return [f"{name} ({run[2]})" if repeated[name] > 1 else name for name, run in zip(names, runs, strict=True)]


def describe_data(options: Mapping[str, object]) -> str:
    """The data of a run, by the names of folders and files, without their paths.

    >>> describe_data({"data": {"voc": "/data/VOC2012"}, "gt": None}), describe_data({"data": {}})
    ('voc=VOC2012', 'planted world')
    """
    given = options.get("data")
    paths = dict(given) if isinstance(given, Mapping) else {}
    if options.get("gt"):
        paths["gt"] = options["gt"]
    named = [f"{name}={str(path).rstrip('/').rpartition('/')[2]}" for name, path in paths.items()]
    return ", ".join(named) or "planted world"


def _find_published_slice(benchmark: Benchmark, run: LeaderboardRun) -> Mapping[str, str]:
    if benchmark.published_slice is None:
        return {}
    try:
        options = parse_options(benchmark.options, dict(run.manifest["options"]))
    except HardlookError:
        return {}
    return dict(benchmark.published_slice(run.scorecard, options))


def _dump(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
