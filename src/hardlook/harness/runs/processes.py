"""Several processes, each with its own model and one thread; a dead worker's batches are answered again.

Workers are spawned, not forked (a fork of a process with CUDA or threads is broken), leave Ctrl-C to the parent,
and end when the parent is gone, however it went.
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
from dataclasses import replace
from multiprocessing.connection import wait as wait_for
from multiprocessing.context import SpawnContext

from hardlook.harness.runs.evaluation import (
    Job,
    Outcome,
    Worker,
    announce_threads,
    evaluate_batch,
    lost_batch,
    open_worker,
)
from hardlook.harness.runs.plan import Batch

BATCHES_A_WORKER = 3

# A worker process has one job for all its life: its benchmark and model, built at the first batch.
_OPENED: list[Worker] = []


def spawn_context() -> SpawnContext:
    """The start method of all our processes."""
    return multiprocessing.get_context("spawn")


def start_child(threads: int) -> None:
    """First thing in a child: pinned threads, no Ctrl-C, and an end when the parent ends."""
    announce_threads(threads)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def answer_in_processes(job: Job, batches: Sequence[Batch], *, workers: int) -> Iterator[Outcome]:
    """Answer batches in `workers` processes; one whose worker died is tried again by itself."""
    announce_threads(job.threads)
    waiting = deque(batches)
    suspects: list[Batch] = []
    while waiting:
        pool = _pool(workers, job)
        running: dict[Future[Outcome], Batch] = {}
        try:
            while waiting or running:
                while waiting and len(running) < workers * BATCHES_A_WORKER:
                    batch = waiting.popleft()
                    running[pool.submit(_answer, job, batch)] = batch
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    # Read the result before forgetting the batch: a broken pool must leave it in `running`.
                    outcome = future.result()
                    del running[future]
                    yield outcome
        except BrokenProcessPool:
            suspects.extend(running.values())
        finally:
            end_pool(pool)
        while suspects:
            yield from _answer_alone(job, suspects.pop())


def _answer_alone(job: Job, batch: Batch) -> Iterator[Outcome]:
    """Answer a batch that may have killed its worker in a process of its own, then unit by unit."""
    pool = _pool(1, job)
    try:
        yield pool.submit(_answer, job, batch).result()
        return
    except BrokenProcessPool:
        pass
    finally:
        end_pool(pool)
    if len(batch) == 1:
        yield lost_batch(batch, "the worker process died on this unit every time (out of memory? killed?)")
    else:
        for unit in batch:
            for outcome in _answer_alone(job, (unit,)):
                yield replace(outcome, split=True)


def end_pool(pool: ProcessPoolExecutor) -> None:
    """End a pool at once: a batch that takes minutes must not hold up Ctrl-C."""
    workers = list((getattr(pool, "_processes", None) or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for worker in workers:
        worker.terminate()


def _pool(workers: int, job: Job) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(workers, spawn_context(), start_child, (job.threads,))


def _answer(job: Job, batch: Batch) -> Outcome:
    if not _OPENED:
        _OPENED.append(open_worker(job))
    return evaluate_batch(_OPENED[0].benchmark, batch, _OPENED[0].model)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
        os._exit(1)
