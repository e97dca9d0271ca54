"""Evaluate batches on a Ray cluster: one actor per worker; lost actors are replaced.

The cluster is given by its address, or a local one is started. hardlook must be installed on its nodes, and data paths
must be the same there.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from hardlook.errors import RunError
from hardlook.extras import require
from hardlook.harness.runs.evaluation import THREAD_VARIABLES, Job, Outcome, build_worker, evaluate_batch, fail_batch
from hardlook.harness.runs.plan import Batch

MAX_TRIES = 2


class Evaluator:
    """The actor: builds benchmark and model once, then evaluates batches."""

    def __init__(self, job: Job) -> None:
        self.worker = build_worker(job)

    def evaluate(self, batch: Batch) -> Outcome:
        """Evaluate one batch."""
        return evaluate_batch(self.worker.benchmark, batch, self.worker.model)


def evaluate_on_ray(
    job: Job, batches: Sequence[Batch], *, workers: int, address: str = "", gpus: float = 0.0
) -> Iterator[Outcome]:
    """Evaluate batches on Ray actors; a batch whose actor is lost goes to a new actor, at last one unit at a time."""
    ray = require("ray", extra="ray")
    started_here = not ray.is_initialized()
    if started_here:
        _connect(ray, address, workers, job.threads)
    _check_resources(ray, gpus)
    remote = ray.remote(num_cpus=1, num_gpus=gpus, max_restarts=0)(Evaluator)
    waiting = deque((batch, 1) for batch in batches)
    running: dict[Any, tuple[Any, Batch, int]] = {}
    try:
        for _ in range(min(workers, len(batches))):
            _submit(remote.remote(job), waiting, running)
        while running:
            done, _ = ray.wait(list(running), num_returns=1)
            actor, batch, tries = running.pop(done[0])
            try:
                outcome: Outcome | None = ray.get(done[0])
            except ray.exceptions.RayActorError as error:
                # The actor, its process or its node is gone; an error of the model itself would be in an Outcome.
                if "__init__" in str(error) and "creation task" in str(error):
                    raise
                outcome = None
                if tries < MAX_TRIES:
                    waiting.appendleft((batch, tries + 1))
                elif len(batch) > 1:
                    waiting.extendleft(((unit,), MAX_TRIES) for unit in batch)
                else:
                    outcome = fail_batch(batch, f"the Ray actor was lost on this unit every time: {error}")
                actor = remote.remote(job) if waiting else None
            if actor is not None:
                _submit(actor, waiting, running)
            if outcome is not None:
                yield outcome
    finally:
        for actor, _, _ in running.values():
            ray.kill(actor)
        if started_here:
            ray.shutdown()


def _check_resources(ray: Any, gpus: float) -> None:
    """Raise an error where no node can hold an actor: Ray would wait for one forever, silently."""
    available = ray.cluster_resources()
    for resource, wanted in (("CPU", 1.0), ("GPU", gpus)):
        if available.get(resource, 0.0) < wanted:
            raise RunError(
                f"a worker needs {wanted:g} {resource}, the Ray cluster has {available.get(resource, 0.0):g}",
                remedy="lower --gpus, or give --address of a cluster that has them",
            )


def _submit(actor: Any, waiting: deque[tuple[Batch, int]], running: dict[Any, tuple[Any, Batch, int]]) -> None:
    if waiting:
        batch, tries = waiting.popleft()
        running[actor.evaluate.remote(batch)] = (actor, batch, tries)


def _connect(ray: Any, address: str, workers: int, threads: int) -> None:
    variables = {name: str(threads) for name in THREAD_VARIABLES}
    if address:
        ray.init(address=address, runtime_env={"env_vars": variables}, log_to_driver=False)
        return
    # Actors must find models named package.module:attribute on the same path as the driver.
    variables["PYTHONPATH"] = ":".join(path for path in sys.path if path)
    ray.init(
        num_cpus=workers,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        runtime_env={"env_vars": variables},
    )
