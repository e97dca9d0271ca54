"""Evaluate one batch of units; every error is recorded with its unit.

A unit whose files cannot be read fails alone. When the model raises on a batch, its units are evaluated one by one, so
that a bad unit does not affect the others; a batch that does not fit into memory is halved until it does. Whatever a
model raises is its unit's failure, SystemExit too: only Ctrl-C ends a run. A worker pins torch, OpenMP, BLAS and OpenCV
to its number of threads: default threading beside a busy core costs four times and more.
"""

from __future__ import annotations

import gc
import sys
import traceback
from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hardlook.errors import HardlookError
from hardlook.harness.benchmark import Benchmark, Unit
from hardlook.harness.by_value import ByValue
from hardlook.harness.records import Record
from hardlook.harness.registry import add, find_benchmark
from hardlook.harness.runs.record_store import Failure
from hardlook.threads import pin_threads, set_thread_variables


@dataclass(frozen=True)
class Outcome:
    """The records and failures of a batch.

    `split` where its units had to be evaluated one by one or in smaller batches, `halved` where memory was the reason.
    """

    records: Sequence[Record] = ()
    failures: Sequence[Failure] = ()
    split: bool = False
    halved: bool = False


@dataclass(frozen=True)
class PreparedBatch:
    """Units with their files read, and the failures of those that could not be read.

    `short_of_memory` where the files of all units did not fit into memory together; then it holds no units.
    """

    units: Sequence[Unit]
    failures: Sequence[Failure] = field(default=())
    short_of_memory: bool = False


def prepare_batch(benchmark: Benchmark, units: Sequence[Unit]) -> PreparedBatch:
    """Read the files of every unit."""
    prepared: list[Unit] = []
    failures: list[Failure] = []
    for unit in units:
        try:
            prepared.append(benchmark.prepare(unit))
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            if len(units) > 1 and is_out_of_memory(error):
                return PreparedBatch((), (), short_of_memory=True)
            failures.append(_make_failure(unit.id, "prepare", error))
    return PreparedBatch(prepared, failures)


def evaluate_prepared(benchmark: Benchmark, batch: PreparedBatch, model: Any) -> Outcome:
    """Evaluate prepared units together; in halves where memory is short, one by one where the model raises."""
    records: list[Record] = []
    failures = list(batch.failures)
    parts = deque([batch.units] if batch.units else [])
    split = halved = False
    while parts:
        units = parts.popleft()
        try:
            records.extend(_evaluate_and_check(benchmark, units, model))
            continue
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            short = is_out_of_memory(error)
            if len(units) == 1:
                failures.append(_make_failure(units[0].id, "evaluate", error))
        # The error is gone by now, and with it the traceback, which kept the arrays of the batch alive.
        if short:
            _free_memory()
        if len(units) > 1:
            size, split, halved = (len(units) + 1) // 2 if short else 1, True, halved or short
            parts.extendleft(reversed([units[start : start + size] for start in range(0, len(units), size)]))
    return Outcome(records, failures, split, halved)


def iterate_batch(benchmark: Benchmark, units: Sequence[Unit], model: Any) -> Iterator[Outcome]:
    """Read the files of a batch and yield its outcome, in parts where the benchmark yields record by record."""
    if benchmark.evaluate_each is None:
        yield evaluate_batch(benchmark, units, model)
    else:
        prepared = prepare_batch(benchmark, units)
        if prepared.short_of_memory:
            yield evaluate_batch(benchmark, units, model)
        else:
            yield from iterate_prepared(benchmark, prepared, model)


def iterate_prepared(benchmark: Benchmark, batch: PreparedBatch, model: Any) -> Iterator[Outcome]:
    """Yield the outcome of prepared units, in parts where the benchmark yields record by record."""
    if benchmark.evaluate_each is None:
        yield evaluate_prepared(benchmark, batch, model)
        return
    if batch.failures:
        yield Outcome((), batch.failures)
    left = {unit.id: unit for unit in batch.units}
    records = _iterate_records(benchmark, batch.units, model)
    while left:
        try:
            record = next(records)
        except KeyboardInterrupt:
            raise
        except BaseException:
            # Evaluated again below, which finds the unit that raised.
            break
        yield Outcome([record])
        del left[str(record["unit"])]
    records.close()
    if left:
        yield evaluate_prepared(benchmark, PreparedBatch(list(left.values())), model)


def _iterate_records(benchmark: Benchmark, units: Sequence[Unit], model: Any) -> Generator[Record, None, None]:
    assert benchmark.evaluate_each is not None
    left = {unit.id for unit in units}
    for record in benchmark.evaluate_each(units, model):
        benchmark.schema.check(record)
        left.remove(str(record["unit"]))
        yield record


def evaluate_batch(benchmark: Benchmark, units: Sequence[Unit], model: Any) -> Outcome:
    """Read the files of a batch and evaluate it, in halves where its files do not fit into memory together."""
    prepared = prepare_batch(benchmark, units)
    if not prepared.short_of_memory:
        return evaluate_prepared(benchmark, prepared, model)
    _free_memory()
    middle = (len(units) + 1) // 2
    first, second = (evaluate_batch(benchmark, half, model) for half in (units[:middle], units[middle:]))
    return Outcome([*first.records, *second.records], [*first.failures, *second.failures], split=True, halved=True)


# Messages of libraries that have no exception class for it: torch on a processor, cuBLAS, ONNX Runtime, OpenCV.
_OUT_OF_MEMORY = ("out of memory", "t allocate memory", "CUBLAS_STATUS_ALLOC_FAILED", "Failed to allocate memory",
                  "Insufficient memory")  # fmt: skip


def is_out_of_memory(error: BaseException | None) -> bool:
    """Whether an error, or one that it was raised from, says that memory is short, of the processor or the GPU.

    >>> is_out_of_memory(MemoryError()), is_out_of_memory(RuntimeError("CUDA error: out of memory"))
    (True, True)
    >>> is_out_of_memory(ValueError("this picture is too much for me"))
    False
    """
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
            return True
        if isinstance(error, Exception) and any(text in str(error) for text in _OUT_OF_MEMORY):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


def _free_memory() -> None:
    """Free the memory of a failed attempt: Python's garbage, then torch's cache."""
    gc.collect()
    if "torch" in sys.modules and sys.modules["torch"].cuda.is_initialized():
        sys.modules["torch"].cuda.empty_cache()


def fail_batch(units: Sequence[Unit], reason: str) -> Outcome:
    """The outcome of a batch on which the worker died every time: all its units failed."""
    return Outcome((), [Failure(unit.id, "worker", reason, "") for unit in units])


def _evaluate_and_check(benchmark: Benchmark, units: Sequence[Unit], model: Any) -> Sequence[Record]:
    records = list(benchmark.evaluate(units, model))
    expected, returned = [unit.id for unit in units], [str(record.get("unit")) for record in records]
    if expected != returned and sorted(expected) != sorted(returned):
        raise HardlookError(
            f"benchmark {benchmark.card.name!r} was given units {expected} and returned records of {returned}"
        )
    benchmark.schema.check_all(records)
    return records


def _make_failure(unit: str, stage: str, error: BaseException) -> Failure:
    text = "".join(traceback.format_exception(error))
    message = "; ".join(line.strip() for line in str(error).splitlines())
    # The name of a file may hold bytes that are no text.
    message, text = (one.encode(errors="backslashreplace").decode() for one in (message, text))
    return Failure(unit, stage, f"{type(error).__name__}: {message}", text)


@dataclass(frozen=True)
class Job:
    """Names from which any process, on any machine, builds the benchmark and the model.

    `model` is empty for stored predictions. A benchmark or a model that was made in a script or a notebook has a name,
    too, and is itself in `given_benchmark` or `given_model`.
    """

    benchmark: str
    model: str = ""
    model_args: Mapping[str, Any] = field(default_factory=dict)
    threads: int = 1
    given_benchmark: ByValue | None = None
    given_model: ByValue | None = None

    def load_benchmark(self) -> Benchmark:
        """The benchmark, registered under its name in this process."""
        return find_benchmark(self.benchmark) if self.given_benchmark is None else add(self.given_benchmark.value)


@dataclass(frozen=True)
class Worker:
    """A benchmark and a model, built in this process."""

    benchmark: Benchmark
    model: Any


def build_worker(job: Job) -> Worker:
    """Build the benchmark and the model in this process, threads pinned."""
    from hardlook.models.registry import build, check_serves

    set_thread_variables(job.threads)
    benchmark = job.load_benchmark()
    if job.given_model is not None:
        model = job.given_model.value
        check_serves(model, job.model, benchmark.card.role)
    else:
        model = build(job.model, role=benchmark.card.role, args=job.model_args) if job.model else None
    pin_threads(job.threads)
    return Worker(benchmark, model)
