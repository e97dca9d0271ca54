import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_array

from hardlook.harness.stats import resampling
from hardlook.harness.stats.resampling import (
    Clusters,
    block_sizes,
    check_probability,
    draw_multiplicities,
    encode_labels,
    exact_totals,
    find_clusters,
    finite_rows,
    finite_sparse_rows,
    finite_vector,
)


def test_codes_follow_sorted_labels() -> None:
    assert encode_labels(["b", "a", "c", "a"], 4, "clusters").tolist() == [1, 0, 2, 0]
    assert encode_labels([10, 9, 10], 3, "clusters").tolist() == [1, 0, 1]


@pytest.mark.parametrize("labels", [["b", "a", "b"], [20, 3, 20], [0.5, -0.5, 0.5], [True, False, True]])
def test_lists_and_arrays_agree(labels: list[object]) -> None:
    from_list = encode_labels(labels, 3, "clusters")
    assert from_list.tolist() == encode_labels(np.array(labels), 3, "clusters").tolist() == [1, 0, 1]


def test_any_hashable_is_a_label() -> None:
    labels = [("img", 2), ("img", 1), "img", 7, ("img", 2)]
    codes = encode_labels(labels, 5, "clusters")
    assert sorted(set(codes.tolist())) == [0, 1, 2, 3]
    assert codes[0] == codes[4]
    backwards = encode_labels(labels[::-1], 5, "clusters")
    assert backwards.tolist() == codes.tolist()[::-1]


def test_a_number_and_its_text_are_different_labels() -> None:
    assert len(set(encode_labels([1, "1"], 2, "clusters").tolist())) == 2


def test_missing_labels_are_counted() -> None:
    with pytest.raises(ValueError, match="clusters: 2 of 3 labels are None or NaN"):
        encode_labels(["a", None, math.nan], 3, "clusters")
    with pytest.raises(ValueError, match="1 of 2"):
        encode_labels(np.array([1.0, np.nan]), 2, "clusters")


def test_one_label_per_unit() -> None:
    with pytest.raises(ValueError, match="one label for each of 3 units, got 2"):
        find_clusters(3, ["a", "b"])
    with pytest.raises(ValueError, match=r"expected shape \(2,\), got \(2, 1\)"):
        find_clusters(2, np.array([["a"], ["b"]]))


def test_strata_are_contiguous_and_counted() -> None:
    clusters = find_clusters(5, ["e", "d", "c", "b", "e"], strata=["y", "x", "y", "x", "y"])
    assert clusters.sizes.tolist() == [2, 2]
    assert clusters.codes.tolist() == [3, 1, 2, 0, 3]


def test_a_cluster_in_two_strata_is_refused() -> None:
    with pytest.raises(ValueError, match="1 clusters lie in more than one stratum, such as 'a'"):
        find_clusters(3, ["a", "b", "a"], strata=[0, 0, 1])


def test_can_vary_needs_two_clusters_in_a_stratum() -> None:
    assert not find_clusters(0).can_vary
    assert not find_clusters(3, ["a", "a", "a"]).can_vary
    assert not find_clusters(2, strata=["x", "y"]).can_vary
    assert find_clusters(3, strata=["x", "y", "x"]).can_vary


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(-50, 50)), max_size=30))
def test_sums_are_those_of_a_dictionary(rows: list[tuple[str, int]]) -> None:
    expected: dict[str, int] = defaultdict(int)
    for label, value in rows:
        expected[label] += value
    sums = np.array([[value] for _, value in rows], dtype=float).reshape(-1, 1)
    totals = find_clusters(len(rows), [label for label, _ in rows]).sum(sums)
    assert totals[:, 0].tolist() == [expected[label] for label in sorted(expected)]


@given(st.permutations(range(12)))
def test_row_order_changes_no_bit_of_a_float_sum(order: list[int]) -> None:
    sums = np.random.default_rng(0).normal(size=(12, 3)) * 10.0 ** np.arange(12)[:, None]
    labels = np.arange(12) % 2
    plain = find_clusters(12, labels).sum(sums)
    shuffled = find_clusters(12, labels[order]).sum(sums[order])
    assert np.array_equal(plain, shuffled)


@given(st.lists(st.tuples(*[st.sampled_from([0.0, 0.1, 0.2, 1e16, -1e16, 3.0])] * 3), min_size=1, max_size=9))
def test_totals_are_rounded_once_whether_or_not_the_rows_are_sparse(rows: list[tuple[float, float, float]]) -> None:
    once = [math.fsum(column) for column in zip(*rows, strict=True)]
    assert exact_totals(np.array(rows)).tolist() == once
    assert exact_totals(csr_array(np.array(rows))).tolist() == once


def test_values_pass_unchanged_as_float64() -> None:
    vector = finite_vector([1, True, 2.5], "scores")
    assert vector.tolist() == [1.0, 1.0, 2.5]
    assert vector.dtype == np.float64
    assert finite_rows(np.arange(6).reshape(3, 2), "sums").tolist() == [[0, 1], [2, 3], [4, 5]]


def test_what_is_not_finite_is_counted_under_its_name() -> None:
    with pytest.raises(ValueError, match="scores: 3 of 4 values are NaN or infinite; leave those units out"):
        finite_vector([math.nan, 1, math.inf, -math.inf], "scores")
    with pytest.raises(ValueError, match="sums: 1 of 4 values"):
        finite_rows([[1, 2], [3, math.nan]], "sums")


def test_shapes_are_checked() -> None:
    with pytest.raises(ValueError, match=r"scores: expected shape \(n,\), got \(\)"):
        finite_vector(1.0, "scores")
    with pytest.raises(ValueError, match=r"sums: expected shape \(n_units, n_columns\), got \(3,\)"):
        finite_rows([1, 2, 3], "sums")
    with pytest.raises(ValueError, match=r"sums: expected shape \(n_units, n_columns\), got \(3,\)"):
        finite_sparse_rows(coo_array(np.arange(3.0)), "sums")


def test_what_is_not_finite_in_a_sparse_matrix_is_counted_among_all_its_values() -> None:
    with pytest.raises(ValueError, match="sums: 2 of 6 values are NaN or infinite"):
        finite_sparse_rows(coo_array([[0, math.nan, 1], [math.inf, 0, 0]]), "sums")


@pytest.mark.parametrize("value", [0, 1, 95, -0.1, math.nan])
def test_a_probability_lies_strictly_between_0_and_1(value: float) -> None:
    check_probability(0.5, "level")
    with pytest.raises(ValueError, match="level: expected a number between 0 and 1"):
        check_probability(value, "level")


strata_of = st.lists(st.integers(0, 3), min_size=1, max_size=20)


def draw(clusters: Clusters, resamples: int, seed: int = 0) -> np.ndarray:
    return np.concatenate(list(draw_multiplicities(clusters, resamples, np.random.default_rng(seed))))


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
    monkeypatch.setattr(resampling, "MIN_ROWS", 1)
    assert np.array_equal(draw(clusters, 101), whole)


def test_more_resamples_begin_with_the_same_ones() -> None:
    clusters = find_clusters(9)
    assert np.array_equal(draw(clusters, 50), draw(clusters, 500)[:50])


@given(st.integers(0, 5000), st.integers(0, 10**7))
def test_blocks_cover_the_rows_within_bounds(rows: int, columns: int) -> None:
    sizes = list(block_sizes(rows, columns))
    assert sum(sizes) == rows
    assert all(0 < size <= max(8, 2**18 // max(1, columns)) for size in sizes)
