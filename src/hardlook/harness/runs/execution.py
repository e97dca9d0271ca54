"""Executing a plan: every unit that has no record yet is evaluated and stored, whatever happened before."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from hardlook.errors import OptionError, RunError
from hardlook.harness.runs.engines import EngineOptions, answer_batches
from hardlook.harness.runs.evaluation import Worker
from hardlook.harness.runs.folder import RunFolder
from hardlook.harness.runs.plan import Plan, batches_of_shard, check_unchanged
from hardlook.harness.runs.progress import Silent
from hardlook.harness.runs.record_store import RecordWriter, answered_units, write_failures
from hardlook.harness.runs.sessions import Session, start_manifest

if TYPE_CHECKING:
    pass


OnError = Literal["record", "stop"]


@dataclass(frozen=True)
class RunSettings:
    """How a run behaves; nothing here changes an answer.

    `on_error` stop ends the run at the first failed unit; `max_failures` is the share of this call's units above which
    it ends; `shard` (i, N) does every N-th batch for runs spread over machines that share the folder.
    """

    engine: EngineOptions = field(default_factory=EngineOptions)
    on_error: OnError = "record"
    max_failures: float = 0.01
    shard: tuple[int, int] | None = None
    new: bool = False


@dataclass(frozen=True)
class RunProgress:
    """What one call did: units answered and failed now, answered before, and neither yet in the whole run."""

    answered: int
    failed: int
    before: int
    open: int


def execute(
    plan: Plan,
    here: Worker,
    folder: RunFolder,
    settings: RunSettings,
    show_progress: Callable[[int, int], Any] | None = None,
) -> RunProgress:
    """Answer every unit of the plan (or of its shard) that the folder has no record of."""
    if settings.new and settings.shard is not None:
        raise OptionError("--new with --shard would set the other shards' work aside", remedy="use a new --out")
    batches = plan.batches if settings.shard is None else batches_of_shard(plan.batches, settings.shard)
    if settings.new and folder.exists():
        folder.set_aside()
    folder.check_is_run_folder()
    folder.path.mkdir(parents=True, exist_ok=True)
    check_unchanged(start_manifest(folder, plan)["answers"]["parts"], plan, folder.path)

    done = answered_units(folder, plan.answers)
    wanted = {unit.id for batch in batches for unit in batch}
    # A batch with a missing unit is answered whole: its layout, and so its last bits, stay the same.
    missing = [batch for batch in batches if any(unit.id not in done for unit in batch)]

    session = Session(settings.engine.name, _shard_text(settings.shard), plan.job.threads)
    session.save(folder)
    writer = RecordWriter(folder, plan.benchmark.schema, plan.answers)
    before = len(wanted & done)
    try:
        with show_progress(len(wanted), before) if show_progress else nullcontext(Silent()) as progress:
            for outcome in answer_batches(settings.engine, plan.job, here, missing):
                fresh = [record for record in outcome.records if record["unit"] not in done]
                failures = [failure for failure in outcome.failures if failure.unit not in done]
                writer.add(fresh, failures)
                session.answered += len(fresh)
                session.failed += len(failures)
                session.split_batches += outcome.split
                progress.advance(len(fresh) + len(failures), len(failures))
                if failures:
                    _stop_if_too_many(settings, session.failed, len(wanted), failures[-1].unit, failures[-1].error)
    except BaseException as error:
        writer.flush()
        write_failures(folder, plan.answers)
        session.end(folder, "stopped" if isinstance(error, KeyboardInterrupt) else "failed")
        raise
    writer.flush()
    failed = set(write_failures(folder, plan.answers)["unit"])
    left = {unit.id for unit in plan.units} - answered_units(folder, plan.answers) - failed
    session.end(folder, "waiting" if left else "finished")
    return RunProgress(session.answered, session.failed, before, len(left))


def _stop_if_too_many(settings: RunSettings, failed: int, planned: int, unit: str, error: str) -> None:
    if settings.on_error == "stop":
        raise RunError(f"stopped at the first failure: {error}", unit=unit, remedy="fix it and run again: it resumes")
    if failed > settings.max_failures * planned:
        raise RunError(
            f"{failed} of {planned} units failed, more than {settings.max_failures:.1%}; the last: {error}",
            unit=unit,
            remedy="fix the cause and run again (it resumes), or allow more with --max-failures SHARE",
        )


def _shard_text(shard: tuple[int, int] | None) -> str:
    return f"{shard[0]}/{shard[1]}" if shard else ""
