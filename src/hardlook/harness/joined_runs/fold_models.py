"""Models that are trained per fold: one run for each fold with its own arguments, joined into one.

`--model-arg 'weights=fold{fold}.pth'` names the weights of all folds at once. The runs of the folds are in `parts/` of
the run folder; each resumes on its own.

>>> fill_fold({"weights": "fold{fold}.pth", "size": 473}, 2)
{'weights': 'fold2.pth', 'size': 473}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

from hardlook.cloud.data_copies import fetch_options
from hardlook.errors import OptionError
from hardlook.harness.benchmark import Benchmark
from hardlook.harness.joined_runs.joining import check_target, join_runs
from hardlook.harness.joined_runs.merged_settings import FOLD
from hardlook.harness.options import parse_options
from hardlook.harness.registry import find_benchmark
from hardlook.harness.runs.folder import RunFolder
from hardlook.harness.runs.launch import RunProgress, RunResult, RunSettings, launch


def launch_folds(
    benchmark: str | Benchmark,
    *,
    out: Path,
    model_args: Mapping[str, Any] | None = None,
    given: Mapping[str, Any] | None = None,
    settings: RunSettings | None = None,
    **more: Any,
) -> RunResult:
    """Do what `launch` does; where an argument of the model has `{fold}`, once for each fold, and join the runs."""
    args, given, settings = dict(model_args or {}), dict(given or {}), settings or RunSettings()
    if not has_fold(args):
        return launch(benchmark, out=out, model_args=args, given=given, settings=settings, **more)
    found = find_benchmark(benchmark) if isinstance(benchmark, str) else benchmark
    folds = list_model_folds(found, given, args)
    if len(folds) == 1:
        own = fill_fold(args, folds[0])
        return launch(benchmark, out=out, model_args=own, given=given, settings=settings, **more)
    if settings.new and settings.shard is not None:
        raise OptionError("--new with --shard would set the other shards' work aside", remedy="use a new --out")
    check_fold_files(args, folds)
    target = RunFolder(out)
    check_target(target, new=settings.new)
    parts = [target.parts_path / f"fold{fold}" for fold in folds]
    results = [
        launch(
            benchmark,
            out=part,
            model_args=fill_fold(args, fold),
            given={**given, "folds": (fold,)},
            settings=replace(settings, new=False),
            **more,
        )
        for fold, part in zip(folds, parts, strict=True)
    ]
    progress = RunProgress(*map(sum, zip(*(astuple(result.progress) for result in results), strict=True)))
    if progress.open:
        return RunResult(progress, None)
    return RunResult(progress, join_runs(parts, out))


def has_fold(args: Mapping[str, Any]) -> bool:
    """Whether an argument of a model has `{fold}`."""
    return any(isinstance(value, str) and FOLD in value for value in args.values())


def fill_fold(args: Mapping[str, Any], fold: int) -> dict[str, Any]:
    """The arguments of the model of one fold."""
    return {name: value.replace(FOLD, str(fold)) if isinstance(value, str) else value for name, value in args.items()}


def check_fold_files(args: Mapping[str, Any], folds: Sequence[int]) -> None:
    """Raise an error where an argument is a file or folder for some folds and none for others.

    The model of the last fold is built when all others have answered, which is late to learn that its file is missing.
    """
    for name, value in args.items():
        if not has_fold({name: value}) or not (Path(value).suffix or Path(value).name != value):
            continue
        paths = [Path(value.replace(FOLD, str(fold))).expanduser() for fold in folds]
        absent = [str(path) for path in paths if not path.exists()]
        if absent and len(absent) < len(paths):
            what = f"--model-arg {name}={value}: there is no {', '.join(absent)}"
            raise OptionError(what, remedy="give the weights of every fold, or choose folds with --folds")


def list_model_folds(benchmark: Benchmark, given: Mapping[str, Any], args: Mapping[str, Any]) -> Sequence[int]:
    """The folds of a run whose model has arguments with `{fold}`; an error where the benchmark has no folds."""
    if benchmark.list_folds is None:
        name = next(name for name, value in args.items() if isinstance(value, str) and FOLD in value)
        what = f"--model-arg {name}={args[name]}: {benchmark.card.name} has no folds"
        raise OptionError(what, remedy=f"give the value without {FOLD}")
    return benchmark.list_folds(fetch_options(parse_options(benchmark.options, dict(given))))
