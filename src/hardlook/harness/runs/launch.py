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

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from hardlook.errors import ChangedRun, OptionError, RunError
from hardlook.harness.benchmark import BenchmarkCard
from hardlook.harness.options import BenchmarkOptions, parse_options
from hardlook.harness.registry import find_benchmark
from hardlook.harness.runs.engines import EngineOptions, evaluate_batches
from hardlook.harness.runs.evaluation import Job, Worker, build_worker
from hardlook.harness.runs.folder import RunFolder, write_atomically
from hardlook.harness.runs.plan import Plan, batches_of_shard, check_unchanged, choose_batch_size, list_units, make_plan
from hardlook.harness.runs.progress import NoProgress
from hardlook.harness.runs.record_store import Failure, RecordWriter, list_answered_units, write_failures
from hardlook.harness.runs.scoring import ScoredRun, check_readings, save_score_options, score_run
from hardlook.harness.runs.sessions import Session, start_manifest

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
    """Counts of units: answered and failed by this call, answered before it, and still open in the whole run."""

    answered: int
    failed: int
    before: int
    open: int


@dataclass(frozen=True)
class RunResult:
    """The result of `launch`; `scored` is None until all shards are done."""

    progress: RunProgress
    scored: ScoredRun | None


def launch(
    benchmark: str,
    *,
    out: Path,
    model: str | None = None,
    model_args: Mapping[str, Any] | None = None,
    given: Mapping[str, Any] | None = None,
    settings: RunSettings | None = None,
    batch_size: int | None = None,
    threads: int = 1,
    full_fingerprint: bool = False,
    show_progress: Callable[[int, int], Any] | None = None,
) -> RunResult:
    """Run or resume a benchmark in the folder `out`, and score it when no unit is open.

    `given` are the benchmark's options by name; `batch_size` None keeps the folder's, or chooses one.
    """
    found = find_benchmark(benchmark)
    settings = settings or RunSettings()
    options = parse_options(found.options, dict(given or {}))
    check_readings(found, options)
    job = Job(benchmark, choose_model(found.card, options, model), dict(model_args or {}), threads)
    units = list_units(found, options)
    worker = build_worker(job)
    if found.setup is not None:
        found.setup(units, worker.model, show_progress)
    folder = RunFolder(out)
    if batch_size is None and folder.exists() and not settings.new:
        batch_size = int(folder.read_manifest()["batch_size"])

    def execute_with(size: int) -> RunProgress:
        plan = make_plan(job, worker, options, units, batch_size=size, full_fingerprint=full_fingerprint, out=out)
        return execute(plan, worker, folder, settings, show_progress)

    size = batch_size or choose_batch_size(worker, units)
    try:
        progress = execute_with(size)
    except ChangedRun:
        # Another shard may have chosen a batch size a moment earlier; the one in the folder counts.
        stored = int(folder.read_manifest()["batch_size"])
        if batch_size is not None or stored == size:
            raise
        progress = execute_with(stored)
    if progress.open:
        return RunResult(progress, None)
    save_score_options(folder, options)
    scored = score_run(folder)
    write_atomically(folder.scores_path, scored.scorecard.to_json())
    return RunResult(progress, scored)


def choose_model(card: BenchmarkCard, options: BenchmarkOptions, model: str | None) -> str:
    """The model to run: the given one, else the benchmark's default; empty for stored predictions."""
    if options.pred is not None and model:
        raise OptionError("--model and --pred are both given", remedy="score stored predictions, or run a model")
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
    """Evaluate every unit of the plan (or of its shard) that has no record in the folder."""
    if settings.new and settings.shard is not None:
        raise OptionError("--new with --shard would set the other shards' work aside", remedy="use a new --out")
    batches = plan.batches if settings.shard is None else batches_of_shard(plan.batches, settings.shard)
    if settings.new and folder.exists():
        folder.set_aside()
    folder.check_is_run_folder()
    folder.path.mkdir(parents=True, exist_ok=True)
    check_unchanged(start_manifest(folder, plan)["answers"]["parts"], plan, folder.path)

    done = list_answered_units(folder, plan.answers)
    wanted = {unit.id for batch in batches for unit in batch}
    # A batch with a missing unit is evaluated whole: its layout, and so the last bits of its results, stay the same.
    missing = [batch for batch in batches if any(unit.id not in done for unit in batch)]

    shard = f"{settings.shard[0]}/{settings.shard[1]}" if settings.shard else ""
    session = Session(settings.engine.name, shard, plan.job.threads)
    session.save(folder)
    writer = RecordWriter(folder, plan.benchmark.schema, plan.answers)
    before = len(wanted & done)
    try:
        with show_progress(len(wanted), before) if show_progress else NoProgress() as progress:
            for outcome in evaluate_batches(settings.engine, plan.job, worker, missing):
                fresh = [record for record in outcome.records if record["unit"] not in done]
                failures = [failure for failure in outcome.failures if failure.unit not in done]
                writer.add(fresh, failures)
                session.answered += len(fresh)
                session.failed += len(failures)
                session.split_batches += outcome.split
                progress.advance(len(fresh) + len(failures), len(failures))
                if failures:
                    _stop_if_too_many(settings, session.failed, len(wanted), failures[-1])
    except BaseException as error:
        writer.flush()
        write_failures(folder, plan.answers)
        session.end(folder, "stopped" if isinstance(error, KeyboardInterrupt) else "failed")
        raise
    writer.flush()
    failed = set(write_failures(folder, plan.answers)["unit"])
    left = {unit.id for unit in plan.units} - list_answered_units(folder, plan.answers) - failed
    session.end(folder, "waiting" if left else "finished")
    return RunProgress(session.answered, session.failed, before, len(left))


def _stop_if_too_many(settings: RunSettings, failed: int, planned: int, last: Failure) -> None:
    if settings.on_error == "stop":
        raise RunError(
            f"stopped at the first failure: {last.error}",
            unit=last.unit,
            remedy="fix the cause and run again: it resumes",
        )
    if failed > settings.max_failures * planned:
        raise RunError(
            f"{failed} of {planned} units failed, more than {settings.max_failures:.1%}; the last: {last.error}",
            unit=last.unit,
            remedy="fix the cause and run again (it resumes), or allow more with --max-failures SHARE",
        )
