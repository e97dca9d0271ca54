import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.similarity import check_similarity, restrict


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
    with pytest.raises(ValueError, match="expected 3 rows, one a label, got 2"):
        check_similarity(np.eye(2), labels=["a", "b", "c"])
    with pytest.raises(ValueError, match="expected a square matrix"):
        check_similarity([[1, 0]])


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(-1, 4), max_size=7))
def test_restricting_picks_cells_and_leaves_a_similarity_matrix(seed, places):
    matrix = random_similarity(seed, 5)
    chosen = restrict(matrix, places)
    assert np.array_equal(check_similarity(chosen), chosen)
    for row, a in enumerate(places):
        for column, b in enumerate(places):
            if row != column:
                assert chosen[row, column] == (0 if -1 in (a, b) else matrix[a, b])


def test_places_outside_are_refused():
    with pytest.raises(ValueError, match=r"places in -1\.\.1"):
        restrict(np.eye(2), [0, 2])
