import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.similarity import check_similarity, lesk_matrix

WORDS = st.sampled_from("abcdefgh")


@given(st.lists(st.lists(WORDS, max_size=6), max_size=7))
def test_every_cell_is_dice_of_the_sets(entries):
    matrix = lesk_matrix(entries)
    assert matrix.shape == (len(entries), len(entries))
    for row, a in enumerate(entries):
        for column, b in enumerate(entries):
            size = len(set(a)) + len(set(b))
            expected = 1.0 if row == column else (2 * len(set(a) & set(b)) / size if size else 0.0)
            assert matrix[row, column] == pytest.approx(expected, abs=1e-12)
    assert np.array_equal(check_similarity(matrix, tolerance=0), matrix)


def test_two_entries_without_words_are_not_alike():
    assert lesk_matrix([(), ()]).tolist() == [[1, 0], [0, 1]]
