"""`hl.run`: run or resume a benchmark. `hardlook run` calls it and adds nothing but printing."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, overload

from hardlook.api.runs import Run
from hardlook.cloud.data_copies import fetch_data
from hardlook.cloud.run_folders import open_run
from hardlook.errors import OptionError
from hardlook.harness.benchmark import Benchmark
from hardlook.harness.registry import find_benchmark
from hardlook.harness.runs.engines import ENGINES, EngineName

if TYPE_CHECKING:
    from hardlook.api.checkpoint_runs import CheckpointRuns
    from hardlook.api.preset_runs import PresetRuns
    from hardlook.api.several_models import ModelRuns
    from hardlook.api.single_units import UnitResults
    from hardlook.harness.runs.launch import RunSettings

Progress = Callable[[int, int], Any]


class Items(Protocol):
    """A dataset as torch has it: its length, and items (image, target) by position."""

    def __len__(self) -> int: ...

    def __getitem__(self, position: Any, /) -> Any: ...


_UNIT_PAGE = "leave `out` away; `.page(FILE)` of the result writes a page with the units' pictures"

Paths = Mapping[str, "str | Path | Items"] | str | Path | Items


@overload
def run(
    benchmark: str | Benchmark,
    *,
    unit: str | Sequence[str],
    model: Any = None,
    model_args: Mapping[str, Any] | None = None,
    offline: bool = False,
    **settings: Any,
) -> UnitResults: ...


@overload
def run(
    benchmark: str | Benchmark,
    *,
    model: list[Any] | tuple[Any, ...],
    model_args: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    offline: bool = False,
    **settings: Any,
) -> ModelRuns: ...


@overload
def run(
    benchmark: str | Benchmark,
    *,
    preset: str,
    model: Any = None,
    model_args: Mapping[str, Any] | None = None,
    data: Paths | None = None,
    gt: str | Path | None = None,
    pred: str | Path | None = None,
    out: str | Path | None = None,
    offline: bool = False,
    **settings: Any,
) -> Any: ...


@overload
def run(
    benchmark: str | Benchmark,
    *,
    checkpoints: str | Path,
    measure_cost: bool = True,
    model_args: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    offline: bool = False,
    **settings: Any,
) -> CheckpointRuns: ...


@overload
def run(
    benchmark: str | Benchmark,
    *,
    model: Any = None,
    model_args: Mapping[str, Any] | None = None,
    weights: str | Path | None = None,
    device: str | None = None,
    data: Paths | None = None,
    gt: str | Path | None = None,
    pred: str | Path | None = None,
    reading: Mapping[str, str] | None = None,
    seed: int | None = None,
    out: str | Path | None = None,
    engine: EngineName = "inline",
    workers: int = 2,
    address: str = "",
    gpus: float = 0.0,
    prefetch: int | None = None,
    shard: tuple[int, int] | None = None,
    batch_size: int | None = None,
    threads: int = 1,
    unit_timeout: float | None = None,
    on_error: Literal["record", "stop"] = "record",
    max_failures: float = 0.01,
    new: bool = False,
    full_fingerprint: bool = False,
    offline: bool = False,
    progress: bool | Progress = True,
    report: bool = True,
    **options: Any,
) -> Run: ...


def run(
    benchmark: str | Benchmark,
    *,
    model: Any = None,
    model_args: Mapping[str, Any] | None = None,
    weights: str | Path | None = None,
    device: str | None = None,
    data: Paths | None = None,
    gt: str | Path | None = None,
    pred: str | Path | None = None,
    reading: Mapping[str, str] | None = None,
    seed: int | None = None,
    out: str | Path | None = None,
    engine: EngineName = "inline",
    workers: int = 2,
    address: str = "",
    gpus: float = 0.0,
    prefetch: int | None = None,
    shard: tuple[int, int] | None = None,
    batch_size: int | None = None,
    threads: int = 1,
    unit_timeout: float | None = None,
    on_error: Literal["record", "stop"] = "record",
    max_failures: float = 0.01,
    new: bool = False,
    full_fingerprint: bool = False,
    offline: bool = False,
    progress: bool | Progress = True,
    report: bool = True,
    unit: str | Sequence[str] | None = None,
    checkpoints: str | Path | None = None,
    measure_cost: bool = True,
    **options: Any,
) -> Run | ModelRuns | UnitResults | PresetRuns:
    """Run a benchmark, or resume the run in the folder `out`: the same run as that of `hardlook run`.

    With `preset="cross-dataset"` and the like it is a table of the paper: one run for each dataset in `data`, in a
    folder of its name below `out`. `{dataset}` in `pred` and in arguments of the model is that name, `{labels}` its
    label set. The result is a list of runs with their `table` beside the published rows.

    Names and options are those of the command line, with underscores: `hl.run("toss", model=net, data={"voc":
    "VOC2012", "pairs": "TOSS"}, tiers="1,2", out="runs/mine")`.

    Args:
        benchmark: A name (`hl.benchmarks()` lists them), or a `Benchmark`.
        model: A name (`hl.models()` lists them), `package.module:Class`, or an object that has the methods of the
            benchmark's role; a network or function that has not is wrapped by `hl.wrap`. An object is known by a hash
            of its source and of everything it holds. A list of models is run one by one, each in a folder of its name
            below `out`; the result is then a list of runs with their comparison (`compared`).
        model_args: Arguments of a model that is given by name; of several models, those of one begin with its name and
            a dot.
        weights: A weights file of your own, for a model that is given by name.
        device: Such as `cuda`; of learners on features it is that of the encoder, too.
        data: Datasets by name, or one path where the benchmark takes one folder; none means the planted world. A
            dataset object, such as torchvision's, is called `dataset`; it is known by a hash of its decoded items.
        gt: Ground truth of stored predictions.
        pred: Stored predictions, scored in place of a model.
        reading: Which reading, where a paper's text and numbers differ.
        seed: Seed of everything that is drawn.
        out: The run folder, or an address such as `s3://bucket/run`; without one a new temporary folder, which
            `Run.folder` names.
        engine: Where units are evaluated: `inline`, `processes` or `ray`.
        workers: Processes or Ray actors.
        address: An existing Ray cluster.
        gpus: GPUs that a Ray actor takes.
        prefetch: Inline, processes that read files ahead; 2 on a GPU.
        shard: (i, N) evaluates the i-th of N parts of a run that processes share.
        batch_size: Units per batch; None keeps the folder's, or chooses one.
        threads: Threads of each worker.
        unit_timeout: Seconds after which a unit fails.
        on_error: `record` a failed unit and continue, or `stop`.
        max_failures: Share of failed units above which the run stops.
        new: Set an earlier run in the folder aside.
        full_fingerprint: Hash all files anew, without the cache.
        offline: Download no weights: a model whose weights are not on this machine is an error that says where they go.
        progress: Whether to show a progress bar; or a function of total and done that returns one.
        report: Whether to write `report.html`.
        unit: Ids of a few units: they alone are evaluated, in this process, and nothing is written. The result has
            their records, pictures and errors.
        checkpoints: A folder of published checkpoints of interactive segmenters, in place of `model`: each file runs
            as the model that its tensors tell, in a folder of its name below `out`, and `leaderboard.html` ranks them
            beside the published results. The result is a list of runs with `checkpoints`, `compared`, `leaderboard`.
        measure_cost: With `checkpoints`, whether to measure what each costs after its run, once; scores stay the same.
        **options: The benchmark's own options; `hardlook run BENCHMARK --help` lists them.
    """
    arguments = dict(locals())  # Nothing else has a name yet.

    def repeat_without(*names: str, **more: Any) -> Callable[..., Any]:
        """The same function with the arguments of this call but for these, and `more` options."""
        others = {"benchmark", "model", "model_args", "out", "options", *names}
        return partial(run, **{key: value for key, value in arguments.items() if key not in others}, **more)

    if unit is not None and out is not None:
        raise OptionError(f"unit={unit!r} makes no run, and out={str(out)!r} names a folder for one", remedy=_UNIT_PAGE)
    if checkpoints is not None:
        from hardlook.api.checkpoint_runs import run_checkpoints

        taken = {"model": model, "weights": weights, "pred": pred, "unit": unit}
        return run_checkpoints(
            benchmark,
            checkpoints,
            repeat_without("checkpoints", "measure_cost", *taken, **options),
            model_args=model_args,
            out=out,
            offline=offline,
            threads=threads,
            measure_cost=measure_cost,
            **taken,
        )
    from hardlook.api.preset_runs import is_whole_preset

    if unit is None and is_whole_preset(options.get("preset")):
        from hardlook.api.preset_runs import run_preset

        run_part = repeat_without("data", "gt", "pred")
        choices: dict[str, Any] = {**options, "data": _name_paths(data), "gt": gt, "pred": pred}
        return run_preset(benchmark, options["preset"], run_part, choices, model=model, model_args=model_args, out=out)
    if isinstance(model, list | tuple) and unit is not None:
        return _evaluate_models(benchmark, model, repeat_without(**options), model_args)
    if isinstance(model, list | tuple):
        from hardlook.api.several_models import run_models

        run_one = repeat_without(**options)
        choices = {**options, "data": _name_paths(data), "reading": dict(reading or {})}
        return run_models(benchmark, model, run_one, given=choices, model_args=model_args, out=out, offline=offline)
    from hardlook.harness.joined_runs.fold_models import launch_folds
    from hardlook.harness.runs.progress import make_progress
    from hardlook.models.families.downloads import forbid_downloads

    found = find_benchmark(benchmark) if isinstance(benchmark, str) else benchmark
    given: dict[str, Any] = {**options, "data": _name_paths(data), "reading": dict(reading or {})}
    given.update({key: value for key, value in (("gt", gt), ("pred", pred), ("seed", seed)) if value is not None})
    args = dict(model_args or {})
    weights = None if weights is None else fetch_data(weights)
    args.update({key: str(value) for key, value in (("weights", weights), ("device", device)) if value is not None})
    if model is None or isinstance(model, str):
        given, args = pass_device_to_encoder(found, given, model, args, device)
    else:
        model = _serve(model, found)
    show_progress = progress if callable(progress) else make_progress if progress else None
    if unit is not None:
        from hardlook.api.single_units import evaluate_single_units

        with forbid_downloads(offline):
            return evaluate_single_units(
                benchmark,
                unit,
                model=model,
                model_args=args,
                given=given,
                threads=threads,
                show_progress=show_progress,
            )
    settings = build_settings(
        engine=engine,
        workers=workers,
        prefetch=prefetch,
        address=address,
        gpus=gpus,
        unit_timeout=unit_timeout,
        on_error=on_error,
        max_failures=max_failures,
        shard=shard,
        new=new,
        on_gpu=str(args.get("device", getattr(model, "device", ""))).startswith("cuda"),
    )
    folder = Path(tempfile.mkdtemp(prefix="hardlook-")) / "run"
    if out is not None:
        folder = open_run(Path(out).expanduser(), write=True)
    with forbid_downloads(offline):
        done = launch_folds(
            benchmark,
            out=folder,
            model=model,
            model_args=args,
            given=given,
            settings=settings,
            batch_size=batch_size,
            threads=threads,
            full_fingerprint=full_fingerprint,
            show_progress=show_progress,
        )
    if done.scored is not None and report:
        from hardlook.report.run_report import write_report

        write_report(done.scored)
    return Run(folder, scored=done.scored, progress=done.progress)


def _evaluate_models(
    benchmark: str | Benchmark,
    models: Sequence[Any],
    run_one: Callable[..., UnitResults],
    model_args: Mapping[str, Any] | None,
) -> UnitResults:
    """The results of several models on the same units, one model after the other."""
    from hardlook.api.several_models import split_model_arguments
    from hardlook.models.object_identity import name_object

    if not models:
        raise OptionError("model=[] names no model", remedy="`hl.models()` lists them")
    names = [one if isinstance(one, str) else name_object(one) for one in models]
    arguments = split_model_arguments(names, model_args or {})
    every = [run_one(benchmark, model=one, model_args=arguments[name]) for name, one in zip(names, models, strict=True)]
    return sum(every[1:], start=every[0])


def join(runs: list[str | Path | Run], out: str | Path, *, new: bool = False) -> Run:
    """Join finished runs on disjoint units, such as those of four folds, into one run in the folder `out`."""
    from hardlook.harness.joined_runs.joining import join_runs
    from hardlook.report.run_report import write_report

    folders = [one.folder if isinstance(one, Run) else open_run(one) for one in runs]
    scored = join_runs(folders, open_run(out, write=True), new=new)
    write_report(scored)
    return Run(scored.folder.path, scored=scored)


def _name_paths(data: Paths | None) -> dict[str, Any]:
    """Datasets by name; a single path is the one called `root`, a single object the one called `dataset`."""
    if data is None:
        return {}
    if not isinstance(data, Mapping):
        data = {"root" if isinstance(data, str | os.PathLike) else "dataset": data}
    # The options of a benchmark that takes objects put a path in their place.
    return {name: Path(one).expanduser() if isinstance(one, str | os.PathLike) else one for name, one in data.items()}


def _serve(model: Any, benchmark: Benchmark) -> Any:
    """The model itself where it has the methods of the benchmark's role, else wrapped."""
    from hardlook.models.registry import missing_members
    from hardlook.models.wrapping import wrap

    if isinstance(model, type):
        raise OptionError(
            f"the model is the class {model.__qualname__}", remedy=f"give an object of it: {model.__qualname__}(...)"
        )
    role = benchmark.card.role
    return wrap(model, role=role) if missing_members(model, role) else model


def pass_device_to_encoder(
    benchmark: Benchmark, given: dict[str, Any], model: str | None, args: dict[str, Any], device: str | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options and arguments with the device for the encoder, where a learner works on features.

    A learner that takes no device itself gets none.
    """
    from hardlook.models.registry import find, takes_argument

    role = benchmark.card.role
    name = model or benchmark.card.default_model
    if device is None or role != "few-shot-learner" or "encoder_args" not in benchmark.options.model_fields or not name:
        return given, args  # TOSS's encoder measures its pairs and is none of the model's.
    if not isinstance(given.get("encoder"), str | None):
        return given, args  # Reading the options says what is wrong.
    kind: Any = benchmark.options
    encoder: str = kind(data=given["data"], encoder=given.get("encoder")).encoder_name()
    if getattr(find(name, role).factory(), "accepts", "") == "images":
        return given, args
    takes_device = takes_argument(encoder, "encoder", "device")
    if takes_device and not takes_argument(name, role, "device"):
        args = {key: value for key, value in args.items() if key != "device"}
    encoder_args = given.get("encoder_args") or ""
    if takes_device and "device=" not in encoder_args:
        given = {**given, "encoder_args": f"{encoder_args},device={device}".strip(",")}
    return given, args


def build_settings(
    *,
    engine: str,
    workers: int,
    prefetch: int | None,
    address: str,
    gpus: float,
    unit_timeout: float | None,
    on_error: str,
    max_failures: float,
    shard: tuple[int, int] | None,
    new: bool,
    on_gpu: bool,
) -> RunSettings:
    """How the run behaves; an error for an engine or a rule that does not exist."""
    from hardlook.harness.runs.engines import EngineOptions
    from hardlook.harness.runs.launch import RunSettings

    if engine not in ENGINES:
        raise OptionError(f"--engine {engine}: there is no such engine", remedy=f"one of {', '.join(ENGINES)}")
    if on_error not in ("record", "stop"):
        raise OptionError(f"--on-error {on_error}: expected record or stop")
    ahead = prefetch if prefetch is not None else (2 if on_gpu else 0)
    where = EngineOptions(engine, workers, ahead, address, gpus, unit_timeout or 0.0)
    return RunSettings(where, on_error, max_failures, shard, new)  # type: ignore[arg-type]
