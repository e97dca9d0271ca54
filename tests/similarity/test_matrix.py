import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.metrics.pairwise import cosine_similarity

from hardlook.similarity.matrix import (
    agreement_table,
    check_similarity,
    cosine_matrix,
    density_curve,
    neighbour_overlap,
    off_diagonal,
    rank_agreement,
    rank_neighbours,
    restrict_matrix,
    summarise_matrix,
)


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


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(1, 40))
def test_equals_scikit_learn_with_negatives_to_zero(seed, labels, size):
    vectors = np.random.default_rng(seed).normal(size=(labels, size))
    expected = np.maximum(cosine_similarity(vectors), 0)
    np.fill_diagonal(expected, 1)
    matrix = cosine_matrix(vectors)
    assert np.allclose(matrix, expected, atol=1e-12)
    assert np.array_equal(check_similarity(matrix, tolerance=0), matrix)


@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-200, 1e-3, 1e3, 1e200]))
def test_length_has_no_effect(seed, factor):
    vectors = np.random.default_rng(seed).normal(size=(5, 3))
    assert np.allclose(cosine_matrix(vectors * factor), cosine_matrix(vectors), atol=1e-12)


def test_a_zero_vector_is_like_nothing_but_itself():
    assert cosine_matrix([[0.0, 0.0], [0.0, 0.0], [1.0, 2.0]]).tolist() == np.eye(3).tolist()


def test_a_value_that_is_not_finite_is_named_by_its_row():
    with pytest.raises(ValueError, match="got nan in row 1"):
        cosine_matrix([[1.0, 2.0], [0.0, np.nan]])
    with pytest.raises(ValueError, match=r"expected a matrix \(K, D\)"):
        cosine_matrix([1.0, 2.0])


def random_similarity(seed, labels):
    values = np.random.default_rng(seed).random((labels, labels))
    matrix = (values + values.T) / 2
    np.fill_diagonal(matrix, 1)
    return matrix


@given(st.integers(0, 2**32 - 1), st.integers(1, 8))
def test_a_valid_matrix_comes_back_as_it_was(seed, labels):
    matrix = random_similarity(seed, labels)
    assert np.array_equal(check_similarity(matrix), matrix)


@given(st.integers(0, 2**32 - 1), st.integers(1, 8))
def test_rounding_is_mended(seed, labels):
    rng = np.random.default_rng(seed)
    matrix = random_similarity(seed, labels)
    noisy = matrix + rng.uniform(-9e-7, 9e-7, matrix.shape) / 2
    mended = check_similarity(noisy)
    assert np.allclose(mended, matrix, atol=1e-6)
    assert np.array_equal(check_similarity(mended, tolerance=0), mended)


@pytest.mark.parametrize(
    ("cell", "value", "message"),
    [
        ((1, 2), np.nan, "finite values, got nan at row 1, column 2"),
        ((2, 0), 1.5, r"values in \[0, 1\], got 1.5 at row 2, column 0"),
        ((0, 1), -0.1, r"values in \[0, 1\], got -0.1 at row 0, column 1"),
        ((2, 2), 0.9, "1 on the diagonal, got 0.9 at row 2, column 2"),
        ((0, 2), 0.25, "a symmetric matrix, got 0.25 at row 0, column 2 and 0.5 mirrored"),
    ],
)
def test_a_bad_cell_is_named(cell, value, message):
    matrix = np.full((3, 3), 0.5)
    np.fill_diagonal(matrix, 1)
    matrix[cell] = value
    with pytest.raises(ValueError, match=message):
        check_similarity(matrix)


def test_labels_make_the_error_readable_and_are_counted():
    with pytest.raises(ValueError, match=r"row 1 \(dog\), column 1 \(dog\)"):
        check_similarity([[1, 0], [0, 0]], labels=["cat", "dog"])
    with pytest.raises(ValueError, match="expected 3 rows, one per label, got 2"):
        check_similarity(np.eye(2), labels=["a", "b", "c"])
    with pytest.raises(ValueError, match="expected a square matrix"):
        check_similarity([[1, 0]])


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(-1, 4), max_size=7))
def test_restricting_picks_cells_and_leaves_a_similarity_matrix(seed, places):
    matrix = random_similarity(seed, 5)
    chosen = restrict_matrix(matrix, places)
    assert np.array_equal(check_similarity(chosen), chosen)
    for row, a in enumerate(places):
        for column, b in enumerate(places):
            if row != column:
                assert chosen[row, column] == (0 if -1 in (a, b) else matrix[a, b])


def test_places_outside_are_refused():
    with pytest.raises(ValueError, match=r"places in -1\.\.1"):
        restrict_matrix(np.eye(2), [0, 2])


MATRIX = np.array([[1.0, 0.5, 0.2, 0.5], [0.5, 1.0, 0.0, 0.3], [0.2, 0.0, 1.0, 0.3], [0.5, 0.3, 0.3, 1.0]])


def test_mean_and_spread_by_hand():
    summary = summarise_matrix(MATRIX)
    # Pairs .5 .2 .5 .0 .3 .3: sum 1.8, squares .72.
    assert summary.labels == 4
    assert summary.mean_off_diagonal == pytest.approx(0.3)
    assert summary.std_off_diagonal == pytest.approx(np.sqrt(0.72 / 6 - 0.09))
    assert summary.mean == pytest.approx((4 + 2 * 1.8) / 16)
    assert summary.std == pytest.approx(np.sqrt((4 + 2 * 0.72) / 16 - (7.6 / 16) ** 2))


def test_one_label_has_no_pairs():
    summary = summarise_matrix(np.eye(1))
    assert summary.mean == 1 and np.isnan(summary.mean_off_diagonal)
    with pytest.raises(ValueError, match="at least two labels"):
        density_curve(np.eye(1))


def test_density_integrates_to_one_and_sits_where_the_values_are():
    curve = density_curve(MATRIX, bins=10)
    assert curve.density.sum() / 10 == pytest.approx(1)
    assert curve.centres[np.flatnonzero(curve.density)] == pytest.approx([0.05, 0.25, 0.35, 0.55])
    assert len(off_diagonal(MATRIX)) == 6
    with_diagonal = density_curve(MATRIX, bins=10, diagonal=True)
    assert with_diagonal.density[-1] == pytest.approx(10 * 4 / 16)


def test_neighbours_come_most_similar_first_and_equals_in_order():
    found = rank_neighbours(MATRIX, 0)
    assert [(other.row, other.similarity) for other in found] == [(1, 0.5), (3, 0.5), (2, 0.2)]
    assert [other.row for other in rank_neighbours(MATRIX, 3, count=1)] == [0]
