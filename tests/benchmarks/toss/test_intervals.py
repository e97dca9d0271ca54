"""Intervals resample query images and nothing else."""

import numpy as np
import polars as pl
import pytest

from hardlook.runs.in_memory import Rehearsal


@pytest.fixture(scope="module")
def rehearsal():
    return Rehearsal("toss", {"scenes": 48, "resamples": 200})


@pytest.fixture(scope="module")
def records(rehearsal):
    return rehearsal.records("planted-one-shot", {"saliency": 0.5, "support_blind": 0.5})


@pytest.fixture(scope="module")
def card(rehearsal, records):
    return rehearsal.benchmark.score(records, rehearsal.options)


def columns_of(slice_values):
    """The records behind a score, as a filter."""
    names = {"level": "split"}
    conditions = [pl.col(names.get(name, name)).cast(pl.String) == value for name, value in slice_values.items()]
    return pl.all_horizontal(pl.lit(True), *conditions)


FOLLOWING = (
    "follows-truth", "follows-salience", "salience-lead", "covers-target", "covers-salience", "salience-pull",
)  # fmt: skip
TIERS = {"gs": (3,), "scs": (2,), "rejection": (2,), "lca": (1,), "hca": (1,), "salience-gap": (1,)}
TIERS |= dict.fromkeys(FOLLOWING, (1,))
OTHERS = ("easy_nsal", "hard_nsal")
SPLITS = {
    "salient": ("easy_sal", "hard_sal"), "non-salient": OTHERS, "rejection": ("L4", "L5", "L6"),
}  # fmt: skip
SPLITS |= dict.fromkeys(FOLLOWING, OTHERS)


def test_each_interval_rests_on_its_own_query_images(card, records):
    for score in card.scores:
        own = records.filter(columns_of(score.slice))
        own = own.filter(pl.col("tier").is_in(TIERS[score.name])) if score.name in TIERS else own
        own = own.filter(pl.col("split").is_in(SPLITS[score.name])) if score.name in SPLITS else own
        assert score.n == len(own), score
        if own["query"].n_unique() > 1:
            assert score.interval.n == own["query"].n_unique(), score
            assert score.interval.resampled == "query image"
            assert score.interval.low <= score.interval.high
        else:
            assert score.interval is None


def test_pairs_shown_twice_do_not_narrow_intervals(rehearsal, records, card):
    again = records.with_columns(unit=pl.col("unit") + "-again")
    doubled = rehearsal.benchmark.score(pl.concat([records, again]), rehearsal.options)
    assert len(doubled.scores) == len(card.scores)
    for one, two in zip(card.scores, doubled.scores, strict=True):
        assert (one.name, one.slice, 2 * one.n) == (two.name, two.slice, two.n)
        assert two.value == pytest.approx(one.value, nan_ok=True)
        if one.interval is not None:
            assert two.interval.n == one.interval.n
            bounds = (one.interval.low, one.interval.high)
            assert (two.interval.low, two.interval.high) == pytest.approx(bounds, nan_ok=True)


def test_a_single_query_image_has_no_interval(rehearsal, records):
    alone = records.filter(pl.col("query") == records["query"][0])
    assert len(alone) > 1
    card = rehearsal.benchmark.score(alone, rehearsal.options)
    assert card.scores
    assert all(score.interval is None for score in card.scores)


def test_all_pairs_of_a_query_are_drawn_together(rehearsal):
    """Each query has the same counts with a salient and with another target: no resample can open a gap."""
    rng = np.random.default_rng(0)
    rows = []
    for query in range(12):
        hits, union = int(rng.integers(0, 50)), 50
        for split in ("easy_sal", "easy_nsal"):
            rows.append(
                {
                    "unit": f"{query}-{split}", "tier": 1, "fold": 0, "split": split, "class": "cat", "shots": 1,
                    "mixed": False, "query": f"image {query}", "support": "b", "intersection": hits,
                    "predicted": hits, "truth": union, "predicted_void": 0, "void": 0, "pixels": 99,
                    "listing": "built", "prediction": "", "salient": -1, "predicted_salient": -1,
                    "truth_salient": -1, "found_salient": -1, "similarity": -2.0,
                }
            )  # fmt: skip
    card = rehearsal.benchmark.score(rehearsal.benchmark.schema.frame(rows), rehearsal.options)
    gap, salient = card.get("salience-gap").interval, card.get("salient").interval
    assert (gap.low, gap.high) == (0, 0)
    assert salient.high - salient.low > 0.05
    assert gap.n == salient.n == 12
