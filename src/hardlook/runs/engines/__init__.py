"""Ways to get batches answered: in this process, in several, or on a Ray cluster; the answers are the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from hardlook.runs.batches import Batch
from hardlook.runs.evaluation import Outcome
from hardlook.runs.worker import Job, Worker

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
        from hardlook.runs.engines.processes import answer_in_processes

        return answer_in_processes(job, batches, workers=engine.workers)
    if engine.name == "ray":
        from hardlook.runs.engines.ray_actors import answer_on_ray

        return answer_on_ray(job, batches, workers=engine.workers, address=engine.address, gpus=engine.gpus)
    from hardlook.runs.engines.inline import answer_inline

    return answer_inline(job, here, batches, prefetch=engine.prefetch)
