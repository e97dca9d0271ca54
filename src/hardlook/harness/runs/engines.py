"""Ways to get batches answered: in this process, in several, or on a Ray cluster; the answers are the same.

One process, one model; files are read ahead in other processes where that is asked for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Literal

from hardlook.harness.runs.evaluation import (
    Job,
    Outcome,
    PreparedBatch,
    Worker,
    evaluate_batch,
    evaluate_prepared,
    prepare_batch,
)
from hardlook.harness.runs.plan import Batch
from hardlook.harness.runs.processes import end_pool, spawn_context, start_child

EngineName = Literal["inline", "processes", "ray"]

ENGINES: tuple[EngineName, ...] = ("inline", "processes", "ray")


@dataclass(frozen=True)
class EngineOptions:
    """Where batches are answered; nothing here changes an answer.

    `workers` counts processes or Ray actors, `prefetch` the processes that read files ahead of an inline model,
    `address` an existing Ray cluster (empty starts a local one), `gpus` the GPUs a Ray actor takes.
    """

    name: EngineName = "inline"
    workers: int = 2
    prefetch: int = 0
    address: str = ""
    gpus: float = 0.0


def answer_batches(engine: EngineOptions, job: Job, here: Worker, batches: Sequence[Batch]) -> Iterator[Outcome]:
    """Outcomes in the order in which they are ready."""
    if engine.name == "processes":
        from hardlook.harness.runs.processes import answer_in_processes

        return answer_in_processes(job, batches, workers=engine.workers)
    if engine.name == "ray":
        from hardlook.harness.runs.ray_cluster import answer_on_ray

        return answer_on_ray(job, batches, workers=engine.workers, address=engine.address, gpus=engine.gpus)

    return answer_inline(job, here, batches, prefetch=engine.prefetch)


AHEAD = 3


def answer_inline(job: Job, here: Worker, batches: Sequence[Batch], *, prefetch: int = 0) -> Iterator[Outcome]:
    """Answer batches in order, in this process."""
    if prefetch <= 0:
        for batch in batches:
            yield evaluate_batch(here.benchmark, batch, here.model)
        return
    waiting = deque(batches)
    reading: deque[tuple[Batch, Future[PreparedBatch]]] = deque()
    pool = ProcessPoolExecutor(prefetch, spawn_context(), start_child, (job.threads,))
    try:
        while waiting or reading:
            while waiting and len(reading) < prefetch + AHEAD:
                batch = waiting.popleft()
                reading.append((batch, pool.submit(_prepare, job.benchmark, batch)))
            batch, future = reading.popleft()
            try:
                prepared = future.result()
            except BrokenProcessPool:
                # A reader died (out of memory, say). Reading ahead only saves time: go on without it.
                for rest, _ in [(batch, future), *reading]:
                    yield evaluate_batch(here.benchmark, rest, here.model)
                reading.clear()
                for rest in waiting:
                    yield evaluate_batch(here.benchmark, rest, here.model)
                return
            yield evaluate_prepared(here.benchmark, prepared, here.model)
    finally:
        end_pool(pool)


def _prepare(benchmark: str, batch: Batch) -> PreparedBatch:
    from hardlook.harness.registry import find_benchmark

    return prepare_batch(find_benchmark(benchmark), batch)
