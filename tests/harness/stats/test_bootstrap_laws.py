import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hardlook.harness.stats import Estimate, bootstrap_mean, bootstrap_score, ratio, resampling

counts = st.lists(st.tuples(st.integers(0, 50), st.integers(1, 50)), min_size=2, max_size=15)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


# Scores of these counts lie in this range, so that the default interval exists also where all units agree.
RANGE = (0.0, 50.0)


def bounds(estimate: Estimate) -> tuple[float, float]:
    return estimate.interval.low, estimate.interval.high


@given(counts, st.randoms(use_true_random=False), st.booleans())
@settings(max_examples=40, deadline=None)
def test_row_order_changes_nothing(rows: list[tuple[int, int]], shuffle: object, stratified: bool) -> None:
    labels = [f"image{i % 5}" for i in range(len(rows))]
    strata = [str(i % 5 > 2) for i in range(len(rows))] if stratified else None
    order = list(range(len(rows)))
    shuffle.shuffle(order)
    # Thirds are rounded, and the rounded sums of a cluster must not depend on the order either.
    sums = np.array(rows) / 3
    plain = bootstrap_score(sums, ratio, rng=rng(), resamples=60, clusters=labels, strata=strata)
    shuffled = bootstrap_score(
        sums[order],
        ratio,
        rng=rng(),
        resamples=60,
        clusters=[labels[i] for i in order],
        strata=strata and [strata[i] for i in order],
    )
    assert plain == shuffled or math.isnan(plain.interval.low)
    assert plain.value == shuffled.value


@given(counts, st.integers(1, 200))
@settings(max_examples=40, deadline=None)
def test_block_size_changes_nothing(rows: list[tuple[int, int]], cells: int) -> None:
    plain = bootstrap_score(rows, ratio, rng=rng(), resamples=70, method="percentile")
    left_out = bootstrap_score(rows, ratio, rng=rng(), resamples=70, range=RANGE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resampling, "BLOCK_CELLS", cells)
        patch.setattr(resampling, "MIN_ROWS", 1)
        assert bootstrap_score(rows, ratio, rng=rng(), resamples=70, method="percentile") == plain
        again = bootstrap_score(rows, ratio, rng=rng(), resamples=70, range=RANGE)
    # The powers of the changes are added block by block, and rounded so.
    assert bounds(again) == pytest.approx(bounds(left_out), rel=1e-9, abs=1e-9)


@given(counts)
@settings(max_examples=40, deadline=None)
def test_each_unit_its_own_cluster_is_no_clusters(rows: list[tuple[int, int]]) -> None:
    alone = bootstrap_score(rows, ratio, rng=rng(), resamples=60, range=RANGE, resampled="image")
    labelled = bootstrap_score(
        rows, ratio, rng=rng(), resamples=60, range=RANGE, resampled="image", clusters=range(len(rows))
    )
    assert alone == labelled


@given(counts)
@settings(max_examples=40, deadline=None)
def test_one_stratum_is_no_strata(rows: list[tuple[int, int]]) -> None:
    plain = bootstrap_score(rows, ratio, rng=rng(), resamples=60, range=RANGE, resampled="image")
    strata = ["all"] * len(rows)
    assert bootstrap_score(rows, ratio, rng=rng(), resamples=60, range=RANGE, resampled="image", strata=strata) == plain


@given(counts, st.sampled_from([0.25, 2.0, 1024.0]), st.sampled_from(["jackknife", "percentile", "bca"]))
@settings(max_examples=40, deadline=None)
def test_interval_scales_with_the_values(rows: list[tuple[int, int]], scale: float, method: str) -> None:
    values = np.array([first for first, _ in rows], dtype=float)
    plain = bootstrap_mean(values, rng=rng(), resamples=60, method=method)
    scaled = bootstrap_mean(values * scale, rng=rng(), resamples=60, method=method)
    # Powers of two scale without rounding.
    assert np.array_equal(np.array(bounds(scaled)), np.array(bounds(plain)) * scale, equal_nan=True)


@pytest.mark.parametrize(("method", "at_least"), [("percentile", 0.90), ("bca", 0.91), ("jackknife", 0.92)])
def test_a_95_percent_interval_covers_the_truth(method: str, at_least: float) -> None:
    # 400 data sets of 40 clusters; the share that covers has a standard error of about 0.011.
    simulate = rng(14)
    covered = 0
    for _ in range(400):
        union = simulate.integers(50, 150, size=(40, 2))
        quality = np.clip(simulate.normal(0.6, 0.15, size=(40, 1)), 0, 1)
        sums = np.stack([simulate.binomial(union, quality), union], axis=-1).reshape(80, 2)
        estimate = bootstrap_score(
            sums, ratio, rng=simulate, resamples=500, method=method, clusters=np.repeat(np.arange(40), 2)
        )
        covered += 0.6 in estimate.interval
    assert at_least <= covered / 400 <= 0.985


def test_ignoring_clusters_covers_far_too_rarely() -> None:
    # Ten units of an image are copies of each other: the naive interval is about a third as wide as it must be.
    simulate = rng(15)
    naive = grouped = 0
    for _ in range(200):
        values = np.repeat(simulate.normal(size=30), 10)
        images = np.repeat(np.arange(30), 10)
        naive += 0.0 in bootstrap_mean(values, rng=simulate, resamples=300).interval
        grouped += 0.0 in bootstrap_mean(values, rng=simulate, resamples=300, clusters=images).interval
    assert naive / 200 < 0.6
    assert grouped / 200 > 0.88
