"""Keys follow the content, and are computed as seldom as is safe."""

import gc

import numpy as np

from hardlook.fingerprints import hash_array
from hardlook.models.content_keys import ContentKeys


def fixed(value):
    array = np.full((4, 4), value, np.uint8)
    array.setflags(write=False)
    return array


def test_an_object_is_hashed_once_per_call():
    keys, array = ContentKeys(), np.zeros((4, 4), np.uint8)
    key = keys.key_function()
    assert key(array) == key(array) == hash_array(array)
    assert keys.hashed == 1


def test_an_array_that_changed_between_calls_has_another_key():
    keys, array = ContentKeys(), np.zeros((4, 4), np.uint8)
    key = keys.key_function()
    before = key(array)
    array[0, 0] = 1
    key = keys.key_function()
    assert key(array) == hash_array(array) != before


def test_a_view_of_memory_that_others_may_write_is_hashed_again():
    keys, owner = ContentKeys(), np.zeros((4, 4), np.uint8)
    view = owner[:2]
    view.setflags(write=False)
    key = keys.key_function()
    before = key(view)
    owner[0, 0] = 1
    key = keys.key_function()
    assert key(view) == hash_array(view) != before


def test_an_array_that_cannot_change_is_hashed_once_in_its_life():
    keys, array = ContentKeys(), fixed(3)
    for _ in range(3):
        key = keys.key_function()
        assert key(array) == hash_array(array)
    assert keys.hashed == 1


def test_arrays_that_died_leave_nothing_behind():
    keys = ContentKeys()
    for value in range(50):
        array = fixed(value)
        key = keys.key_function()
        assert key(array) == hash_array(array)
    del array, key
    gc.collect()
    assert keys.hashed == 50
    assert not keys._permanent


def test_no_array_takes_over_an_id_within_a_call():
    keys, array = ContentKeys(), np.zeros((4, 4), np.uint8)
    key = keys.key_function()
    key(array)
    # While the call lasts its arrays are alive, so that no other array can have their ids.
    number, array = id(array), None
    assert all(id(np.ones((4, 4), np.uint8)) != number for _ in range(20))
