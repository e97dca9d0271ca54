"""How many answers each task has, by display mode and device: all that came, and those that count.

A click counts when its batch does and it lies inside the region or near it; a verdict or a rating always does.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from hardlook.collect.study.folder import Study


@dataclass(frozen=True)
class TaskCounts:
    """Counts of one task; keys of `cells` are (mode, device), values (answers that count, all answers)."""

    task: str
    cells: dict[tuple[str, str], tuple[int, int]]

    @cached_property
    def fewest(self) -> int:
        """Answers that count in the cell that has the fewest."""
        return min(valid for valid, _ in self.cells.values())

    @cached_property
    def valid(self) -> int:
        """Answers that count, over all cells."""
        return sum(valid for valid, _ in self.cells.values())

    @cached_property
    def answers(self) -> int:
        """All answers."""
        return sum(answers for _, answers in self.cells.values())


def counting(answers: pl.DataFrame, excluded: Collection[str] = ()) -> pl.Series:
    """Which answers count (N,) bool; those of `excluded` participants do not.

    >>> frame = pl.DataFrame({"participant": ["a", "a", "b"], "near": [True, False, True], "x": [1.0, 2.0, 3.0],
    ...                       "batch_valid": [True, True, True], "batch_state": ["complete"] * 3})
    >>> counting(frame, {"b"}).to_list()
    [True, False, False]
    """
    hit = pl.col("near").fill_null(False) & _in_a_valid_batch()
    return answers.select((pl.col("x").is_null() | hit) & _of_others(excluded)).to_series()


def standing(answers: pl.DataFrame, excluded: Collection[str] = ()) -> pl.Series:
    """Which answers are of a batch that counts, by a participant who is not excluded (N,) bool, wherever they lie."""
    return answers.select(_in_a_valid_batch() & _of_others(excluded)).to_series()


def task_counts(study: Study, answers: pl.DataFrame, excluded: Collection[str] = ()) -> list[TaskCounts]:
    """The counts of every task that is handed out, in the order of tasks; cells without an answer are 0."""
    keys = ("task", "mode", "device")
    grouped = (
        answers.select(*keys, counting(answers, excluded).alias("counts"))
        .group_by(keys)
        .agg(pl.col("counts").sum(), pl.len().alias("answers"))
    )
    found = {(task, mode, device): (valid, every) for task, mode, device, valid, every in grouped.iter_rows()}
    modes: dict[str, list[str]] = {}
    for item in study.items:
        modes.setdefault(item.task, []).append(item.mode)
    return [
        TaskCounts(
            task,
            {
                (mode, device): found.get((task, mode, device), (0, 0))
                for mode in modes[task]
                for device in study.settings.devices
            },
        )
        for task in modes
    ]


def _in_a_valid_batch() -> pl.Expr:
    return (pl.col("batch_valid") & (pl.col("batch_state") != "open")).fill_null(False)


def _of_others(excluded: Collection[str]) -> pl.Expr:
    return ~pl.col("participant").is_in(list(excluded))
