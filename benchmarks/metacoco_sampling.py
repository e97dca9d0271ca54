"""Few-shot tasks drawn from 12,000 images: seconds for 3,000 of each mode, beside a loop with a generator a task.

Run `python benchmarks/metacoco_sampling.py`. The images lie in 20 concepts x 12 contexts, 50 each. The target is .5 s
for all five modes at 5-way 5-shot with 15 queries, choosing the classes included. The loop is the one that people
write: a numpy Generator a task, `choice` for classes, contexts, supports and queries, lists of images made before. It
makes no check and knows no doubles. It is timed on fewer tasks and scaled. Seconds are processor time on one thread,
best of a few runs.
"""

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hardlook.data.concept_context import ImageTable
from hardlook.metacoco.tasks.checking import check_tasks
from hardlook.metacoco.tasks.drawing import Tasks, draw_tasks
from hardlook.metacoco.tasks.eligibility import find_eligible_classes
from hardlook.metacoco.tasks.images import MODES

CONCEPTS, CONTEXTS, IMAGES = 20, 12, 12_000
TASKS, LOOP_TASKS, QUERIES = 3_000, 300, 15
TARGET_SECONDS, TARGET_WAYS, TARGET_SHOTS = 0.5, 5, 5


def images() -> ImageTable:
    row = np.arange(IMAGES)
    names = tuple(f"c{k:02}" for k in range(CONCEPTS)), tuple(f"x{x:02}" for x in range(CONTEXTS))
    return ImageTable(*names, row % CONCEPTS, row // CONCEPTS % CONTEXTS, row)


def draw_all(table: ImageTable, ways: int, shots: int) -> list[Tasks]:
    eligible = find_eligible_classes(table, MODES, ways, shots, QUERIES)
    return [draw_tasks(eligible, mode, np.arange(TASKS), seed=0) for mode in MODES]


def check_all(drawn: list[Tasks], table: ImageTable) -> None:
    for tasks in drawn:
        check_tasks(tasks, table)


class PlainLoop:
    """One Generator a task."""

    def __init__(self, table: ImageTable) -> None:
        self.cells = {
            (k, x): np.flatnonzero((table.concept == k) & (table.context == x))
            for k in range(CONCEPTS)
            for x in range(CONTEXTS)
        }
        self.whole = {k: np.flatnonzero(table.concept == k) for k in range(CONCEPTS)}
        self.outside = {(k, x): np.flatnonzero((table.concept == k) & (table.context != x)) for k, x in self.cells}

    def task(self, mode: str, ways: int, shots: int, index: int) -> list[NDArray[np.int64]]:
        """Supports and queries of each class in turn."""
        rng = np.random.default_rng((0, index))
        classes = rng.choice(CONCEPTS, ways, replace=False)
        contexts = rng.integers(0, CONTEXTS, ways)
        if mode == "shared":
            contexts[:] = contexts[0]
        order = rng.permutation(ways)
        rows = []
        for way, k in enumerate(classes):
            cell = self.cells[k, contexts[way]]
            support = rng.choice(cell, shots, replace=False)
            if mode == "ood":
                pool = self.outside[k, contexts[way]]
            elif mode == "swapped":
                pool = self.cells[k, contexts[order[way]]]
            else:
                pool = np.setdiff1d(self.whole[k] if mode == "blind" else cell, support)
            rows += [support, rng.choice(pool, QUERIES, replace=False)]
        return rows


def seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """Best of a few runs: the others measure what else the machine was doing."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    table = images()
    loop = PlainLoop(table)
    for ways, shots in ((5, 1), (5, 5), (10, 5)):
        took = seconds(lambda ways=ways, shots=shots: draw_all(table, ways, shots))  # type: ignore[misc]
        plain = seconds(
            lambda ways=ways, shots=shots: [  # type: ignore[misc]
                loop.task(mode, ways, shots, index) for mode in MODES for index in range(LOOP_TASKS)
            ],
            repeats=2,
        )
        plain *= TASKS / LOOP_TASKS
        drawn = draw_all(table, ways, shots)
        checked = seconds(lambda drawn=drawn: check_all(drawn, table))  # type: ignore[misc]
        print(f"{ways}-way {shots}-shot, {TASKS:,} tasks of each of {len(MODES)} modes: {took:.3f} s")
        if (ways, shots) == (TARGET_WAYS, TARGET_SHOTS):
            print(f"  target {TARGET_SECONDS} s: {'met' if took <= TARGET_SECONDS else 'MISSED'}")
        print(
            f"  {plain / took:.0f}x a loop with a generator a task ({plain:.2f} s); the check of all: {checked:.3f} s"
        )


if __name__ == "__main__":
    main()
