"""MetaCoCo by concept, by context of support and query, and where wrong answers go: scores of single queries."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hardlook.benchmarks.metacoco.answers_table import QueryAnswers, query_answers
from hardlook.benchmarks.metacoco.options import MetaCocoOptions
from hardlook.contract.scorecard import LeftOut, Score, score_of
from hardlook.randomness import generator
from hardlook.stats import bootstrap_scores

if TYPE_CHECKING:
    import polars as pl

    from hardlook.stats.intervals import Estimate

MISLED = ("ood", "swapped", "blind")
MOST_PAIRS = 400
Numbers = NDArray[np.float64]
Places = NDArray[np.int64]


def query_slices(
    records: pl.DataFrame, where: dict[str, str], options: MetaCocoOptions
) -> tuple[list[Score], list[LeftOut]]:
    """The scores of records of one choice of ways and shots, and what was left out of them."""
    kept = records.filter(records["predicted"].list.len() > 0)
    scores: list[Score] = []
    for mode in options.modes:
        answers = query_answers(kept.filter(kept["mode"] == mode).sort("index"))
        if len(answers.task):
            at = {**where, "mode": mode}
            scores += _concepts(answers, at, options)
            # Supports of several contexts are in none that a wrong answer could have followed.
            if mode in MISLED and (answers.own_context >= 0).any():
                scores += _attraction(answers, where, at, mode, options)
    # One context for all classes tells nothing about two contexts.
    apart = kept.filter(kept["mode"] != "shared").sort("mode", "index")
    together = query_answers(apart)
    if not (together.own_context >= 0).any():
        return scores, []
    pairs, left_out = _context_pairs(together, apart["index"].to_numpy(), where, options)
    return scores + pairs, left_out


def _concepts(answers: QueryAnswers, where: dict[str, str], options: MetaCocoOptions) -> Iterator[Score]:
    shares = _CellShares(answers.task, answers.concept, answers.right, len(answers.concepts))
    estimates = shares.estimates(None, options, ("concept", *where.values()))
    for name, estimate, count in zip(answers.concepts, estimates, shares.counts, strict=True):
        yield score_of("accuracy", estimate, int(count), slice={**where, "concept": name})


def _context_pairs(
    answers: QueryAnswers, index: Places, where: dict[str, str], options: MetaCocoOptions
) -> tuple[list[Score], list[LeftOut]]:
    """Accuracy by the context of the class's supports and of the query, and what leaving the former costs.

    A gap is the accuracy at home less that abroad, of the same supports: both from the same resamples.
    """
    size = len(answers.contexts)
    shown = answers.own_context >= 0
    pair = answers.own_context * size + answers.query_context
    every, counts = np.unique(pair[shown], return_counts=True)
    pairs = np.sort(every[np.argsort(-counts, kind="stable")[:MOST_PAIRS]])
    listed = shown & np.isin(pair, pairs)
    shares = _CellShares(
        answers.task[listed], np.searchsorted(pairs, pair[listed]), answers.right[listed], len(pairs), len(index)
    )
    home = np.searchsorted(pairs, pairs // size * (size + 1)).clip(max=len(pairs) - 1)
    away = np.flatnonzero((pairs[home] == pairs // size * (size + 1)) & (pairs // size != pairs % size))
    estimates = shares.estimates(index, options, ("contexts", *where.values()), (home[away], away))
    labels = [
        {**where, "support context": answers.contexts[one // size], "query context": answers.contexts[one % size]}
        for one in pairs
    ]
    scores = [
        score_of("accuracy" if place < len(pairs) else "gap", estimate, int(shares.counts[cell]), slice=labels[cell])
        for place, (cell, estimate) in enumerate(zip([*range(len(pairs)), *away], estimates, strict=True))
    ]
    if len(every) == len(pairs):
        return scores, []
    why = f"those of fewer queries than the first {MOST_PAIRS} have no scores of their own"
    return scores, [LeftOut("pairs of contexts", len(every) - len(pairs), why)]


class _CellShares:
    """The share of right answers in each of some cells, as sums over tasks."""

    def __init__(self, task: Places, cell: Places, right: NDArray[np.bool_], cells: int, tasks: int = 0) -> None:
        from scipy.sparse import coo_array, csr_array

        row = np.concatenate([task, task])
        column = np.concatenate([cell * 2, cell * 2 + 1])
        data = np.concatenate([right.astype(np.float64), np.ones(len(cell))])
        shape = (max(tasks, int(task.max(initial=0)) + 1), 2 * cells)
        self.sums = csr_array(coo_array((data, (row, column)), shape=shape))
        self.counts = np.bincount(cell, minlength=cells)

    def estimates(
        self,
        clusters: Places | None,
        options: MetaCocoOptions,
        key: Sequence[str],
        less: tuple[Places, Places] | None = None,
    ) -> Sequence[Estimate]:
        """Of each cell, then of the first less the second of `less`; tasks are resampled.

        `clusters` number the tasks: one task in several modes has the same supports, and so counts once.
        """

        def statistic(totals: Numbers) -> Numbers:
            sums = totals.reshape(len(totals), -1, 2)
            share = np.divide(sums[..., 0], sums[..., 1], out=np.full(sums.shape[:2], math.nan), where=sums[..., 1] > 0)
            return share if less is None else np.concatenate([share, share[:, less[0]] - share[:, less[1]]], axis=1)

        return bootstrap_scores(
            self.sums,
            statistic,
            rng=generator(options.seed, "metacoco", *key),
            clusters=clusters,
            resamples=options.resamples,
            level=options.level,
            resampled="task",
        )


def _attraction(
    answers: QueryAnswers, where: dict[str, str], at: dict[str, str], mode: str, options: MetaCocoOptions
) -> Iterator[Score]:
    """The share of errors that go to a class shown in the query's context, and what chance would give.

    Chance: a wrong answer falls on each wrong class alike. Only queries for which some wrong class is shown in their
    context can be attracted; the others count among the errors all the same, in both numbers.
    """
    wrong = ~answers.right
    if not wrong.any():
        return
    by_chance = answers.rivals / np.maximum(answers.ways - 1, 1)
    sums = np.stack([answers.attracted, wrong, np.where(wrong, by_chance, 0.0)], axis=1).astype(np.float64)

    def statistic(totals: Numbers) -> Numbers:
        share, chance = totals[:, 0] / totals[:, 1], totals[:, 2] / totals[:, 1]
        return np.stack([share, chance, share - chance], axis=1)

    estimates = bootstrap_scores(
        sums,
        statistic,
        rng=generator(options.seed, "metacoco", "attraction", *at.values()),
        clusters=answers.task,
        resamples=options.resamples,
        level=options.level,
        resampled="task",
    )
    first = next((one for one in MISLED if one in options.modes), mode)
    here = where if mode == first else at
    # Errors of one task alone are in a resample or not: their share is the same wherever it exists.
    vary = len(np.unique(answers.task[wrong])) > 1
    for name, estimate in zip(("attraction", "attraction-chance", "excess-attraction"), estimates, strict=True):
        score = score_of(name, estimate, int(wrong.sum()), slice=here)
        yield score if vary else replace(score, interval=None)
