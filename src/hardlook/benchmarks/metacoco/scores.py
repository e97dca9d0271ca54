"""Scores of MetaCoCo: accuracy of every mode, the gaps between modes, and where context misleads."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hardlook.benchmarks.metacoco.answers_table import QueryAnswers, query_answers
from hardlook.benchmarks.metacoco.comparison import comparable_words
from hardlook.benchmarks.metacoco.options import MetaCocoOptions
from hardlook.contract.benchmark import BenchmarkCard
from hardlook.contract.scorecard import LeftOut, Score, Scorecard, score_of
from hardlook.randomness import generator
from hardlook.stats import bootstrap_scores, t_interval

if TYPE_CHECKING:
    import polars as pl

    from hardlook.stats.intervals import Interval

GAPS = {"gap": ("iid", "ood"), "swapped-gap": ("iid", "swapped"), "blind-gap": ("iid", "blind")}
MISLED = ("ood", "swapped", "blind")
MOST_PAIRS = 400
Numbers = NDArray[np.float64]


def score_tasks(card: BenchmarkCard, records: pl.DataFrame, options: MetaCocoOptions) -> Scorecard:
    """Every score; those of the first ways and shots are the headline, the others are slices."""
    scores: list[Score] = []
    combinations = sorted(set(zip(records["ways"].to_list(), records["shots"].to_list(), strict=True)))
    order = {ways: place for place, ways in enumerate(options.ways)}
    shots_order = {shots: place for place, shots in enumerate(options.resolved()[0])}
    combinations.sort(key=lambda pair: (order.get(pair[0], 99), shots_order.get(pair[1], 99)))
    for place, (ways, shots) in enumerate(combinations):
        chosen = records.filter((records["ways"] == ways) & (records["shots"] == shots))
        where = {} if place == 0 else {"ways": str(ways), "shots": str(shots)}
        scores += _accuracies(chosen, where, options, ways, shots) + _gaps(chosen, where, options)
        scores += list(_slices(chosen, where, options))
    return Scorecard(card.name, card.version, "", tuple(scores), left_out=_left_out(records))


def task_accuracies(records: pl.DataFrame, mode: str) -> tuple[NDArray[np.int64], Numbers]:
    """The numbers of a mode's tasks, ascending, and the accuracy of each."""
    chosen = records.filter(records["mode"] == mode).sort("index")
    return chosen["index"].to_numpy(), chosen["correct"].to_numpy() / chosen["queries"].to_numpy()


def _accuracies(
    records: pl.DataFrame, where: dict[str, str], options: MetaCocoOptions, ways: int, shots: int
) -> list[Score]:
    scores = []
    for mode in options.modes:
        _, values = task_accuracies(records, mode)
        if len(values):
            words = comparable_words(mode, ways, shots, options)
            scores.append(_mean(mode, values, where, options, words))
    return scores


def _gaps(records: pl.DataFrame, where: dict[str, str], options: MetaCocoOptions) -> list[Score]:
    """Differences of the same task in two modes: same classes, same supports, other queries."""
    scores = []
    for name, (first, second) in GAPS.items():
        if name == "blind-gap" and options.blind_supports != "ours":
            continue  # its supports are not those of the other modes
        one, other = task_accuracies(records, first), task_accuracies(records, second)
        both = np.intersect1d(one[0], other[0])
        if len(both):
            paired = one[1][np.isin(one[0], both)] - other[1][np.isin(other[0], both)]
            scores.append(_mean(name, paired, where, options))
    return scores


def _mean(name: str, values: Numbers, where: dict[str, str], options: MetaCocoOptions, words: str = "") -> Score:
    interval: Interval | None = t_interval(values, options.level, "task")
    return Score(
        name,
        float(values.mean()),
        len(values),
        interval if interval is not None and interval.defined else None,
        where,
        comparable=words,
    )


def _slices(records: pl.DataFrame, where: dict[str, str], options: MetaCocoOptions) -> Iterator[Score]:
    for mode in options.modes:
        chosen = records.filter(records["mode"] == mode).sort("index")
        answers = query_answers(chosen)
        if len(answers.task):
            at = {**where, "mode": mode}
            yield from _concepts(answers, at, options)
            # Supports of several contexts are in none that a wrong answer could have followed.
            if mode in MISLED and (answers.own_context >= 0).any():
                yield from _attraction(answers, where, at, mode, options)
    known = [mode for mode in options.modes if mode != "shared"]
    together = query_answers(records.filter(records["mode"].is_in(known)).sort("mode", "index"))
    if len(together.task):
        yield from _context_pairs(together, where, options)


def _concepts(answers: QueryAnswers, where: dict[str, str], options: MetaCocoOptions) -> Iterator[Score]:
    names = answers.concepts
    yield from _shares(
        answers.task,
        answers.concept,
        answers.right,
        [("accuracy", {**where, "concept": name}) for name in names],
        options,
        ("concept", *where.values()),
    )


def _context_pairs(answers: QueryAnswers, where: dict[str, str], options: MetaCocoOptions) -> Iterator[Score]:
    """Accuracy by the context of the class's supports and the context of the query."""
    shown = answers.own_context >= 0
    pair = answers.own_context * len(answers.contexts) + answers.query_context
    pairs, counts = np.unique(pair[shown], return_counts=True)
    pairs = np.sort(pairs[np.argsort(-counts, kind="stable")[:MOST_PAIRS]])
    listed = shown & np.isin(pair, pairs)
    labels = [
        (
            "accuracy",
            {
                **where,
                "support context": answers.contexts[one // len(answers.contexts)],
                "query context": answers.contexts[one % len(answers.contexts)],
            },
        )
        for one in pairs
    ]
    yield from _shares(
        answers.task[listed],
        np.searchsorted(pairs, pair[listed]),
        answers.right[listed],
        labels,
        options,
        ("contexts", *where.values()),
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
    for name, estimate in zip(("attraction", "attraction-chance", "excess-attraction"), estimates, strict=True):
        yield score_of(name, estimate, int(wrong.sum()), slice=here)


def _shares(
    task: NDArray[np.int64],
    cell: NDArray[np.int64],
    right: NDArray[np.bool_],
    labels: list[tuple[str, dict[str, str]]],
    options: MetaCocoOptions,
    key: tuple[str, ...],
) -> Iterator[Score]:
    """The share of right answers in each cell, with intervals that resample tasks."""
    from scipy.sparse import coo_array, csr_array

    row = np.concatenate([task, task])
    column = np.concatenate([cell * 2, cell * 2 + 1])
    data = np.concatenate([right.astype(np.float64), np.ones(len(cell))])
    sums = csr_array(coo_array((data, (row, column)), shape=(int(task.max(initial=0)) + 1, 2 * len(labels))))

    def statistic(totals: Numbers) -> Numbers:
        pairs = totals.reshape(len(totals), -1, 2)
        return np.divide(pairs[..., 0], pairs[..., 1], out=np.full(pairs.shape[:2], math.nan), where=pairs[..., 1] > 0)

    estimates = bootstrap_scores(
        sums,
        statistic,
        rng=generator(options.seed, "metacoco", *key),
        resamples=options.resamples,
        level=options.level,
        resampled="task",
    )
    counts = np.bincount(cell, minlength=len(labels))
    for (name, where), estimate, count in zip(labels, estimates, counts, strict=True):
        if count:
            yield score_of(name, estimate, int(count), slice=where)


def _left_out(records: pl.DataFrame) -> tuple[LeftOut, ...]:
    without = int((records["predicted"].list.len() == 0).sum())
    if not without:
        return ()
    return (LeftOut("tasks without single answers", without, "the run was told not to keep them"),)
