"""MetaCoCo by concept, by context of support and query, and where wrong answers go: scores of single queries.

Rows and columns of the sums follow from what was asked and never from what was answered, so that two runs of the same
tasks can be compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hardlook.benchmarks.metacoco.answers_table import QueryAnswers, query_answers
from hardlook.benchmarks.metacoco.options import MetaCocoOptions
from hardlook.benchmarks.metacoco.task_means import shares
from hardlook.contract.scorecard import LeftOut
from hardlook.contract.tally import Entry, SumTally

if TYPE_CHECKING:
    import polars as pl

MISLED = ("ood", "swapped", "blind")
ATTRACTION = ("attraction", "attraction-chance", "excess-attraction")
MOST_PAIRS = 400
Numbers = NDArray[np.float64]
Places = NDArray[np.int64]


def tally_queries(
    records: pl.DataFrame, where: dict[str, str], options: MetaCocoOptions
) -> tuple[list[SumTally], list[LeftOut]]:
    """The scores of records of one choice of ways and shots, and what was left out of them."""
    kept = records.filter(records["predicted"].list.len() > 0)
    first = next((mode for mode in MISLED if mode in options.modes), None)
    tallies: list[SumTally] = []
    for mode in options.modes:
        answers = query_answers(kept.filter(kept["mode"] == mode).sort("index"))
        if len(answers.task):
            at = {**where, "mode": mode}
            tallies.append(_concepts(answers, at))
            # Supports of several contexts are in none that a wrong answer could have followed.
            if mode in MISLED and (answers.own_context >= 0).any():
                key = ("metacoco", "attraction", *at.values())
                tallies.append(_attraction(answers, where if mode == first else at, key))
    # One context for all classes tells nothing about two contexts.
    apart = kept.filter(kept["mode"] != "shared").sort("mode", "index")
    together = query_answers(apart)
    if not (together.own_context >= 0).any():
        return tallies, []
    pairs, left_out = _context_pairs(together, apart["index"].to_numpy(), where)
    return [*tallies, pairs], left_out


def _concepts(answers: QueryAnswers, where: dict[str, str]) -> SumTally:
    concepts = len(answers.concepts)
    sums = _cell_sums(answers.task, answers.concept, answers.right, (int(answers.task.max()) + 1, concepts))
    counts = np.bincount(answers.concept, minlength=concepts)
    entries = tuple(
        Entry("accuracy", int(count), {**where, "concept": name})
        for name, count in zip(answers.concepts, counts, strict=True)
    )
    return SumTally(entries, sums, shares, ("metacoco", "concept", *where.values()), "task")


def _context_pairs(answers: QueryAnswers, index: Places, where: dict[str, str]) -> tuple[SumTally, list[LeftOut]]:
    """Accuracy by the context of the class's supports and of the query, and what leaving the former costs.

    A gap is the accuracy at home less that abroad, of the same supports: both from the same resamples. `index` numbers
    the tasks: one task in several modes has the same supports, and so counts once.
    """
    size = len(answers.contexts)
    shown = answers.own_context >= 0
    pair = answers.own_context * size + answers.query_context
    every, counts = np.unique(pair[shown], return_counts=True)
    listed = np.sort(np.argsort(-counts, kind="stable")[:MOST_PAIRS])
    pairs, counts = every[listed], counts[listed]
    inside = shown & np.isin(pair, pairs)
    cell = np.searchsorted(pairs, pair[inside])
    sums = _cell_sums(answers.task[inside], cell, answers.right[inside], (len(index), len(pairs)))
    home = np.searchsorted(pairs, pairs // size * (size + 1)).clip(max=len(pairs) - 1)
    away = np.flatnonzero((pairs[home] == pairs // size * (size + 1)) & (pairs // size != pairs % size))

    def statistic(totals: Numbers) -> Numbers:
        share = shares(totals)
        return np.concatenate([share, share[:, home[away]] - share[:, away]], axis=1)

    labels = [
        {**where, "support context": answers.contexts[one // size], "query context": answers.contexts[one % size]}
        for one in pairs
    ]
    entries = [Entry("accuracy", int(n), label) for n, label in zip(counts, labels, strict=True)]
    entries += [Entry("gap", int(counts[place]), labels[place]) for place in away]
    tally = SumTally(tuple(entries), sums, statistic, ("metacoco", "contexts", *where.values()), "task", index)
    if len(every) == len(pairs):
        return tally, []
    why = f"those of fewer queries than the first {MOST_PAIRS} have no scores of their own"
    return tally, [LeftOut("pairs of contexts", len(every) - len(pairs), why)]


def _cell_sums(task: Places, cell: Places, right: NDArray[np.bool_], shape: tuple[int, int]) -> Any:
    """Right answers and answers of each cell in turn, (tasks, 2 cells), sparse."""
    from scipy.sparse import coo_array, csr_array

    tasks, cells = shape
    row = np.concatenate([task, task])
    column = np.concatenate([cell * 2, cell * 2 + 1])
    data = np.concatenate([right.astype(np.float64), np.ones(len(cell))])
    return csr_array(coo_array((data, (row, column)), shape=(tasks, 2 * cells)))


def _attraction(answers: QueryAnswers, where: dict[str, str], key: tuple[str, ...]) -> SumTally:
    """The share of errors that go to a class shown in the query's context, and what chance would give.

    Chance: a wrong answer falls on each wrong class alike. Only queries for which some wrong class is shown in their
    context can be attracted; the others count among the errors all the same, in both numbers.
    """
    wrong = ~answers.right
    by_chance = answers.rivals / np.maximum(answers.ways - 1, 1)
    sums = np.stack([answers.attracted, wrong, np.where(wrong, by_chance, 0.0)], axis=1).astype(np.float64)
    # Errors of one task alone are in a resample or not: their share is the same wherever it exists.
    alone = 1 if len(np.unique(answers.task[wrong])) == 1 else None
    entries = tuple(Entry(name, int(wrong.sum()), where, clusters=alone) for name in ATTRACTION)
    return SumTally(entries, sums, _attracted_shares, key, "task", answers.task)


def _attracted_shares(totals: Numbers) -> Numbers:
    # A run without errors, taken from one with some, may leave a rounding error of chance over none.
    errors = np.where(totals[:, 1] > 0, totals[:, 1], np.nan)
    share, chance = totals[:, 0] / errors, totals[:, 2] / errors
    return np.stack([share, chance, share - chance], axis=1)
