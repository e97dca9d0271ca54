import numpy as np
import pytest

from hardlook.errors import DataError
from hardlook.tasks.image_table import ImageTable, image_table


def test_names_are_sorted_and_numbers_point_at_them():
    table = image_table(["zebra", "ant"], ["snow", "snow"], ["a", "b"])
    assert table.concepts == ("ant", "zebra")
    assert [table.concepts[k] for k in table.concept] == ["zebra", "ant"]
    assert len(table) == 2


def test_contents_are_numbered_as_they_appear_whatever_the_hash():
    numbers = [image_table("abcd", "xxxx", hashes).content.tolist() for hashes in ("zyzx", "abac", "9191")]
    assert numbers == [[0, 1, 0, 2], [0, 1, 0, 2], [0, 1, 0, 1]]


def test_columns_of_different_lengths_are_refused_with_their_counts():
    with pytest.raises(DataError, match="2 of concept, 2 of context, 1 of content"):
        ImageTable(("a",), ("x",), np.zeros(2, int), np.zeros(2, int), np.zeros(1, int))


def test_numbers_without_a_name_are_refused():
    with pytest.raises(DataError, match=r"'context' of an image table must lie in 0\.\.0, it reaches from 0 to 3"):
        ImageTable(("a",), ("x",), np.zeros(2, int), np.array([0, 3]), np.arange(2))
