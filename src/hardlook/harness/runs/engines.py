"""Where batches are evaluated: in this process, in several, or on a Ray cluster; the results are the same.

Each worker has its own model. Whatever happens to workers, every unit of every batch comes back once, as a record or as
a failure: `evaluate_batches` checks it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from queue import SimpleQueue
from typing import Literal, overload

from hardlook.errors import RunError
from hardlook.harness.runs.batch_queue import BatchQueue, BatchTask, collect_outcomes
from hardlook.harness.runs.batches import Batch
from hardlook.harness.runs.evaluation import (
    Job,
    Outcome,
    PreparedBatch,
    Worker,
    build_worker,
    iterate_batch,
    iterate_prepared,
    prepare_batch,
)
from hardlook.harness.runs.worker_processes import LOOK_AFTER, WorkerLost, WorkerProcess, wait_for_workers
from hardlook.threads import set_thread_variables

EngineName = Literal["inline", "processes", "ray"]

ENGINES: tuple[EngineName, ...] = ("inline", "processes", "ray")

# Batches whose files are read beyond those that the readers are busy with.
BATCHES_AHEAD = 3

# Workers in a row that may die before they have built the model.
MAX_STARTS = 5

SHOWN = 5  # units that an error names


@dataclass(frozen=True)
class EngineOptions:
    """Where batches are evaluated; nothing here changes a record.

    `workers` counts processes or Ray actors, `prefetch` the processes that read files ahead of an inline model,
    `address` is that of an existing Ray cluster (empty: RAY_ADDRESS, else a local one), `gpus` the GPUs per Ray actor.
    `unit_timeout` is the number of seconds after which a unit fails (0: never). An inline model then runs in one child
    process, since a hanging call can only be ended with its process.
    """

    name: EngineName = "inline"
    workers: int = 2
    prefetch: int = 0
    address: str = ""
    gpus: float = 0.0
    unit_timeout: float = 0.0


def evaluate_batches(engine: EngineOptions, job: Job, worker: Worker, batches: Sequence[Batch]) -> Iterator[Outcome]:
    """Yield the outcomes of all batches, in the order in which they are ready.

    Raises a `RunError` that names the units where one was not returned, or returned twice.
    """
    taken = _TakenBatches(batches)
    with closing(_choose_engine(engine, job, worker, taken)) as outcomes:
        for outcome in outcomes:
            answered = [str(record["unit"]) for record in outcome.records] + [one.unit for one in outcome.failures]
            if not taken.open.issuperset(answered) or len(set(answered)) < len(answered):
                wrong = [unit for unit in answered if unit not in taken.open or answered.count(unit) > 1]
                raise _make_error(engine, "were returned more than once, or were not requested", wrong)
            taken.open.difference_update(answered)
            yield outcome
    if missing := taken.list_missing():
        raise _make_error(engine, "did not come back", missing)


class _TakenBatches(Sequence[Batch]):
    """Batches for an engine, of which `open` has the units that were taken and have not come back."""

    def __init__(self, batches: Sequence[Batch]) -> None:
        self.batches = batches
        self.untaken = bytearray(b"\1") * len(batches)
        self.open: set[str] = set()

    def __len__(self) -> int:
        return len(self.batches)

    @overload
    def __getitem__(self, index: int) -> Batch: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Batch]: ...

    def __getitem__(self, index: int | slice) -> Batch | Sequence[Batch]:
        if isinstance(index, slice):
            return [self[place] for place in range(len(self))[index]]
        batch = self.batches[index]
        if self.untaken[index]:
            self.untaken[index] = 0
            self.open.update([unit.id for unit in batch])
        return batch

    def list_missing(self) -> list[str]:
        """The units that have not come back, or whose batch was never taken."""
        for index, untaken in enumerate(self.untaken):
            if untaken:
                self[index]
        return sorted(self.open)


def _choose_engine(
    engine: EngineOptions, job: Job, worker: Worker, batches: Sequence[Batch]
) -> Generator[Outcome, None, None]:
    if engine.name == "ray":
        from hardlook.harness.runs.ray_cluster import evaluate_on_ray

        return evaluate_on_ray(
            job,
            batches,
            workers=engine.workers,
            address=engine.address,
            gpus=engine.gpus,
            unit_timeout=engine.unit_timeout,
        )
    if engine.name == "processes" or engine.unit_timeout:
        workers = engine.workers if engine.name == "processes" else 1
        return evaluate_in_processes(job, batches, workers=workers, unit_timeout=engine.unit_timeout)
    return evaluate_inline(job, worker, batches, prefetch=engine.prefetch)


def _make_error(engine: EngineOptions, what: str, units: Sequence[str]) -> RunError:
    more = f" and {len(units) - SHOWN} more" if len(units) > SHOWN else ""
    return RunError(
        f"{len(units)} units {what} (engine {engine.name}); this is an error of hardlook",
        unit=", ".join(units[:SHOWN]) + more,
        remedy="run again (it resumes), and report the error",
    )


def evaluate_inline(
    job: Job, worker: Worker, batches: Sequence[Batch], *, prefetch: int = 0
) -> Generator[Outcome, None, None]:
    """Evaluate batches in order in this process, their files read ahead in `prefetch` others.

    Reading ahead only saves time: when a reader dies (out of memory, say), evaluation continues without it.
    """
    if prefetch > 0:
        yield from _evaluate_ahead(job, worker, batches, prefetch)
        return
    for batch in batches:
        yield from iterate_batch(worker.benchmark, batch, worker.model)


def _evaluate_ahead(
    job: Job, worker: Worker, batches: Sequence[Batch], prefetch: int
) -> Generator[Outcome, None, None]:
    """Evaluate all batches while the files of the next ones are read; those of a lost reader are not."""
    set_thread_variables(job.threads)
    readers = [WorkerProcess[Batch](_make_reader, job) for _ in range(min(prefetch, len(batches)))]
    idle: SimpleQueue[WorkerProcess[Batch] | None] = SimpleQueue()
    for reader in readers:
        idle.put(reader)

    def read(batch: Batch) -> PreparedBatch | None:
        """What a reader made of the batch, None where it was lost; in a thread, so that it overlaps with the model."""
        reader = idle.get()
        try:
            return None if reader is None else reader.ask(batch)
        except WorkerLost:
            reader = None
            return None
        finally:
            idle.put(reader)

    reading: deque[tuple[Batch, Future[PreparedBatch | None]]] = deque()
    threads = ThreadPoolExecutor(max(len(readers), 1), "reader")
    waiting = iter(batches)
    try:
        while True:
            for batch in islice(waiting, prefetch + BATCHES_AHEAD - len(reading)):
                reading.append((batch, threads.submit(read, batch)))
            if not reading:
                break
            batch, future = reading.popleft()
            prepared = future.result()
            if prepared is None or prepared.short_of_memory:
                yield from iterate_batch(worker.benchmark, batch, worker.model)
            else:
                yield from iterate_prepared(worker.benchmark, prepared, worker.model)
    finally:
        for reader in readers:
            reader.process.kill()
        threads.shutdown(wait=True, cancel_futures=True)
        for reader in readers:
            reader.kill()


def evaluate_in_processes(
    job: Job, batches: Sequence[Batch], *, workers: int, unit_timeout: float = 0.0
) -> Generator[Outcome, None, None]:
    """Evaluate batches in `workers` processes.

    A batch whose worker died is tried again while no other process works (memory may have been short), then unit by
    unit. A batch that takes longer than `unit_timeout` seconds for each of its units is ended and tried unit by unit.
    """
    set_thread_variables(job.threads)
    team = _Team(job, BatchQueue(batches, unit_timeout), workers)
    try:
        yield from collect_outcomes(team)
    finally:
        team.end()


class _Team:
    """The worker processes of a run, and what each is working on."""

    def __init__(self, job: Job, queue: BatchQueue, size: int) -> None:
        self.job, self.queue, self.size = job, queue, size
        self.workers: list[WorkerProcess[BatchTask]] = []
        self.deadlines: dict[WorkerProcess[BatchTask], float] = {}
        self.died_at_start = 0

    def fill(self) -> bool:
        """Give tasks to idle workers, starting some where they are too few; return whether there is still work."""
        tasks = [worker.task for worker in self.workers if worker.task is not None]
        if not tasks and not self.queue:
            return False
        alone = any(task.tries > 1 for task in tasks)
        if alone or (self.queue.suspects and tasks):
            return True
        if self.queue.suspects and len(self.workers) > 1:
            self.end()
        size = 1 if self.queue.suspects else min(self.size, len(tasks) + len(self.queue))
        while len(self.workers) < size:
            self.workers.append(WorkerProcess(_make_evaluator, self.job))
        for worker in self.workers[:size]:
            if self.queue and worker.ready and worker.task is None:
                task, now = self.queue.take(), time.monotonic()
                try:
                    worker.submit(task, task.units)
                except WorkerLost:
                    self.queue.give_back(task)
                    self._remove(worker)
                else:
                    self.deadlines[worker] = self.queue.find_deadline(task, now)
        return True

    def collect(self) -> list[Outcome]:
        """Wait until workers have sent something, and return the outcomes of what they answered, lost or let lie."""
        next_deadline = min(self.deadlines.values(), default=float("inf"))
        wait_for_workers(self.workers, min(LOOK_AFTER, next_deadline - time.monotonic()))
        outcomes: list[Outcome] = []
        for worker in list(self.workers):
            try:
                self._read(worker, outcomes)
            except WorkerLost as lost:
                self._remove(worker)
                self._check_starts(worker, str(lost))
                failed = self.queue.note_lost(worker.task, str(lost)) if worker.task else None
            else:
                if self.deadlines.get(worker, float("inf")) > time.monotonic():
                    continue
                self._remove(worker)
                failed = self.queue.note_timeout(worker.task) if worker.task else None
            outcomes += [failed] if failed else []
        return outcomes

    def _read(self, worker: WorkerProcess[BatchTask], outcomes: list[Outcome]) -> None:
        """Add what the worker has answered to the outcomes."""
        for kind, value in worker.receive():
            self.died_at_start = 0
            if kind == "result" and worker.task is not None:
                outcomes.append(worker.task.mark(value))
                worker.task = worker.task.without(value)
                self.deadlines[worker] = self.queue.find_deadline(worker.task, time.monotonic())
            elif kind == "done":
                worker.task = None
                del self.deadlines[worker]

    def _remove(self, worker: WorkerProcess[BatchTask]) -> None:
        worker.kill()
        self.workers.remove(worker)
        self.deadlines.pop(worker, None)

    def _check_starts(self, worker: WorkerProcess[BatchTask], how: str) -> None:
        if worker.ready:
            return
        self.died_at_start += 1
        if self.died_at_start >= MAX_STARTS:
            raise RunError(
                f"{MAX_STARTS} worker processes in a row died before they had built the model: {how}",
                remedy="use fewer --workers if memory is short, or --engine inline; then run again (it resumes)",
            )

    def end(self) -> None:
        """End all workers."""
        for worker in self.workers:
            worker.kill()
        self.workers.clear()
        self.deadlines.clear()


def _make_reader(job: Job) -> Callable[[Batch], Iterator[PreparedBatch]]:
    """What a reader process does: read the files of batches."""
    benchmark = job.load_benchmark()
    return lambda batch: iter([prepare_batch(benchmark, batch)])


def _make_evaluator(job: Job) -> Callable[[Batch], Iterator[Outcome]]:
    """What a worker process does: build benchmark and model once, then evaluate batches."""
    worker = build_worker(job)
    return lambda batch: iterate_batch(worker.benchmark, batch, worker.model)
