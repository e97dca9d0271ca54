"""Evaluate one batch of units; every error is recorded with its unit.

A unit whose files cannot be read fails alone. When the model raises on a batch, its units are evaluated one by one, so
that a bad unit does not affect the others. A worker pins torch, OpenMP, BLAS and OpenCV to its number of
threads: default threading beside a busy core costs four times and more.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hardlook.errors import HardlookError
from hardlook.harness.benchmark import Benchmark, Unit
from hardlook.harness.records import Record
from hardlook.harness.registry import find_benchmark
from hardlook.harness.runs.record_store import Failure


@dataclass(frozen=True)
class Outcome:
    """The records and failures of a batch; `split` where its units had to be evaluated one by one."""

    records: Sequence[Record] = ()
    failures: Sequence[Failure] = ()
    split: bool = False


@dataclass(frozen=True)
class PreparedBatch:
    """Units with their files read, and the failures of those that could not be read."""

    units: Sequence[Unit]
    failures: Sequence[Failure] = field(default=())


def prepare_batch(benchmark: Benchmark, units: Sequence[Unit]) -> PreparedBatch:
    """Read the files of every unit."""
    prepared, failures = [], []
    for unit in units:
        try:
            prepared.append(benchmark.prepare(unit))
        except Exception as error:
            failures.append(_failure(unit.id, "prepare", error))
    return PreparedBatch(prepared, failures)


def evaluate_prepared(benchmark: Benchmark, batch: PreparedBatch, model: Any) -> Outcome:
    """Evaluate prepared units together, or one by one where that raises."""
    if not batch.units:
        return Outcome((), batch.failures)
    try:
        return Outcome(_checked(benchmark, batch.units, model), batch.failures)
    except Exception as error:
        if len(batch.units) == 1:
            return Outcome((), [*batch.failures, _failure(batch.units[0].id, "evaluate", error)])
    records: list[Record] = []
    failures = list(batch.failures)
    for unit in batch.units:
        try:
            records.extend(_checked(benchmark, [unit], model))
        except Exception as error:
            failures.append(_failure(unit.id, "evaluate", error))
    return Outcome(records, failures, split=True)


def evaluate_batch(benchmark: Benchmark, units: Sequence[Unit], model: Any) -> Outcome:
    """Read the files of a batch and evaluate it."""
    return evaluate_prepared(benchmark, prepare_batch(benchmark, units), model)


def fail_batch(units: Sequence[Unit], reason: str) -> Outcome:
    """The outcome of a batch on which the worker died every time: all its units failed."""
    return Outcome((), [Failure(unit.id, "worker", reason, "") for unit in units])


def _checked(benchmark: Benchmark, units: Sequence[Unit], model: Any) -> Sequence[Record]:
    records = list(benchmark.evaluate(units, model))
    expected, came = [unit.id for unit in units], [str(record.get("unit")) for record in records]
    if sorted(expected) != sorted(came):
        raise HardlookError(
            f"benchmark {benchmark.card.name!r} was given units {expected} and returned records of {came}"
        )
    for record in records:
        benchmark.schema.check(record)
    return records


def _failure(unit: str, stage: str, error: Exception) -> Failure:
    text = "".join(traceback.format_exception(error))
    message = str(error).replace("\n", "; ")
    return Failure(unit, stage, f"{type(error).__name__}: {message}", text)


THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


@dataclass(frozen=True)
class Job:
    """Names from which any process, on any machine, builds the benchmark and the model.

    `model` is empty for stored predictions.
    """

    benchmark: str
    model: str = ""
    model_args: Mapping[str, Any] = field(default_factory=dict)
    threads: int = 1


@dataclass(frozen=True)
class Worker:
    """A benchmark and a model, built in this process."""

    benchmark: Benchmark
    model: Any


def build_worker(job: Job) -> Worker:
    """Build the benchmark and the model in this process, threads pinned."""
    from hardlook.models.registry import build

    set_thread_variables(job.threads)
    benchmark = find_benchmark(job.benchmark)
    model = build(job.model, role=benchmark.card.role, args=job.model_args) if job.model else None
    pin_threads(job.threads)
    return Worker(benchmark, model)


def set_thread_variables(threads: int) -> None:
    """Limit the threads of libraries that are not loaded yet, also in processes started from here."""
    for variable in THREAD_VARIABLES:
        os.environ[variable] = str(threads)


def pin_threads(threads: int) -> None:
    """Limit the threads of libraries that are loaded already."""
    import threadpoolctl

    threadpoolctl.threadpool_limits(threads)
    if "cv2" in sys.modules:
        sys.modules["cv2"].setNumThreads(threads)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(threads)
