"""Run a benchmark from names to scores: build the model, plan the batches, evaluate what is missing, score.

The command line, the demo and Python users all call `launch`. It resumes: units that have a record are not evaluated
again, however the earlier call ended.

>>> import tempfile
>>> done = launch("closed-miou", model="planted-segmenter", given={"scenes": 4, "resamples": 50},
...               out=Path(tempfile.mkdtemp()) / "run")
>>> done.scored.scorecard.get("miou").value
1.0
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from hardlook.cloud.addresses import format_path, name_addresses
from hardlook.cloud.data_copies import fetch_options
from hardlook.cloud.leases import LostClaim
from hardlook.cloud.object_store import StoreError
from hardlook.cloud.run_folders import open_run, refresh
from hardlook.errors import ChangedRun, DamagedFile, OptionError, RunError, RunWarning, TooManyFailures
from hardlook.harness.benchmark import Benchmark, BenchmarkCard
from hardlook.harness.by_value import ByValue
from hardlook.harness.options import BenchmarkOptions, parse_options
from hardlook.harness.registry import add, find_benchmark
from hardlook.harness.runs.batches import Batches, batches_of_shard
from hardlook.harness.runs.engines import EngineOptions, evaluate_batches
from hardlook.harness.runs.evaluation import Job, Worker, build_worker
from hardlook.harness.runs.folder import RunFolder, make_folder, write_atomically
from hardlook.harness.runs.plan import Plan, check_unchanged, choose_batch_size, list_units, make_plan
from hardlook.harness.runs.progress import NoProgress
from hardlook.harness.runs.record_store import Failure, RecordWriter, iterate_answered_units, write_failures
from hardlook.harness.runs.rerun_command import build_rerun_command
from hardlook.harness.runs.scoring import ScoredRun, check_readings, save_score_options, score_run
from hardlook.harness.runs.sessions import Session, claim_run, describe_mixed_code, list_sessions, start_manifest
from hardlook.harness.runs.signals import ignore_stopping_signals, stopped_by_signals
from hardlook.models.object_identity import name_object
from hardlook.models.registry import needs_argument

_UNWRITTEN = (OSError, StoreError, LostClaim)

OnError = Literal["record", "stop"]


@dataclass(frozen=True)
class RunSettings:
    """How a run behaves; nothing here changes a record.

    `on_error` stop ends the run at the first failed unit. `max_failures` is the share of this call's units above which
    it ends. `shard` (i, N) evaluates every N-th batch, for runs spread over machines that share the folder. `new` sets
    an earlier run in the folder aside.
    """

    engine: EngineOptions = field(default_factory=EngineOptions)
    on_error: OnError = "record"
    max_failures: float = 0.01
    shard: tuple[int, int] | None = None
    new: bool = False


@dataclass(frozen=True)
class RunProgress:
    """Counts of units: answered and failed by this call, answered before it, and still open in the whole run.

    `split_batches` counts batches that could not be evaluated whole, `halved_batches` those where memory was short.
    """

    answered: int
    failed: int
    before: int
    open: int
    split_batches: int = 0
    halved_batches: int = 0


@dataclass(frozen=True)
class RunResult:
    """The result of `launch`; `scored` is None until all shards are done."""

    progress: RunProgress
    scored: ScoredRun | None


def launch(
    benchmark: str | Benchmark,
    *,
    out: Path,
    model: Any = None,
    model_args: Mapping[str, Any] | None = None,
    given: Mapping[str, Any] | None = None,
    settings: RunSettings | None = None,
    batch_size: int | None = None,
    threads: int = 1,
    full_fingerprint: bool = False,
    show_progress: Callable[[int, int], Any] | None = None,
) -> RunResult:
    """Run or resume a benchmark in the folder `out`, and score it when no unit is open.

    Benchmark and model are names or objects; a model given as an object takes no `model_args`. `given` are the
    benchmark's options by name; `batch_size` None keeps the folder's, or chooses one.
    """
    found = find_benchmark(benchmark) if isinstance(benchmark, str) else add(benchmark)
    settings = settings or RunSettings()
    options = parse_options(found.options, dict(given or {}), found.card.name)
    check_readings(found, options)
    out = open_run(out, write=True)
    options = fetch_options(options, show_progress)
    job = make_job(benchmark, found, options, model, model_args or {}, threads)
    units = list_units(found, options)
    worker = build_worker(job)
    if found.setup is not None:
        found.setup(units, worker.model, show_progress)
    folder = RunFolder(out)
    if batch_size is None and folder.exists() and not settings.new:
        batch_size = _read_batch_size(folder)

    def execute_with(size: int) -> RunProgress:
        plan = make_plan(job, worker, options, units, batch_size=size, full_fingerprint=full_fingerprint, out=out)
        return execute(plan, worker, folder, settings, show_progress)

    with stopped_by_signals():
        size = batch_size or choose_batch_size(worker, units)
        try:
            progress = execute_with(size)
        except ChangedRun:
            # Another shard may have chosen a batch size a moment earlier; the one in the folder counts.
            stored = _read_batch_size(folder)
            if batch_size is not None or stored in (None, size):
                raise
            progress = execute_with(stored)
        if progress.open:
            return RunResult(progress, None)
        save_score_options(folder, options)
        scored = score_run(folder)
        write_atomically(folder.scores_path, scored.scorecard.to_json())
        return RunResult(progress, replace(scored, known_units=units))


def make_job(
    benchmark: str | Benchmark,
    found: Benchmark,
    options: BenchmarkOptions,
    model: Any,
    model_args: Mapping[str, Any],
    threads: int,
) -> Job:
    """What workers build benchmark and model from, where these are names or objects."""
    is_object = model is not None and not isinstance(model, str)
    name = choose_model(found.card, options, name_object(model) if is_object else model)
    if is_object and model_args:
        raise OptionError(
            f"the model {name!r} is an object and takes no arguments: {', '.join(model_args)}",
            remedy="build it with them, or give its name or its class as package.module:Class",
        )
    args = offer_arguments(found, options, name, model_args) if name and not is_object else dict(model_args)
    return Job(
        benchmark if isinstance(benchmark, str) else found.card.name,
        name,
        args,
        threads,
        given_benchmark=None if isinstance(benchmark, str) else ByValue(found),
        given_model=ByValue(model) if is_object else None,
    )


def offer_arguments(
    benchmark: Benchmark, options: BenchmarkOptions, model: str, given: Mapping[str, Any]
) -> dict[str, Any]:
    """A model's arguments as given, and those that it needs, lacks and the options have, such as its words."""
    offered = benchmark.model_arguments(options)
    needed = {key: value for key, value in offered.items() if needs_argument(model, benchmark.card.role, key)}
    return {**needed, **given}


def _read_batch_size(folder: RunFolder) -> int | None:
    """The batch size of the run in a folder; where its run.json is damaged, that of its sessions."""
    try:
        return int(folder.read_manifest()["batch_size"])
    except DamagedFile:
        return next((int(row["batch_size"]) for row in list_sessions(folder, {}) if row.get("batch_size")), None)


def choose_model(card: BenchmarkCard, options: BenchmarkOptions, model: str | None) -> str:
    """The given model, else on the planted world the benchmark's default; empty for stored predictions."""
    if options.pred is not None and model:
        raise OptionError("--model and --pred are both given", remedy="score stored predictions, or run a model")
    if options.data and options.pred is None and not model:
        remedy = f"give --model; `hardlook models --role {card.role}` lists some"
        raise OptionError(f"which model is to run on {', '.join(map(str, options.data.values()))}?", remedy=remedy)
    name = "" if options.pred is not None else (model or card.default_model)
    if not name and options.pred is None:
        remedy = f"give --model; `hardlook models --role {card.role}` lists some"
        raise OptionError(f"{card.name} needs a model", remedy=remedy)
    return name


def execute(
    plan: Plan,
    worker: Worker,
    folder: RunFolder,
    settings: RunSettings,
    show_progress: Callable[[int, int], Any] | None = None,
) -> RunProgress:
    """Evaluate every unit of the plan (or of its shard) that has no record in the folder.

    At the end every planned unit is answered, failed, or left to other shards; others are named in an error.
    """
    if settings.new and settings.shard is not None:
        raise OptionError("--new with --shard would set the other shards' work aside", remedy="use a new --out")
    batches = plan.batches if settings.shard is None else batches_of_shard(plan.batches, settings.shard)
    if settings.new and folder.exists():
        with claim_run(folder):
            folder.set_aside()
    folder.check_is_run_folder()
    make_folder(folder.path)
    with claim_run(folder, settings.shard, plan.answers):
        manifest = start_manifest(folder, plan)
        suggest = partial(_suggest_new_run, plan, folder, settings)
        check_unchanged(manifest["answers"]["parts"], plan, folder.path, suggest)
        return _evaluate_missing(plan, worker, folder, settings, batches, show_progress)


def _evaluate_missing(
    plan: Plan,
    worker: Worker,
    folder: RunFolder,
    settings: RunSettings,
    batches: Batches,
    show_progress: Callable[[int, int], Any] | None,
) -> RunProgress:
    units = plan.units
    done = units.mark(iterate_answered_units(folder, plan.answers))
    wanted = batches.mark_units()
    planned, before = int(wanted.sum()), int((wanted & done).sum())
    # A batch with a missing unit is evaluated whole: its layout, and so the last bits of its results, stay the same.
    missing = batches.with_any(~done)
    if plan.benchmark.evaluate_each is not None:
        missing = missing.cut_to(~done)
    done_again = set(units.list_ids(missing.mark_units() & done))

    shard = f"{settings.shard[0]}/{settings.shard[1]}" if settings.shard else ""
    session = Session(
        settings.engine.name,
        shard,
        plan.job.threads,
        model_code=plan.model_code,
        answers=plan.answers,
        batch_size=plan.parts["batch size"],
    )
    session.save(folder)
    if missing and (mixed := describe_mixed_code(list_sessions(folder, {}), plan.answers)):
        warnings.warn(f"{format_path(folder.path)}: {mixed}; --new starts again", RunWarning, stacklevel=2)
    writer = RecordWriter(folder, plan.benchmark.schema, plan.answers)
    failed: set[str] = set()
    try:
        with show_progress(planned, before) if show_progress else NoProgress() as progress:
            for outcome in evaluate_batches(settings.engine, plan.job, worker, missing):
                fresh, failures = outcome.records, outcome.failures
                if done_again:
                    fresh = [record for record in fresh if record["unit"] not in done_again]
                    failures = [failure for failure in failures if failure.unit not in done_again]
                writer.add(fresh, failures)
                failed.update(failure.unit for failure in failures)
                session.answered += len(fresh)
                session.failed += len(failures)
                session.split_batches += outcome.split
                session.halved_batches += outcome.halved
                progress.advance(len(fresh) + len(failures), len(failures))
                if failures:
                    _stop_if_too_many(settings, session, planned, before, failures[-1])
        writer.flush()
    except BaseException as error:
        ignore_stopping_signals()
        outcome_of_session = "stopped" if isinstance(error, KeyboardInterrupt) else "failed"
        closing = (partial(write_failures, folder, plan.answers), partial(session.end, folder, outcome_of_session))
        for step in (writer.flush, *closing):
            # Where the disk is full, or a store cannot be reached, writing may fail again; the first error says why.
            with contextlib.suppress(*_UNWRITTEN) if isinstance(error, _UNWRITTEN) else contextlib.nullcontext():
                step()
        raise
    refresh(folder.path)
    answered = units.mark(iterate_answered_units(folder, plan.answers)) if missing else done
    lost = set(units.list_ids(wanted & ~answered)) - failed
    earlier = write_failures(folder, plan.answers)["unit"]
    # Without shards all units are wanted.
    still_open = int((~wanted & ~answered & ~units.mark([earlier])).sum())
    session.end(folder, "failed" if lost else "waiting" if still_open else "finished")
    if lost:
        raise _lost_units_error(lost, planned, settings, folder)
    counts = (session.answered, session.failed, before, still_open, session.split_batches, session.halved_batches)
    return RunProgress(*counts)


def _lost_units_error(lost: Collection[str], planned: int, settings: RunSettings, folder: RunFolder) -> RunError:
    names = ", ".join(sorted(lost)[:10]) + (f" and {len(lost) - 10} more" if len(lost) > 10 else "")
    return RunError(
        f"{len(lost)} of {planned} units were neither answered nor recorded as failed: {names}",
        file=folder.path,
        unit=min(lost),
        remedy="run the same command again: it evaluates them. "
        f"That the engine {settings.engine.name} lost them is a bug: please report it",
    )


def _suggest_new_run(plan: Plan, folder: RunFolder, settings: RunSettings) -> str:
    """What to type to run this plan although the folder holds another run."""
    manifest = {
        "benchmark": {"name": plan.job.benchmark},
        "options": name_addresses(plan.options.model_dump(mode="json")),
        "model": {"name": plan.job.model, "args": dict(plan.job.model_args)} if plan.job.model else None,
        "answers": {"parts": plan.parts},
    }
    if plan.model_object or plan.job.given_benchmark is not None:
        return "to set the old run aside and evaluate every unit again, call hl.run with new=True"
    if settings.shard is None:
        again = build_rerun_command(manifest, out=format_path(folder.path)) + " --new"
        return f"to set the old run aside and evaluate every unit again, type: {again}"
    shard = "/".join(map(str, settings.shard))
    again = build_rerun_command(manifest, out=f"{format_path(folder.path)}-2")
    return f"to evaluate every unit again in another folder, type for each shard: {again} --shard {shard}"


def _stop_if_too_many(settings: RunSettings, session: Session, planned: int, before: int, last: Failure) -> None:
    changed_code = (
        "; a changed model starts again with --new, since its earlier answers no longer count"
        if before + session.answered
        else ", also with changed code of the model"
    )
    if settings.on_error == "stop":
        raise RunError(
            f"stopped at the first failure: {last.error}",
            unit=last.unit,
            remedy=f"fix the cause and run again: it resumes{changed_code}",
        )
    if session.failed > settings.max_failures * planned:
        raise TooManyFailures(
            f"{session.failed} of {planned} units failed, more than {100 * settings.max_failures:g}%; "
            f"the last: {last.error}",
            unit=last.unit,
            remedy=f"allow more with --max-failures SHARE, or fix the cause and run again: it resumes{changed_code}",
        )
