"""Votes over supports for models that take one support at a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hardlook.errors import ModelError
from hardlook.models.one_shot.support_voting import segment_with_supports
from hardlook.models.roles import Support

PICTURE = np.zeros((3, 4, 3), np.uint8)

MASKS = st.lists(arrays(bool, (3, 4)), min_size=1, max_size=5)


class Repeats:
    """Answers with its support's mask, and refuses more than one."""

    supports_at_once = 1

    def __init__(self):
        self.asked = []

    def segment_queries(self, queries, supports):
        assert all(len(shown) == 1 for shown in supports)
        self.asked.append(len(queries))
        return [shown[0].mask for shown in supports]


def supports_of(masks):
    return [Support(PICTURE, mask) for mask in masks]


@given(MASKS)
def test_a_pixel_needs_half_of_the_masks(masks):
    [found] = segment_with_supports(Repeats(), [PICTURE], [supports_of(masks)])
    assert np.array_equal(found, np.mean(masks, axis=0) >= 0.5)
    [turned] = segment_with_supports(Repeats(), [PICTURE], [supports_of(masks[::-1])])
    assert np.array_equal(found, turned)


def test_ties_are_kept():
    one, other = np.zeros((3, 4), bool), np.ones((3, 4), bool)
    [found] = segment_with_supports(Repeats(), [PICTURE], [supports_of([one, other])])
    assert found.all() and found.dtype == bool


@given(st.lists(st.lists(arrays(bool, (3, 4)), max_size=4), max_size=4))
def test_queries_with_unequal_numbers_of_supports(lists):
    model = Repeats()
    found = segment_with_supports(model, [PICTURE] * len(lists), [supports_of(masks) for masks in lists])
    for mask, masks in zip(found, lists, strict=True):
        assert np.array_equal(mask, np.mean(masks, axis=0) >= 0.5 if masks else np.zeros((3, 4), bool))
    assert model.asked == [sum(len(masks) > rank for masks in lists) for rank in range(max(map(len, lists), default=0))]


def test_other_models_get_all_supports_at_once():
    class Counts:
        def segment_queries(self, queries, supports):
            return [np.full(query.shape[:2], len(shown) == 3) for query, shown in zip(queries, supports, strict=True)]

    shown = supports_of([np.zeros((3, 4), bool)] * 3)
    [found] = segment_with_supports(Counts(), [PICTURE], [shown])
    assert found.all()


def test_lists_that_do_not_fit():
    with pytest.raises(ModelError, match="1 queries have 0 lists"):
        segment_with_supports(Repeats(), [PICTURE], [])
