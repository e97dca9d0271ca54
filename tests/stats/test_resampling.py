import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.stats import resampling
from hardlook.stats.clusters import Clusters, find_clusters
from hardlook.stats.resampling import block_sizes, multiplicities

strata_of = st.lists(st.integers(0, 3), min_size=1, max_size=20)


def draw(clusters: Clusters, resamples: int, seed: int = 0) -> np.ndarray:
    return np.concatenate(list(multiplicities(clusters, resamples, np.random.default_rng(seed))))


@given(strata_of)
def test_each_stratum_keeps_its_size(strata: list[int]) -> None:
    clusters = find_clusters(len(strata), strata=strata)
    drawn = draw(clusters, 20)
    ends = np.cumsum(clusters.sizes)
    for end, size in zip(ends, clusters.sizes, strict=True):
        assert (drawn[:, end - size : end].sum(axis=1) == size).all()


@pytest.mark.parametrize("strata", [None, [0] * 3 + [1] * 4])
def test_every_cluster_is_drawn_equally_often(strata: list[int] | None) -> None:
    drawn = draw(find_clusters(7, strata=strata), 20_000)
    # A multiplicity has mean 1 and variance below 1, so its mean over 20,000 has a standard error below 0.0071.
    assert np.abs(drawn.mean(axis=0) - 1).max() < 5 * 0.0071


def test_multiplicities_follow_the_multinomial_law() -> None:
    drawn = draw(find_clusters(4), 20_000)
    # The number of draws of one of four clusters in four draws is binomial(4, 1/4).
    for times, chance in enumerate([81 / 256, 108 / 256, 54 / 256, 12 / 256, 1 / 256]):
        assert (drawn == times).mean() == pytest.approx(chance, abs=0.01)


@pytest.mark.parametrize("strata", [None, [0] * 5 + [1] * 6])
@pytest.mark.parametrize("cells", [1, 100, 1000])
def test_block_size_changes_no_draw(monkeypatch: pytest.MonkeyPatch, strata: list[int] | None, cells: int) -> None:
    clusters = find_clusters(11, strata=strata)
    whole = draw(clusters, 101)
    monkeypatch.setattr(resampling, "BLOCK_CELLS", cells)
    monkeypatch.setattr(resampling, "LEAST_ROWS", 1)
    assert np.array_equal(draw(clusters, 101), whole)


def test_more_resamples_begin_with_the_same_ones() -> None:
    clusters = find_clusters(9)
    assert np.array_equal(draw(clusters, 50), draw(clusters, 500)[:50])


@given(st.integers(0, 5000), st.integers(0, 10**7))
def test_blocks_cover_the_rows_within_bounds(rows: int, columns: int) -> None:
    sizes = list(block_sizes(rows, columns))
    assert sum(sizes) == rows
    assert all(0 < size <= max(8, 2**18 // max(1, columns)) for size in sizes)
