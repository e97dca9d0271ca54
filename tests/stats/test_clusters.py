import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.stats.clusters import find_clusters, label_codes


def test_codes_follow_sorted_labels() -> None:
    assert label_codes(["b", "a", "c", "a"], 4, "clusters").tolist() == [1, 0, 2, 0]
    assert label_codes([10, 9, 10], 3, "clusters").tolist() == [1, 0, 1]


@pytest.mark.parametrize("labels", [["b", "a", "b"], [20, 3, 20], [0.5, -0.5, 0.5], [True, False, True]])
def test_lists_and_arrays_agree(labels: list[object]) -> None:
    from_list = label_codes(labels, 3, "clusters")
    assert from_list.tolist() == label_codes(np.array(labels), 3, "clusters").tolist() == [1, 0, 1]


def test_any_hashable_is_a_label() -> None:
    labels = [("img", 2), ("img", 1), "img", 7, ("img", 2)]
    codes = label_codes(labels, 5, "clusters")
    assert sorted(set(codes.tolist())) == [0, 1, 2, 3]
    assert codes[0] == codes[4]
    backwards = label_codes(labels[::-1], 5, "clusters")
    assert backwards.tolist() == codes.tolist()[::-1]


def test_a_number_and_its_text_are_different_labels() -> None:
    assert len(set(label_codes([1, "1"], 2, "clusters").tolist())) == 2


def test_missing_labels_are_counted() -> None:
    with pytest.raises(ValueError, match="clusters: 2 of 3 labels are None or NaN"):
        label_codes(["a", None, math.nan], 3, "clusters")
    with pytest.raises(ValueError, match="1 of 2"):
        label_codes(np.array([1.0, np.nan]), 2, "clusters")


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
