import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.benchmarks.semantic_images.one_vocabulary import one_list, relabelled
from hardlook.benchmarks.semantic_images.records import confusion_of, in_one_vocabulary
from hardlook.errors import DataError
from hardlook.labels.label_set import plain_name

WORDS = st.lists(st.sampled_from(["ape", "Ape", "ox", "yak", "sea lion", "sea-lion", "emu"]), unique_by=plain_name)


@given(st.lists(WORDS, min_size=1, max_size=4))
def test_all_words_have_one_place_each(spoken):
    lists = [["cat", "sky", *words] for words in spoken]
    names, tables = one_list(lists, [2] * len(lists))
    assert names[:2] == ("cat", "sky")
    assert len({plain_name(name) for name in names}) == len(names)
    assert {plain_name(name) for name in names} == {plain_name(name) for words in lists for name in words}
    for words, table in zip(lists, tables, strict=True):
        assert [plain_name(names[place]) for place in table] == [plain_name(word) for word in words]


@given(WORDS, WORDS)
def test_the_order_of_runs_does_not_matter(one, other):
    lists = [["cat", *one], ["cat", *other]]
    assert one_list(lists, [1, 1])[0] == one_list(lists[::-1], [1, 1])[0]


def test_what_follows_the_shared_beginning_is_sorted():
    names, _ = one_list([["cat", "zebra", "owl"], ["cat", "owl", "bat"]], [1, 1])
    assert names == ("cat", "bat", "owl", "zebra")


def test_a_list_that_lacks_a_true_label():
    with pytest.raises(DataError, match="label 2 is 'sky' in run 1 and missing in run 3"):
        one_list([["cat", "sky"], ["cat", "sky"], ["cat"]], [2, 2, 1])


def test_lists_change_number_by_number_and_keep_their_lengths():
    lists = pl.Series("labels", [[], [2, 0], [], [1]], dtype=pl.List(pl.Int64))
    changed = relabelled(lists, lambda labels: np.array([7, 8, 9])[labels])
    assert changed.to_list() == [[], [9, 7], [], [8]]
    assert (changed.name, changed.dtype) == ("labels", lists.dtype)
    nothing = pl.Series("labels", [[]], dtype=pl.List(pl.Int64))
    assert relabelled(nothing, lambda labels: labels).to_list() == [[]]


def test_cells_move_with_their_labels_and_no_label_stays_none():
    def records(own, cells):
        names = ["cat", "sky", own]
        return pl.DataFrame({"unit": ["a"], "labels": [3], "names": ["\n".join(names)], "cells": [cells],
                             "pixels": [list(range(1, len(cells) + 1))], "prediction": [b"png"]})  # fmt: skip

    # Of cat: called cat, the model's own word, and no label; of sky: called sky.
    one, other = in_one_vocabulary([records("ox", [0, 2, 3, 5]), records("ape", [0, 2, 3, 5])])
    assert one["names"][0] == other["names"][0] == "cat\nsky\nape\nox"
    assert confusion_of(one)[:2].tolist() == [[1, 0, 0, 2, 3], [0, 4, 0, 0, 0]]
    assert confusion_of(other)[:2].tolist() == [[1, 0, 2, 0, 3], [0, 4, 0, 0, 0]]
    assert "prediction" not in one.columns
