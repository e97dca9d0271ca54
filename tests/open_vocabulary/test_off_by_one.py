"""Predictions whose numbers are off by one: when it is said, and what becomes of each label."""

import numpy as np
import pytest

from hardlook.open_vocabulary.off_by_one import describe_shift, shift_labels


@pytest.mark.parametrize(
    ("value", "shifted", "said"),
    [
        (0.05, 0.151, True),  # three times as much, and .1 more
        (0.05, 0.149, False),  # not .1 more
        (0.2, 0.4, False),  # twice as much, not more than twice
        (0.2, 0.401, True),
        (0.0, 0.1, True),
        (0.5, 0.4, False),
    ],
)
def test_it_is_said_where_the_score_would_more_than_double_and_gain_a_tenth(value, shifted, said):
    for word, other in (("lower", "higher"), ("higher", "lower")):
        sentence = describe_shift("mIoU", value, {word: shifted, other: 0.0}, "use --numbering")
        assert bool(sentence) == said
        assert not said or (f"one {word}: use --numbering" in sentence and f"{shifted:.3f}" in sentence)


def test_labels_move_within_the_list_of_the_predictions():
    tables = shift_labels(["cat", "dog", "owl", "sky"], ["owl", "cat", "dog"])
    # The predictions number owl, cat, dog; sky is predicted by nobody, and 4 is no label.
    assert tables["lower"].tolist() == [2, 0, 4, 4, 4]
    assert tables["higher"].tolist() == [1, 4, 0, 4, 4]
    assert all(table.dtype == np.int64 for table in tables.values())
