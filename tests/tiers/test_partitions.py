"""Folds of classes, and pairs drawn without repetition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.data.voc import VOC_CLASSES
from hardlook.errors import OptionError
from hardlook.tiers.drawn_pairs import draw_pairs
from hardlook.tiers.partitions import folds_of
from hardlook.tiers.random_pairs import random_pairs


def test_twenty_classes_in_four_folds_are_pascal_5i():
    folds = folds_of(VOC_CLASSES, 4)
    assert [fold[0] for fold in folds] == ["aeroplane", "bus", "diningtable", "pottedplant"]
    assert {len(fold) for fold in folds} == {5}


@given(st.integers(1, 40), st.integers(1, 40))
def test_folds_keep_order_and_differ_by_one_at_most(classes, folds):
    names = [str(n) for n in range(classes)]
    if folds > classes:
        with pytest.raises(OptionError, match="classes"):
            folds_of(names, folds)
        return
    cut = folds_of(names, folds)
    assert [name for fold in cut for name in fold] == names
    assert len(cut) == folds and max(map(len, cut)) - min(map(len, cut)) <= 1


@given(st.integers(0, 20), st.integers(0, 500))
def test_drawn_pairs_are_distinct_and_never_with_themselves(count, wanted):
    tokens = [f"1_{n}" for n in range(count)]
    pairs = draw_pairs(tokens, tokens, wanted, np.random.default_rng(0))
    assert len(set(pairs)) == len(pairs) == min(wanted, count * max(count - 1, 0))
    assert all(query != support for query, support in pairs)


def test_lists_that_overlap_in_part_are_refused():
    with pytest.raises(ValueError, match="overlap"):
        draw_pairs(["a", "b"], ["b", "c"], 1, np.random.default_rng(0))


def test_fixed_lists_have_three_thousand_pairs_a_class():
    tokens = {"cat": [f"1_{n}" for n in range(80)], "dog": [f"2_{n}" for n in range(5)]}
    pairs = random_pairs(tokens, ["cat", "dog"])
    assert [query.partition("_")[0] for query, _ in pairs] == ["1"] * 3000 + ["2"] * 20
    assert len(set(pairs)) == len(pairs)
