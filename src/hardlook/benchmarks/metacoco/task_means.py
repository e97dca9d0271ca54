"""Scores of MetaCoCo that are means over tasks: the accuracy of every mode, and what a task loses between two modes.

The scorecard gives them t intervals, as in the paper; comparisons of runs take them as sums over tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hardlook.benchmarks.metacoco.comparison import comparable_words
from hardlook.benchmarks.metacoco.options import MetaCocoOptions
from hardlook.contract.tally import Entry, SumTally, ratio

if TYPE_CHECKING:
    import polars as pl

GAPS = {"gap": ("iid", "ood"), "swapped-gap": ("iid", "swapped"), "blind-gap": ("iid", "blind")}
Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class TaskMean:
    """One score as values of single tasks: `index` (n,) their numbers, ascending, `values` (n,) what each got."""

    name: str
    index: NDArray[np.int64]
    values: Numbers
    comparable: str = ""


def task_accuracies(records: pl.DataFrame, mode: str) -> tuple[NDArray[np.int64], Numbers]:
    """The numbers of a mode's tasks, ascending, and the accuracy of each."""
    chosen = records.filter(records["mode"] == mode).sort("index")
    return chosen["index"].to_numpy(), chosen["correct"].to_numpy() / chosen["queries"].to_numpy()


def task_means(records: pl.DataFrame, options: MetaCocoOptions) -> list[TaskMean]:
    """Of records of one choice of ways and shots: every mode that was asked for, then the gaps; some of no task."""
    ways, shots = int(records["ways"][0]), int(records["shots"][0])
    means = [
        TaskMean(mode, *task_accuracies(records, mode), comparable_words(mode, ways, shots, options))
        for mode in options.modes
    ]
    for name, (first, second) in GAPS.items():
        if name == "blind-gap" and options.blind_supports != "ours":
            continue  # its supports are not those of the other modes
        means.append(_gap(name, task_accuracies(records, first), task_accuracies(records, second)))
    return means


def tally_means(means: Sequence[TaskMean], where: dict[str, str]) -> SumTally:
    """The scores as sums over tasks; a task in several modes has the same supports in all, and so is one row.

    >>> iid = TaskMean("iid", np.array([0, 1]), np.array([1.0, 0.5]))
    >>> ood = TaskMean("ood", np.array([1, 2]), np.array([0.5, 0.25]))
    >>> tally_means([iid, ood], {}).values()
    array([[0.75 , 0.375]])
    """
    tasks = np.unique(np.concatenate([one.index for one in means]))
    sums = np.zeros((len(tasks), len(means), 2))
    for place, one in enumerate(means):
        sums[np.searchsorted(tasks, one.index), place] = np.stack([one.values, np.ones(len(one.values))], axis=1)
    entries = tuple(Entry(one.name, len(one.values), where, comparable=one.comparable) for one in means)
    return SumTally(entries, sums.reshape(len(tasks), -1), shares, ("metacoco", "tasks", *where.values()), "task")


def shares(totals: Numbers) -> Numbers:
    """(m, 2 K) sums and counts in turn to (m, K) means; NaN where the count is 0."""
    return ratio(totals.reshape(len(totals), -1, 2))


def _gap(name: str, one: tuple[NDArray[np.int64], Numbers], other: tuple[NDArray[np.int64], Numbers]) -> TaskMean:
    """The difference of the same task in two modes: same classes, same supports, other queries."""
    both = np.intersect1d(one[0], other[0])
    return TaskMean(name, both, one[1][np.isin(one[0], both)] - other[1][np.isin(other[0], both)])
