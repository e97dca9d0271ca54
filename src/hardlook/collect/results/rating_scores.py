"""Scores of similarity measures from people's ratings: means or rank correlations, differences, agreement.

A rating is a row with `participant`, `item`, `subject`, `measure` and `rating` (1 to 10). Intervals resample the things
rated (by `subject`), so they show how a score varies with the pairs rated; `people` resamples participants instead.

>>> rows = [("p1", "t1", "cat/dog", "path", 3), ("p2", "t1", "cat/dog", "path", 4), ("p1", "t3", "cat/car", "path", 8),
...         ("p3", "t2", "cat/dog", "wup", 9), ("p4", "t2", "cat/dog", "wup", 8), ("p3", "t4", "cat/car", "wup", 2)]
>>> ratings = pl.DataFrame(rows, ["participant", "item", "subject", "measure", "rating"], orient="row")
>>> scores = score_fit(ratings, ["path", "wup"])
>>> [(score.measure, score.score.value, score.ratings) for score in scores.measures]
[('path', 5.0, 3), ('wup', 6.333333333333333, 3)]
>>> scores.differences[0].things
2
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hardlook.harness.stats.agreement import Level, krippendorff_alpha_interval
from hardlook.harness.stats.association import average_ranks, spearman
from hardlook.harness.stats.bootstrap import bootstrap_score, ratio
from hardlook.harness.stats.intervals import Estimate, make_resampling_plan, summarise
from hardlook.harness.stats.paired import paired_bootstrap, permutation_test
from hardlook.harness.stats.ranking import holm
from hardlook.harness.stats.resampling import draw_multiplicities
from hardlook.randomness import generator

SCALE = tuple(range(1, 11))

THING, PERSON = "thing rated", "participant"

# Fewer than usual: a rank correlation is computed for every resample.
_RESAMPLES = 2000


@dataclass(frozen=True)
class MeasureScore:
    """One measure: its mean rating (1 to 10), or the rank correlation of its values with mean ratings (-1 to 1).

    `score` has the interval over things, `people` over participants (None for a correlation). `things` counts those
    with a rating.
    """

    measure: str
    score: Estimate
    people: Estimate | None
    ratings: int
    things: int


@dataclass(frozen=True)
class MeasureDifference:
    """Score of `first` minus score of `second` on the things that both have ratings for, with p of a permutation test.

    `adjusted` is p after Holm's correction over all differences of a form; NaN if nothing could be compared.
    """

    first: str
    second: str
    difference: Estimate
    p: float
    adjusted: float
    things: int


@dataclass(frozen=True)
class RatingScores:
    """All scores of one form; `distributions` counts the ratings 1 to 10 by measure, or under "" if it shows none.

    `agreement` is Krippendorff's alpha by level, `shared` the number of items with two ratings or more.
    """

    measures: tuple[MeasureScore, ...]
    differences: tuple[MeasureDifference, ...]
    distributions: Mapping[str, tuple[int, ...]]
    agreement: Mapping[str, Estimate]
    raters: int
    shared: int


def score_fit(ratings: pl.DataFrame, measures: Sequence[str]) -> RatingScores:
    """Scores of a study that shows a measure's value: the mean of all ratings of each measure."""
    by_measure = {name: ratings.filter(pl.col("measure") == name) for name in measures}
    sums = {name: _sum_by_subject(own) for name, own in by_measure.items()}
    scores = []
    for name, own in by_measure.items():
        table = np.column_stack([own["rating"].to_numpy().astype(np.float64), np.ones(len(own))])
        over_subjects, over_participants = (
            bootstrap_score(
                table,
                ratio,
                rng=generator(0, "ratings", name, word),
                clusters=own[column].to_list(),
                method="percentile",
                resampled=word,
            )
            for column, word in (("subject", THING), ("participant", PERSON))
        )
        scores.append(MeasureScore(name, over_subjects, over_participants, len(own), len(sums[name])))
    differences = []
    for first, second in combinations(measures, 2):
        both = sorted(set(sums[first]) & set(sums[second]))
        a, b = (np.array([sums[name][subject] for subject in both]).reshape(-1, 2) for name in (first, second))
        rng = generator(0, "rating differences", first, second)
        gap = paired_bootstrap(a, b, ratio, rng=rng, method="percentile", resampled=THING)
        p = permutation_test(a, b, ratio, rng=rng, swapped=THING).p_value if both else math.nan
        differences.append(MeasureDifference(first, second, gap, p, math.nan, len(both)))
    distributions = {name: _count_ratings(own) for name, own in by_measure.items()}
    return _build_scores(ratings, scores, differences, distributions)


def score_likeness(
    ratings: pl.DataFrame, measures: Sequence[str], values: Mapping[str, Mapping[str, float]]
) -> RatingScores:
    """Scores of a study that shows no value: Spearman's correlation of a measure's values with the mean ratings.

    `values[subject][measure]` is the measure's value.
    """
    sums = _sum_by_subject(ratings)
    rated = sorted(subject for subject in sums if set(measures) <= set(values.get(subject, {})))
    mean = np.array([sums[subject][0] / sums[subject][1] for subject in rated])
    given = {name: np.array([values[subject][name] for subject in rated]) for name in measures}
    pairs = list(combinations(range(len(measures)), 2))

    def correlations(at: NDArray[np.int64]) -> NDArray[np.float64]:
        own = [spearman(given[name][at], mean[at]) for name in measures]
        return np.array([*own, *(own[a] - own[b] for a, b in pairs)])

    estimates = _bootstrap(len(rated), correlations)
    scores = [
        MeasureScore(name, score, None, len(ratings), len(rated))
        for name, score in zip(measures, estimates, strict=False)
    ]
    differences = []
    for (a, b), gap in zip(pairs, estimates[len(measures) :], strict=True):
        first, second = measures[a], measures[b]
        # Ranks, since the values of two measures have different scales and could not be swapped.
        one, other = (_sum_ranks(given[name], mean) for name in (first, second))
        rng = generator(0, "rating differences", first, second)
        p = permutation_test(one, other, _correlation, rng=rng, swapped=THING).p_value
        differences.append(MeasureDifference(first, second, gap, p, math.nan, len(rated)))
    return _build_scores(ratings, scores, differences, {"": _count_ratings(ratings)})


def build_rating_table(ratings: pl.DataFrame) -> tuple[NDArray[np.float64], list[str]]:
    """(raters, items) with NaN if a rater did not rate an item, and the subject of each item."""
    table = ratings.sort("item").pivot("item", index="participant", values="rating").sort("participant")
    subjects = dict(ratings.select("item", "subject").iter_rows())
    values = table.drop("participant").cast(pl.Float64).to_numpy(order="c")
    return values, [subjects[item] for item in table.columns[1:]]


def _build_scores(
    ratings: pl.DataFrame,
    measures: Sequence[MeasureScore],
    differences: Sequence[MeasureDifference],
    distributions: Mapping[str, tuple[int, ...]],
) -> RatingScores:
    adjusted = holm([one.p for one in differences]).tolist()
    corrected = [replace(one, adjusted=p) for one, p in zip(differences, adjusted, strict=True)]
    table, subjects = build_rating_table(ratings)
    levels: tuple[Level, ...] = ("ordinal", "interval")
    agreement: dict[str, Estimate] = {
        level: krippendorff_alpha_interval(
            table,
            level,
            rng=generator(0, "rating agreement", level),
            clusters=subjects,
            resampled=THING,
            resamples=_RESAMPLES,
        )
        for level in levels
    }
    shared = int(((~np.isnan(table)).sum(axis=0) > 1).sum())
    return RatingScores(tuple(measures), tuple(corrected), dict(distributions), agreement, len(table), shared)


def _sum_by_subject(ratings: pl.DataFrame) -> dict[str, tuple[int, int]]:
    """Sum and number of ratings by subject."""
    grouped = ratings.group_by("subject").agg(pl.col("rating").sum(), pl.len().alias("count"))
    return {subject: (int(total), int(count)) for subject, total, count in grouped.iter_rows()}


def _count_ratings(ratings: pl.DataFrame) -> tuple[int, ...]:
    given = ratings["rating"].to_list()
    return tuple(given.count(rating) for rating in SCALE)


def _bootstrap(n: int, statistic: Callable[[NDArray[np.int64]], NDArray[np.float64]]) -> tuple[Estimate, ...]:
    """Several scores from the same resamples of n things, so that differences are paired."""
    rng = generator(0, "ratings", THING)
    plan = make_resampling_plan(n, rng=rng, resamples=_RESAMPLES, method="percentile", resampled=THING)
    units = np.arange(n)
    values = statistic(units)
    replicates = [
        statistic(np.repeat(units, row[plan.clusters.codes]))
        for block in draw_multiplicities(plan.clusters, plan.resamples, plan.rng)
        for row in block.astype(np.int64)
    ]
    return summarise(plan, values, np.array(replicates).reshape(-1, len(values)), None)


def _sum_ranks(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    a, b = average_ranks(x), average_ranks(y)
    return np.column_stack([np.ones(len(a)), a, b, a * a, b * b, a * b])


def _correlation(totals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Pearson's correlation from the sums of 1, x, y, xx, yy and xy; NaN where x or y does not vary."""
    n, x, y, xx, yy, xy = totals.T
    spread = (n * xx - x * x) * (n * yy - y * y)
    return np.asarray((n * xy - x * y) / np.sqrt(np.where(spread > 1e-9, spread, np.nan)))
