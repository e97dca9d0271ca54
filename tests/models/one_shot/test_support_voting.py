"""Votes over supports for models that take one support at a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hardlook.errors import ModelError
from hardlook.models.one_shot.support_voting import segment_with_supports, takes_contexts
from hardlook.models.roles import PairContext, Support

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


class Reads(Repeats):
    """Notes the contexts that it is given."""

    def __init__(self):
        super().__init__()
        self.contexts = []

    def segment_queries(self, queries, supports, contexts):
        assert len(contexts) == len(queries)
        self.contexts += contexts
        return super().segment_queries(queries, supports)


def test_a_model_is_given_the_contexts_of_its_queries_only_if_it_takes_them():
    shown = [supports_of(np.ones((2, 3, 4), bool)), supports_of(np.ones((1, 3, 4), bool))]
    contexts = [PairContext(fold=2, class_id=7, class_name="car"), PairContext(fold=2, class_id=8)]
    model = Reads()
    segment_with_supports(model, [PICTURE, PICTURE], shown, contexts=contexts)
    # Twice for the query with two supports, at the second call without the other query.
    assert model.contexts == [*contexts, contexts[0]]
    segment_with_supports(model, [PICTURE], shown[1:])
    assert model.contexts[-1] == PairContext()
    assert len(segment_with_supports(Repeats(), [PICTURE, PICTURE], shown, contexts=contexts)) == 2
    assert takes_contexts(Reads()) and not takes_contexts(Repeats())
    assert not takes_contexts(type("Compiled", (), {"segment_queries": max})())
