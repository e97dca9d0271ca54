"""Answering one batch, with every fault pinned to its unit.

A unit whose files cannot be read fails alone. When the model breaks on a batch, its units are answered one by
one, so that a single bad unit costs nobody else's answer.
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hardlook.contract.benchmark import Benchmark, Unit
from hardlook.contract.records import Record
from hardlook.errors import HardlookError
from hardlook.runs.record_store import Failure


@dataclass(frozen=True)
class Outcome:
    """What came of a batch; `split` when it had to be answered one by one."""

    records: Sequence[Record] = ()
    failures: Sequence[Failure] = ()
    split: bool = False


@dataclass(frozen=True)
class PreparedBatch:
    """Units with their files read, and those that could not be."""

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
    """Answer the prepared units together, or one by one where that breaks."""
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
    """Read and answer a batch."""
    return evaluate_prepared(benchmark, prepare_batch(benchmark, units), model)


def lost_batch(units: Sequence[Unit], reason: str) -> Outcome:
    """A batch that took its worker down with it, every time."""
    return Outcome((), [Failure(unit.id, "worker", reason, "") for unit in units])


def _checked(benchmark: Benchmark, units: Sequence[Unit], model: Any) -> Sequence[Record]:
    records = list(benchmark.evaluate(units, model))
    expected, came = [unit.id for unit in units], [str(record.get("unit")) for record in records]
    if sorted(expected) != sorted(came):
        raise HardlookError(f"benchmark {benchmark.card.name!r} was given units {expected} and answered {came}")
    for record in records:
        benchmark.schema.check(record)
    return records


def _failure(unit: str, stage: str, error: Exception) -> Failure:
    text = "".join(traceback.format_exception(error))
    message = str(error).replace("\n", "; ")
    return Failure(unit, stage, f"{type(error).__name__}: {message}", text)
