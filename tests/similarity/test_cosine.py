import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics.pairwise import cosine_similarity

from hardlook.similarity import check_similarity, cosine_matrix


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
