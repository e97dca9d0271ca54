"""Scores of hand-made ratings, and what their intervals resample."""

import math
from itertools import combinations, product

import numpy as np
import polars as pl
import pytest
from scipy.stats import rankdata

from hardlook.collect.results import rating_scores
from hardlook.collect.results.rating_scores import build_rating_table, score_fit, score_likeness


def rating_frame(table, measure="a"):
    """Ratings (participants, things), all of one measure."""
    rows = [
        (f"p{person}", f"t{thing}", f"s{thing}", measure, int(rating))
        for person, row in enumerate(table)
        for thing, rating in enumerate(row)
    ]
    return pl.DataFrame(rows, ["participant", "item", "subject", "measure", "rating"], orient="row")


def spread_of_resampled_means(means, seed=5, resamples=20_000):
    """2.5 % and 97.5 % quantiles of the mean of as many drawn with replacement: a bootstrap by itself."""
    means = np.asarray(means, float)
    drawn = np.random.default_rng(seed).integers(len(means), size=(resamples, len(means)))
    return np.quantile(means[drawn].mean(axis=1), [0.025, 0.975])


@pytest.mark.parametrize("varying", ["things", "people"])
def test_one_interval_resamples_things_and_the_other_participants(varying):
    """12 things and 8 people, everybody rates everything: where all of one side rate alike, only the other varies."""
    levels = np.array([1, 2, 2, 3, 5, 5, 6, 7, 8, 8, 9, 10])
    table = np.tile(levels, (8, 1)) if varying == "things" else np.tile(levels[:8, None], (1, 12))
    (score,) = score_fit(rating_frame(table), ["a"]).measures
    assert (score.ratings, score.things) == (96, 12)
    fixed, wide = (score.people, score.score) if varying == "things" else (score.score, score.people)
    assert score.score.value == score.people.value == pytest.approx(table.mean())
    # Whoever is drawn, the mean is the same.
    assert [fixed.interval.low, fixed.interval.high] == pytest.approx([table.mean()] * 2)
    expected = spread_of_resampled_means(table.mean(axis=0 if varying == "things" else 1))
    assert [wide.interval.low, wide.interval.high] == pytest.approx(expected, abs=0.25)


def test_intervals_of_unequal_counts_follow_the_clusters():
    """Both sides vary, one more than the other: each interval is that of its own means."""
    rng = np.random.default_rng(3)
    people, things = rng.normal(0, 0.5, 30)[:, None], rng.normal(0, 2.0, 9)[None, :]
    table = np.clip(np.round(5.5 + people + things), 1, 10)
    (score,) = score_fit(rating_frame(table), ["a"]).measures
    for estimate, axis in ((score.score, 0), (score.people, 1)):
        expected = spread_of_resampled_means(table.mean(axis=axis))
        width = expected[1] - expected[0]
        assert [estimate.interval.low, estimate.interval.high] == pytest.approx(expected, abs=0.12 * width)
    # The widths differ so much that neither can stand in for the other.
    assert score.score.interval.high - score.score.interval.low > 3 * (
        score.people.interval.high - score.people.interval.low
    )


def test_differences_and_agreement_are_over_things():
    """Two measures on five things, each rated by other people: b is one higher on every thing."""
    first, second = np.tile([2, 4, 5, 7, 9], (3, 1)), np.tile([3, 5, 6, 8, 10], (4, 1))
    other = rating_frame(second, "b").with_columns(pl.col("participant") + "b", pl.col("item") + "b")
    scores = score_fit(pl.concat([rating_frame(first), other]), ["a", "b"])
    (gap,) = scores.differences
    assert (gap.things, gap.difference.value) == (5, pytest.approx(-1.0))
    # The same on every thing: no resample of things moves it.
    assert [gap.difference.interval.low, gap.difference.interval.high] == pytest.approx([-1.0, -1.0])
    assert (scores.raters, scores.shared) == (7, 10)
    assert scores.agreement["interval"].value == pytest.approx(1.0)


def test_scores_of_hand_made_ratings():
    rows = [("p1", "t1", "x", "a", 2), ("p2", "t1", "x", "a", 4), ("p3", "t2", "x", "b", 9), ("p1", "t3", "y", "a", 6)]
    ratings = pl.DataFrame(rows, ["participant", "item", "subject", "measure", "rating"], orient="row")
    scores = score_fit(ratings, ["a", "b"])
    assert [one.score.value for one in scores.measures] == [4.0, 9.0]
    # Only x has ratings under both: (2 + 4) / 2 - 9.
    assert (scores.differences[0].difference.value, scores.differences[0].things) == (-6.0, 1)
    assert scores.distributions["a"] == (0, 1, 0, 1, 0, 1, 0, 0, 0, 0)
    assert scores.shared == 1
    table, subjects = build_rating_table(ratings)
    assert subjects == ["x", "x", "y"]
    assert np.array_equal(table, [[2, np.nan, 6], [4, np.nan, np.nan], [np.nan, 9, np.nan]], equal_nan=True)


def test_a_measure_that_says_one_value_has_no_correlation():
    rows = [("p1", f"t{i}", f"s{i}", "", i) for i in range(1, 6)]
    ratings = pl.DataFrame(rows, ["participant", "item", "subject", "measure", "rating"], orient="row")
    values = {f"s{i}": {"same": 0.5, "right": i / 10} for i in range(1, 6)}
    scores = score_likeness(ratings, ["same", "right"], values)
    assert math.isnan(scores.measures[0].score.value)
    assert scores.measures[1].score.value == 1.0
    assert math.isnan(scores.differences[0].adjusted)


def test_p_of_correlations_is_the_share_of_swapped_ranks_that_differ_as_much(monkeypatch):
    """Seven things under three measures: every swap of two measures' ranks, and Holm's correction by hand."""
    # For speed: intervals are not looked at.
    monkeypatch.setattr(rating_scores, "_RESAMPLES", 20)
    rated = [1, 3, 2, 6, 5, 9, 8]
    said = {
        "right": [0.1, 0.3, 0.2, 0.6, 0.5, 0.9, 0.8],
        "wrong": [0.9, 0.7, 0.8, 0.3, 0.5, 0.1, 0.2],
        "mixed": [0.4, 0.1, 0.3, 0.3, 0.9, 0.2, 0.7],
    }
    rows = [("p1", f"t{i}", f"s{i}", "", rating) for i, rating in enumerate(rated)]
    ratings = pl.DataFrame(rows, ["participant", "item", "subject", "measure", "rating"], orient="row")
    values = {f"s{i}": {name: said[name][i] for name in said} for i in range(7)}
    found = score_likeness(ratings, list(said), values).differences

    def p_value(first, second):
        one, other, mean = rankdata(said[first]), rankdata(said[second]), rankdata(rated)
        gaps = []
        for swap in product([False, True], repeat=7):
            a, b = np.where(swap, other, one), np.where(swap, one, other)
            gaps.append(abs(np.corrcoef(a, mean)[0, 1] - np.corrcoef(b, mean)[0, 1]))
        return np.mean(np.array(gaps) >= gaps[0] - 1e-9)

    pairs = list(combinations(said, 2))
    expected = [p_value(*pair) for pair in pairs]
    assert len(set(expected)) == 3 and max(expected) < 1
    assert [(one.first, one.second) for one in found] == pairs
    assert [one.p for one in found] == pytest.approx(expected)
    low, middle, high = sorted(expected)
    second = max(3 * low, 2 * middle)
    corrected = {low: 3 * low, middle: second, high: max(second, high)}
    assert [one.adjusted for one in found] == pytest.approx([min(1, corrected[p]) for p in expected])
