"""The batches that are still to be evaluated, and what becomes of one whose worker was lost or gave no answer.

>>> from hardlook.harness.benchmark import Unit
>>> queue = BatchQueue([(Unit("a", 0), Unit("b", 0))])
>>> queue.note_lost(queue.take(), "it was ended by SIGKILL")  # to be tried again, whole
>>> queue.note_lost(queue.take(), "it was ended by SIGKILL")  # then unit by unit
>>> queue.note_lost(queue.take(), "it was ended by SIGKILL")  # each twice
>>> queue.note_lost(queue.take(), "it was ended by SIGKILL").failures[0].unit
'a'
>>> [unit.id for unit in queue.take().units], len(queue)
(['b'], 0)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from hardlook.harness.benchmark import Unit
from hardlook.harness.runs.evaluation import Outcome, fail_batch

# Workers that may be lost on a whole batch before its units are evaluated one by one; on a unit alone, one more.
MAX_TRIES = 2

# Machines that may be lost under a batch before it is taken for the cause.
MAX_MOVES = 5


@dataclass(frozen=True)
class BatchTask:
    """A batch for a worker.

    `tries` counts this one, `moves` the machines that were lost under it, `split` marks the first unit of a batch that
    was split.
    """

    units: tuple[Unit, ...]
    tries: int = 1
    moves: int = 0
    split: bool = False

    def mark(self, outcome: Outcome) -> Outcome:
        """The outcome of this task; where its batch was split, it says so."""
        return replace(outcome, split=True) if self.split else outcome

    def without(self, outcome: Outcome) -> BatchTask:
        """What is left of the task after a part of its outcome."""
        answered = {str(record["unit"]) for record in outcome.records} | {failure.unit for failure in outcome.failures}
        return replace(self, units=tuple(unit for unit in self.units if unit.id not in answered), split=False)


class BatchQueue:
    """Batches that wait for a worker; `suspects` are those on which a worker was lost before.

    Batches are read when a worker takes them; `waiting` are those that were taken before and returned to the queue.

    `unit_timeout` is in seconds; 0 is none.
    """

    def __init__(self, batches: Sequence[tuple[Unit, ...]], unit_timeout: float = 0.0) -> None:
        self.batches, self.unread = iter(batches), len(batches)
        self.waiting: deque[BatchTask] = deque()
        self.suspects: deque[BatchTask] = deque()
        self.unit_timeout = unit_timeout

    def __len__(self) -> int:
        return len(self.waiting) + len(self.suspects) + self.unread

    def take(self) -> BatchTask:
        """The next task, suspects first: when a model kills its workers, that is soon known."""
        if self.suspects or self.waiting:
            return (self.suspects or self.waiting).popleft()
        self.unread -= 1
        return BatchTask(next(self.batches))

    def give_back(self, task: BatchTask) -> None:
        """Put back a task that was not begun, or whose end was not its own fault."""
        (self.suspects if task.tries > 1 else self.waiting).appendleft(task)

    def note_lost(self, task: BatchTask, how: str) -> Outcome | None:
        """Have the task tried again whole, then unit by unit; a unit on which workers are lost alone fails."""
        if not task.units:
            return None
        if task.tries < (MAX_TRIES if len(task.units) > 1 else MAX_TRIES + 1):
            self.suspects.appendleft(replace(task, tries=task.tries + 1))
        elif len(task.units) > 1:
            self.suspects.extendleft(reversed(_split(task)))
        else:
            reason = f"the worker died on this unit every time: {how} (out of memory? killed?)"
            return task.mark(fail_batch(task.units, reason))
        return None

    def note_move(self, task: BatchTask) -> Outcome | None:
        """Have a task whose machine was lost tried elsewhere, as if nothing had been, but not for ever."""
        if task.moves >= MAX_MOVES:
            return self.note_lost(task, f"{MAX_MOVES} machines were lost under it")
        self.give_back(replace(task, moves=task.moves + 1))
        return None

    def note_timeout(self, task: BatchTask) -> Outcome | None:
        """Have the units of the task tried one by one; a unit that was alone fails."""
        if len(task.units) != 1:
            self.waiting.extendleft(reversed(_split(replace(task, tries=1))))
            return None
        reason = f"no answer within {self.unit_timeout:g} s (--unit-timeout); its worker was ended"
        return task.mark(fail_batch(task.units, reason))

    def find_deadline(self, task: BatchTask, now: float) -> float:
        """When a task that begins now has to be answered, on the clock of `now`."""
        return now + self.unit_timeout * len(task.units) if self.unit_timeout else float("inf")


def _split(task: BatchTask) -> list[BatchTask]:
    return [replace(task, units=(unit,), split=place == 0) for place, unit in enumerate(task.units)]


class Team(Protocol):
    """Workers that take batches from a queue."""

    def fill(self) -> bool:
        """Give every idle worker a batch; whether any batch is left or being evaluated."""
        ...

    def collect(self) -> list[Outcome]:
        """Wait for workers, and return what they have evaluated."""
        ...


def collect_outcomes(team: Team) -> Iterator[Outcome]:
    """Yield every outcome; workers have their next batches before the caller works on those of the last ones."""
    outcomes: list[Outcome] = []
    while team.fill():
        yield from outcomes
        outcomes = team.collect()
    yield from outcomes
