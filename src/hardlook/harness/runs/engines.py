"""Where batches are evaluated: in this process, in several, or on a Ray cluster; the results are the same.

Worker processes are spawned, not forked (a fork of a process with CUDA or threads is broken). Each has its own model,
ignores Ctrl-C, which the parent handles, and ends when the parent ends, however that happens.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from multiprocessing.connection import wait as wait_for
from typing import Literal

from hardlook.harness.registry import find_benchmark
from hardlook.harness.runs.evaluation import (
    Job,
    Outcome,
    PreparedBatch,
    Worker,
    build_worker,
    evaluate_batch,
    evaluate_prepared,
    fail_batch,
    prepare_batch,
    set_thread_variables,
)
from hardlook.harness.runs.plan import Batch

EngineName = Literal["inline", "processes", "ray"]

ENGINES: tuple[EngineName, ...] = ("inline", "processes", "ray")

# Batches that are submitted beyond those that the workers are busy with.
BATCHES_AHEAD = 3

BATCHES_PER_WORKER = 3

# The benchmark and model of this worker process, built at its first batch and kept for all others.
_WORKER: list[Worker] = []


@dataclass(frozen=True)
class EngineOptions:
    """Where batches are evaluated; nothing here changes a record.

    `workers` counts processes or Ray actors, `prefetch` the processes that read files ahead of an inline model,
    `address` is that of an existing Ray cluster (empty starts a local one), `gpus` the GPUs per Ray actor.
    """

    name: EngineName = "inline"
    workers: int = 2
    prefetch: int = 0
    address: str = ""
    gpus: float = 0.0


def evaluate_batches(engine: EngineOptions, job: Job, worker: Worker, batches: Sequence[Batch]) -> Iterator[Outcome]:
    """Yield the outcome of each batch, in the order in which they are ready."""
    if engine.name == "processes":
        return evaluate_in_processes(job, batches, workers=engine.workers)
    if engine.name == "ray":
        from hardlook.harness.runs.ray_cluster import evaluate_on_ray

        return evaluate_on_ray(job, batches, workers=engine.workers, address=engine.address, gpus=engine.gpus)
    return evaluate_inline(job, worker, batches, prefetch=engine.prefetch)


def evaluate_inline(job: Job, worker: Worker, batches: Sequence[Batch], *, prefetch: int = 0) -> Iterator[Outcome]:
    """Evaluate batches in order in this process, their files read ahead in `prefetch` others."""
    if prefetch <= 0:
        for batch in batches:
            yield evaluate_batch(worker.benchmark, batch, worker.model)
        return
    waiting = deque(batches)
    reading: deque[tuple[Batch, Future[PreparedBatch]]] = deque()
    pool = _start_pool(prefetch, job.threads)
    try:
        while waiting or reading:
            while waiting and len(reading) < prefetch + BATCHES_AHEAD:
                batch = waiting.popleft()
                reading.append((batch, pool.submit(_prepare, job.benchmark, batch)))
            batch, future = reading.popleft()
            try:
                prepared = future.result()
            except BrokenProcessPool:
                # A reader died (out of memory, say). Reading ahead only saves time: continue without it.
                for rest in [batch, *(submitted for submitted, _ in reading), *waiting]:
                    yield evaluate_batch(worker.benchmark, rest, worker.model)
                return
            yield evaluate_prepared(worker.benchmark, prepared, worker.model)
    finally:
        _end_pool(pool)


def evaluate_in_processes(job: Job, batches: Sequence[Batch], *, workers: int) -> Iterator[Outcome]:
    """Evaluate batches in `workers` processes; a batch whose worker died is tried again in a process of its own."""
    set_thread_variables(job.threads)
    waiting = deque(batches)
    suspects: list[Batch] = []
    while waiting:
        pool = _start_pool(workers, job.threads)
        running: dict[Future[Outcome], Batch] = {}
        try:
            while waiting or running:
                while waiting and len(running) < workers * BATCHES_PER_WORKER:
                    batch = waiting.popleft()
                    running[pool.submit(_evaluate, job, batch)] = batch
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    # Read the result before removing the batch: a broken pool must leave it in `running`.
                    outcome = future.result()
                    del running[future]
                    yield outcome
        except BrokenProcessPool:
            suspects.extend(running.values())
        finally:
            _end_pool(pool)
        while suspects:
            yield from _evaluate_alone(job, suspects.pop())


def _evaluate_alone(job: Job, batch: Batch) -> Iterator[Outcome]:
    """Evaluate a batch that may have killed its worker in a process of its own, then unit by unit."""
    pool = _start_pool(1, job.threads)
    try:
        yield pool.submit(_evaluate, job, batch).result()
        return
    except BrokenProcessPool:
        pass
    finally:
        _end_pool(pool)
    if len(batch) == 1:
        yield fail_batch(batch, "the worker process died on this unit every time (out of memory? killed?)")
    else:
        for unit in batch:
            for outcome in _evaluate_alone(job, (unit,)):
                yield replace(outcome, split=True)


def _start_pool(workers: int, threads: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _start_child, (threads,))


def _end_pool(pool: ProcessPoolExecutor) -> None:
    """End a pool at once: a batch that takes minutes must not delay Ctrl-C."""
    workers = list((getattr(pool, "_processes", None) or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for worker in workers:
        worker.terminate()


def _start_child(threads: int) -> None:
    set_thread_variables(threads)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
        os._exit(1)


def _prepare(benchmark: str, batch: Batch) -> PreparedBatch:
    return prepare_batch(find_benchmark(benchmark), batch)


def _evaluate(job: Job, batch: Batch) -> Outcome:
    if not _WORKER:
        _WORKER.append(build_worker(job))
    return evaluate_batch(_WORKER[0].benchmark, batch, _WORKER[0].model)
