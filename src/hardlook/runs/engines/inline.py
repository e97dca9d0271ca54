"""One process, one model; files are read ahead in other processes where that is asked for."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from hardlook.runs.batches import Batch
from hardlook.runs.engines.processes import end_pool, spawn_context, start_child
from hardlook.runs.evaluation import Outcome, PreparedBatch, evaluate_batch, evaluate_prepared, prepare_batch
from hardlook.runs.worker import Job, Worker

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
    from hardlook.benchmarks import find_benchmark

    return prepare_batch(find_benchmark(benchmark), batch)
