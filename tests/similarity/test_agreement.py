import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from hardlook.similarity import agreement_table, neighbour_overlap, off_diagonal, rank_agreement


def similarity(seed, labels, levels):
    values = np.random.default_rng(seed).integers(0, levels, (labels, labels)) / levels
    matrix = np.triu(values, 1)
    return matrix + matrix.T + np.eye(labels)


@given(st.integers(0, 2**31), st.integers(4, 9), st.sampled_from([3, 1000]))
def test_rank_agreement_is_spearman_over_pairs(seed, labels, levels):
    first, second = similarity(seed, labels, levels), similarity(seed + 1, labels, levels)
    if len(set(off_diagonal(first))) > 1 and len(set(off_diagonal(second))) > 1:
        expected = spearmanr(off_diagonal(first), off_diagonal(second)).statistic
        assert rank_agreement(first, second) == pytest.approx(expected)
    else:
        assert np.isnan(rank_agreement(first, second))


@given(st.integers(0, 2**31), st.integers(4, 9))
def test_a_table_holds_each_pair(seed, labels):
    matrices = [similarity(seed + i, labels, 1000) for i in range(3)]
    table = agreement_table(matrices)
    assert np.diag(table) == pytest.approx(1)
    assert table[0, 2] == pytest.approx(rank_agreement(matrices[0], matrices[2]))
    assert np.allclose(table, table.T)


@given(st.integers(0, 2**31), st.integers(3, 9), st.sampled_from([2, 1000]), st.data())
def test_overlap_is_complete_with_itself_symmetric_and_blind_to_the_order_of_labels(seed, labels, levels, data):
    count = data.draw(st.integers(1, labels - 1))
    order = np.array(data.draw(st.permutations(range(labels))))
    first, second = similarity(seed, labels, levels), similarity(seed + 1, labels, levels)
    overlap = neighbour_overlap(first, second, count=count)
    assert 0 <= overlap <= 1 + 1e-12
    assert neighbour_overlap(first, first, count=count) == pytest.approx(1)
    assert neighbour_overlap(second, first, count=count) == pytest.approx(overlap)
    moved = neighbour_overlap(first[np.ix_(order, order)], second[np.ix_(order, order)], count=count)
    assert moved == pytest.approx(overlap)


@given(st.integers(0, 2**31), st.integers(4, 9), st.integers(1, 3))
def test_overlap_without_ties_counts_common_neighbours(seed, labels, count):
    first, second = similarity(seed, labels, 10**9), similarity(seed + 1, labels, 10**9)

    def nearest(matrix, label):
        return set(sorted(set(range(labels)) - {label}, key=lambda other: -matrix[label, other])[:count])

    shares = [len(nearest(first, label) & nearest(second, label)) / count for label in range(labels)]
    assert neighbour_overlap(first, second, count=count) == pytest.approx(np.mean(shares))


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(ValueError, match="one shape"):
        rank_agreement(np.eye(2), np.eye(3))
    with pytest.raises(ValueError, match="count below their size"):
        neighbour_overlap(np.eye(3), np.eye(3), count=3)
