import numpy as np
import pytest

from hardlook.metrics.arrays import checked_similarity


def test_rounding_is_put_on_the_edge_of_the_range():
    matrix = np.array([[1.0000002, -1e-8], [0.3, 0.9999999]], np.float32)
    assert checked_similarity(matrix, 2) == pytest.approx(np.array([[1, 0], [0.3, 1]]))
    assert checked_similarity(matrix, 2).diagonal().tolist() == [1, 1]
    assert checked_similarity(matrix, 2).min() == 0


def test_the_matrix_given_stays_as_it_was():
    matrix = np.eye(2)
    checked_similarity(matrix, 2)[0, 1] = 0.5
    assert matrix[0, 1] == 0


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        (np.eye(3), r"expected shape \(2, 2\), got \(3, 3\)"),
        ([[1, -0.2], [0, 1]], r"similarity\[0, 1\]: expected a number from 0 to 1, got -0.2"),
        ([[1, 0], [np.nan, 1]], r"similarity\[1, 0\]: expected a number from 0 to 1, got nan"),
        ([[1, 0], [0, 0.5]], r"similarity\[1, 1\]: expected 1, a label is like itself, got 0.5"),
        ([[1, 2], [3, 0.5]], r"similarity\[0, 1\]: expected a number from 0 to 1, got 2"),
        ([[0.2, 0], [0, 0.5]], r"similarity\[0, 0\]: expected 1, a label is like itself, got 0.2"),
    ],
)
def test_what_is_wrong_is_named(matrix, words):
    with pytest.raises(ValueError, match=words):
        checked_similarity(matrix, 2)
