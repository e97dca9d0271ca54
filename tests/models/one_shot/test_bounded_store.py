"""The store keeps its bound, and forgets what was used least recently."""

from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.errors import OptionError
from hardlook.models.one_shot.bounded_store import BoundedStore


@given(st.integers(0, 60), st.lists(st.integers(0, 9), max_size=60))
def test_against_a_literal_list_of_recent_keys(most_bytes, asked):
    store, recent = BoundedStore(most_bytes), OrderedDict()
    made = 0
    for number in asked:
        size = 3 * number  # larger numbers are larger arrays
        found = store.array((str(number),), lambda number=number: np.full(3 * number, number, np.uint8))
        assert found.size == size and (found == number).all()
        if number in recent:
            recent.move_to_end(number)
            continue
        made += 1
        if size <= most_bytes:
            recent[number] = size
        while sum(recent.values()) > most_bytes:
            recent.popitem(last=False)
    assert store.made == made
    assert store.bytes == sum(recent.values()) <= most_bytes
    assert all(((str(number),) in store) == (number in recent) for number in range(10))


def test_what_is_kept_cannot_be_written():
    store = BoundedStore(100)
    kept = store.array(("a",), lambda: np.zeros(4, np.uint8))
    with pytest.raises(ValueError, match="read-only"):
        kept[0] = 1


def test_a_view_does_not_keep_its_base():
    store = BoundedStore(100)
    kept = store.array(("a",), lambda: np.arange(1000, dtype=np.uint8)[:10])
    assert kept.base is None and kept.tolist() == list(range(10))


def test_a_bound_below_nothing():
    with pytest.raises(OptionError, match="cannot be"):
        BoundedStore(-1)
