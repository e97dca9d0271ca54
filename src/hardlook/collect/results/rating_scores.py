"""From single ratings to scores of measures: means or rank correlations, differences between measures, agreement.

A rating is a row with `participant`, `item`, `subject`, `measure` and `rating` (1 to 10). What is resampled are the
things rated, so an interval says how far a score would move with other pairs; `people` says the same of other people.

>>> rows = [("p1", "t1", "cat/dog", "path", 3), ("p2", "t1", "cat/dog", "path", 4), ("p1", "t3", "cat/car", "path", 8),
...         ("p3", "t2", "cat/dog", "wup", 9), ("p4", "t2", "cat/dog", "wup", 8), ("p3", "t4", "cat/car", "wup", 2)]
>>> ratings = pl.DataFrame(rows, ["participant", "item", "subject", "measure", "rating"], orient="row")
>>> scores = fit_scores(ratings, ["path", "wup"])
>>> [(score.measure, score.score.value, score.ratings) for score in scores.measures]
[('path', 5.0, 3), ('wup', 6.333333333333333, 3)]
>>> scores.differences[0].things
2
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hardlook.randomness import generator
from hardlook.stats.agreement import Level, krippendorff_alpha_interval
from hardlook.stats.bootstrap import bootstrap_score, ratio
from hardlook.stats.correlation import average_ranks, spearman
from hardlook.stats.estimates import find_plan, summarise
from hardlook.stats.intervals import Estimate
from hardlook.stats.multiplicity import holm
from hardlook.stats.paired import paired_bootstrap
from hardlook.stats.permutation import permutation_test
from hardlook.stats.resampling import multiplicities

SCALE = range(1, 11)
THING, PERSON = "thing rated", "participant"
# A rank correlation is computed anew for every resample.
FEWER = 2000


@dataclass(frozen=True)
class MeasureScore:
    """One measure: its mean rating (1 to 10), or the rank correlation of its values with mean ratings (-1 to 1).

    `score` has the interval over things, `people` over participants (None for a correlation). `things` have a rating.
    """

    measure: str
    score: Estimate
    people: Estimate | None
    ratings: int
    things: int


@dataclass(frozen=True)
class MeasureDifference:
    """Score of `first` minus score of `second` on the things that both have ratings for, with the swap test's p.

    `adjusted` is p after Holm's correction over all differences of a form; NaN where nothing could be compared.
    """

    first: str
    second: str
    difference: Estimate
    p: float
    adjusted: float
    things: int


@dataclass(frozen=True)
class RatingScores:
    """All scores of one form; `distributions` counts the ratings 1 to 10, by measure, or under "" where none shows."""

    measures: tuple[MeasureScore, ...]
    differences: tuple[MeasureDifference, ...]
    distributions: Mapping[str, tuple[int, ...]]
    agreement: Mapping[str, Estimate]
    raters: int
    shared: int


def fit_scores(ratings: pl.DataFrame, measures: Sequence[str]) -> RatingScores:
    """Scores where a value was shown: the mean rating of each measure over ratings, so that all ratings count alike."""
    sums = {name: _sums(ratings.filter(pl.col("measure") == name)) for name in measures}
    found = []
    for name in measures:
        own = ratings.filter(pl.col("measure") == name)
        table = np.column_stack([own["rating"].to_numpy().astype(np.float64), np.ones(len(own))])
        things, people = (
            bootstrap_score(
                table, ratio, rng=generator(0, "ratings", name, word), clusters=own[column].to_list(), resampled=word
            )
            for column, word in (("subject", THING), ("participant", PERSON))
        )
        found.append(MeasureScore(name, things, people, len(own), len(sums[name])))
    differences = []
    for first, second in combinations(measures, 2):
        both = sorted(set(sums[first]) & set(sums[second]))
        a, b = (np.array([sums[name][subject] for subject in both]).reshape(-1, 2) for name in (first, second))
        rng = generator(0, "rating differences", first, second)
        gap = paired_bootstrap(a, b, ratio, rng=rng, resampled=THING)
        p = permutation_test(a, b, ratio, rng=rng, swapped=THING).p_value if both else math.nan
        differences.append(MeasureDifference(first, second, gap, p, math.nan, len(both)))
    by_measure = {name: _distribution(ratings.filter(pl.col("measure") == name)) for name in measures}
    return _whole(ratings, found, differences, by_measure)


def likeness_scores(
    ratings: pl.DataFrame, measures: Sequence[str], values: Mapping[str, Mapping[str, float]]
) -> RatingScores:
    """Scores where no value was shown: Spearman's correlation of a measure's values with the things' mean ratings.

    `values` are those of each measure by subject.
    """
    sums = _sums(ratings)
    rated = sorted(subject for subject in sums if set(measures) <= set(values.get(subject, {})))
    mean = np.array([sums[subject][0] / sums[subject][1] for subject in rated])
    said = {name: np.array([values[subject][name] for subject in rated]) for name in measures}
    pairs = list(combinations(range(len(measures)), 2))

    def correlations(at: NDArray[np.int64]) -> NDArray[np.float64]:
        own = [spearman(said[name][at], mean[at]) for name in measures]
        return np.array([*own, *(own[a] - own[b] for a, b in pairs)])

    estimates = _bootstrap(len(rated), correlations)
    found = [
        MeasureScore(name, score, None, len(ratings), len(rated))
        for name, score in zip(measures, estimates, strict=False)
    ]
    differences = []
    for (a, b), gap in zip(pairs, estimates[len(measures) :], strict=True):
        first, second = measures[a], measures[b]
        # Ranks, since the values of two measures have no scale in common and could not be swapped.
        one, other = (_rank_sums(said[name], mean) for name in (first, second))
        rng = generator(0, "rating differences", first, second)
        p = permutation_test(one, other, _correlation, rng=rng, swapped=THING).p_value
        differences.append(MeasureDifference(first, second, gap, p, math.nan, len(rated)))
    return _whole(ratings, found, differences, {"": _distribution(ratings)})


def rating_table(ratings: pl.DataFrame) -> tuple[NDArray[np.float64], list[str]]:
    """(raters, items) with NaN where a rater did not rate an item, and the subject of each item."""
    raters, items = sorted(set(ratings["participant"])), sorted(set(ratings["item"]))
    rows, columns = ({name: at for at, name in enumerate(names)} for names in (raters, items))
    table, subjects = np.full((len(raters), len(items)), np.nan), [""] * len(items)
    for person, item, subject, rating in ratings.select("participant", "item", "subject", "rating").iter_rows():
        table[rows[person], columns[item]] = rating
        subjects[columns[item]] = subject
    return table, subjects


def _whole(
    ratings: pl.DataFrame,
    measures: Sequence[MeasureScore],
    differences: Sequence[MeasureDifference],
    distributions: Mapping[str, tuple[int, ...]],
) -> RatingScores:
    adjusted = holm([one.p for one in differences]).tolist()
    corrected = [
        MeasureDifference(one.first, one.second, one.difference, one.p, p, one.things)
        for one, p in zip(differences, adjusted, strict=True)
    ]
    table, subjects = rating_table(ratings)
    levels: tuple[Level, ...] = ("ordinal", "interval")
    agreement: dict[str, Estimate] = {
        level: krippendorff_alpha_interval(
            table,
            level,
            rng=generator(0, "rating agreement", level),
            clusters=subjects,
            resampled=THING,
            resamples=FEWER,
        )
        for level in levels
    }
    shared = int(((~np.isnan(table)).sum(axis=0) > 1).sum())
    return RatingScores(tuple(measures), tuple(corrected), dict(distributions), agreement, len(table), shared)


def _sums(ratings: pl.DataFrame) -> dict[str, tuple[int, int]]:
    """Sum and number of ratings by subject."""
    grouped = ratings.group_by("subject").agg(pl.col("rating").sum(), pl.len().alias("count"))
    return {subject: (int(total), int(count)) for subject, total, count in grouped.iter_rows()}


def _distribution(ratings: pl.DataFrame) -> tuple[int, ...]:
    given = ratings["rating"].to_list()
    return tuple(given.count(rating) for rating in SCALE)


def _bootstrap(n: int, statistic: Callable[[NDArray[np.int64]], NDArray[np.float64]]) -> tuple[Estimate, ...]:
    """Several scores from the same resamples of n things, each computed once: so differences are paired."""
    plan = find_plan(n, rng=generator(0, "ratings", THING), resamples=FEWER, resampled=THING)
    units = np.arange(n)
    values = statistic(units)
    replicates = [
        statistic(np.repeat(units, row[plan.clusters.codes]))
        for block in multiplicities(plan.clusters, plan.resamples, plan.rng)
        for row in block.astype(np.int64)
    ]
    return summarise(plan, values, np.array(replicates).reshape(-1, len(values)), None)


def _rank_sums(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    a, b = average_ranks(x), average_ranks(y)
    return np.column_stack([np.ones(len(a)), a, b, a * a, b * b, a * b])


def _correlation(totals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Pearson's correlation from the sums of 1, x, y, xx, yy and xy; NaN where x or y does not vary."""
    n, x, y, xx, yy, xy = totals.T
    spread = (n * xx - x * x) * (n * yy - y * y)
    return np.asarray((n * xy - x * y) / np.sqrt(np.where(spread > 1e-9, spread, np.nan)))
