"""Evaluate batches on a Ray cluster: one actor per worker; lost actors are replaced.

The cluster is given by its address or by RAY_ADDRESS, or a local one is started. hardlook must be installed on its
nodes, and data paths must be the same there. Batches go to actors that have answered, never to one that waits for a
place, and there are no more actors than the nodes have room for; nodes may join and leave while a run is under way.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hardlook.errors import RunError, RunWarning
from hardlook.extras import require
from hardlook.harness.runs.batch_queue import BatchQueue, BatchTask, collect_outcomes
from hardlook.harness.runs.batches import Batch
from hardlook.harness.runs.evaluation import Job, Outcome, build_worker, iterate_batch
from hardlook.harness.runs.signals import kept_signal_handlers
from hardlook.models.families.downloads import OFFLINE, is_offline
from hardlook.threads import THREAD_VARIABLES

# Seconds after which nodes are counted again and deadlines looked at, although no actor has answered.
LOOK_AFTER = 2.0

# Seconds to wait for a node after the last one that could hold a worker has left.
WAIT_FOR_NODES = 60.0

# Actors for each worker that may be lost, in a row, before they have built the model.
MAX_STARTS = 3


class Evaluator:
    """The actor: builds benchmark and model once, then evaluates batches."""

    def __init__(self, job: Job) -> None:
        self.worker = build_worker(job)

    def find_node(self) -> str:
        """The node that it runs on, once it is ready."""
        import ray

        node: str = ray.get_runtime_context().get_node_id()
        return node

    def evaluate(self, batch: Batch) -> Iterator[Outcome]:
        """Evaluate one batch; yields its outcome, perhaps in parts."""
        yield from iterate_batch(self.worker.benchmark, batch, self.worker.model)


def evaluate_on_ray(
    job: Job,
    batches: Sequence[Batch],
    *,
    workers: int,
    address: str = "",
    gpus: float = 0.0,
    unit_timeout: float = 0.0,
) -> Generator[Outcome, None, None]:
    """Evaluate batches on Ray actors; a batch whose actor is lost goes to a new actor, at last one unit at a time."""
    ray = require("ray", extra="ray")
    started_here = not ray.is_initialized()
    if started_here:
        _connect(ray, address, workers, job.threads)
    team = _Team(ray, job, BatchQueue(batches, unit_timeout), workers, gpus)
    try:
        team.check_resources()
        yield from collect_outcomes(team)
    finally:
        team.end()
        if started_here:
            ray.shutdown()


@dataclass
class _Actor:
    """An actor and the node it is on (empty until it is ready), what it works on, and until when."""

    handle: Any
    node: str = ""
    task: BatchTask | None = None
    deadline: float = float("inf")


class _Team:
    """The actors of a run, each by the references to what it is about to answer, and those that are idle."""

    def __init__(self, ray: Any, job: Job, queue: BatchQueue, size: int, gpus: float) -> None:
        self.ray, self.job, self.queue, self.size, self.gpus = ray, job, queue, size, gpus
        self.remote = ray.remote(num_cpus=1, num_gpus=gpus, max_restarts=0)(Evaluator)
        self.answering: dict[Any, _Actor] = {}
        self.idle: list[_Actor] = []
        self.lost_at_start = 0
        self.room, self.counted = 0, float("-inf")
        self.without_room = 0.0

    def check_resources(self) -> None:
        """Raise an error where no node can hold an actor; say so where not all actors have room."""
        room = self._count_room()
        if not room:
            available = self.ray.cluster_resources()
            needs = {"CPU": 1.0, "GPU": self.gpus}
            short = next((name for name, wanted in needs.items() if available.get(name, 0.0) < wanted), "CPU")
            raise RunError(
                f"a worker needs {needs[short]:g} {short}, the Ray cluster has {available.get(short, 0.0):g}",
                remedy="lower --gpus, or give --address of a cluster that has them",
            )
        if room < self.size:
            note = f"the Ray cluster has room for {room} of {self.size} workers; more are started when nodes join"
            warnings.warn(note, RunWarning, stacklevel=2)

    def fill(self) -> bool:
        """Give tasks to idle actors, starting some where there is room; return whether there is still work."""
        busy = sum(actor.task is not None for actor in self.answering.values())
        if not busy and not self.queue:
            return False
        while self.idle and self.queue:
            actor, task = self.idle.pop(), self.queue.take()
            actor.task, actor.deadline = task, self.queue.find_deadline(task, time.monotonic())
            self.answering[actor.handle.evaluate.options(num_returns="streaming").remote(task.units)] = actor
            busy += 1
        wanted = min(self.size, self._count_room(), busy + len(self.queue))
        for _ in range(wanted - len(self.answering) - len(self.idle)):
            actor = _Actor(self.remote.remote(self.job))
            self.answering[actor.handle.find_node.remote()] = actor
        return True

    def collect(self) -> list[Outcome]:
        """Wait until actors have answered or were lost, and return the outcomes."""
        if not self.answering:
            self._wait_for_nodes()
            return []
        self.without_room = 0.0
        now = time.monotonic()
        seconds = min(LOOK_AFTER, min(actor.deadline for actor in self.answering.values()) - now)
        done, _ = self.ray.wait(list(self.answering), num_returns=1, timeout=max(seconds, 0))
        if done:
            done, _ = self.ray.wait(list(self.answering), num_returns=len(self.answering), timeout=0)
        outcomes = [self._read(reference) for reference in done]
        for reference, actor in list(self.answering.items()):
            if actor.task is not None and actor.deadline <= time.monotonic():
                del self.answering[reference]
                self.ray.kill(actor.handle)
                outcomes.append(self.queue.note_timeout(actor.task))
        return [outcome for outcome in outcomes if outcome is not None]

    def _read(self, reference: Any) -> Outcome | None:
        """Take what an actor answered: its node when it is ready, else a part of the outcome of its task."""
        actor = self.answering.pop(reference)
        task = actor.task
        try:
            # A task answers with a stream of references.
            answer = self.ray.get(reference if task is None else next(reference))
        except self.ray.exceptions.RayTaskError:
            raise
        except self.ray.exceptions.RayError as error:
            # The actor, its process or its node is gone; an error of the model itself would be in an Outcome.
            self.ray.kill(actor.handle)
            if task is None:
                self._check_starts(error)
                return None
            if self._is_node_lost(actor, error):
                return self.queue.note_move(task)
            return self.queue.note_lost(task, " ".join(str(error).split()))
        self.lost_at_start = 0
        if task is None:
            actor.node = answer
            self.idle.append(actor)
            return None
        left = task.without(answer)
        if left.units:
            actor.task, actor.deadline = left, self.queue.find_deadline(left, time.monotonic())
            self.answering[reference] = actor
        else:
            actor.task, actor.deadline = None, float("inf")
            self.idle.append(actor)
        outcome: Outcome = task.mark(answer)
        return outcome

    def _check_starts(self, error: Exception) -> None:
        self.lost_at_start += 1
        failed = "creation task" in str(error) and "__init__" in str(error)
        if failed or self.lost_at_start >= MAX_STARTS * self.size:
            raise RunError(
                f"no Ray actor could build the model: {error}",
                remedy="check that hardlook, the model and its files are the same on all nodes; then run again",
            ) from error

    def _is_node_lost(self, actor: _Actor, error: Exception) -> bool:
        alive = {node["NodeID"] for node in self.ray.nodes() if node["Alive"]}
        return actor.node not in alive or "node has died" in str(error) or "node failed" in str(error)

    def _count_room(self) -> int:
        """How many actors the living nodes can hold; counted again every few seconds."""
        if time.monotonic() - self.counted >= LOOK_AFTER:
            needs = [("CPU", 1.0), *([("GPU", self.gpus)] if self.gpus else [])]
            living = [node["Resources"] for node in self.ray.nodes() if node["Alive"]]
            self.room = sum(int(min(node.get(name, 0.0) / wanted for name, wanted in needs)) for node in living)
            self.counted = time.monotonic()
        return self.room

    def _wait_for_nodes(self) -> None:
        """Wait a moment for a node that can hold a worker; raise an error after a minute without any."""
        time.sleep(LOOK_AFTER / 4)
        self.without_room += LOOK_AFTER / 4
        if self.without_room >= WAIT_FOR_NODES:
            raise RunError(
                f"the Ray cluster has had no room for a worker for {WAIT_FOR_NODES:g} s: its nodes have left",
                remedy="start nodes, then run again (it resumes)",
            )

    def end(self) -> None:
        """End all actors."""
        for actor in [*self.answering.values(), *self.idle]:
            self.ray.kill(actor.handle)


@kept_signal_handlers()
def _connect(ray: Any, address: str, workers: int, threads: int) -> None:
    variables = {name: str(threads) for name in THREAD_VARIABLES}
    if is_offline():
        variables[OFFLINE] = "1"
    address = address or os.environ.get("RAY_ADDRESS", "")
    if address:
        ray.init(address=address, runtime_env={"env_vars": variables}, log_to_driver=False, logging_level="ERROR")
        return
    # Actors must find models named package.module:attribute on the same path as the driver.
    variables["PYTHONPATH"] = ":".join(path for path in sys.path if path)
    # Without "local", Ray would join any cluster that runs on this machine.
    ray.init(
        address="local",
        num_cpus=workers,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        runtime_env={"env_vars": variables},
    )
