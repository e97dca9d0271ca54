import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.randomness import generator, seed_sequence

keys = st.lists(st.text(max_size=4) | st.integers(-5, 5), max_size=4).map(tuple)


@given(st.integers(0, 2**40), keys)
def test_the_same_seed_and_key_draw_the_same(seed, key):
    assert generator(seed, *key).integers(0, 2**62, 4).tolist() == generator(seed, *key).integers(0, 2**62, 4).tolist()


@given(st.integers(0, 100), keys, keys)
def test_other_keys_draw_otherwise(seed, one, other):
    typed = [[(type(part), part) for part in key] for key in (one, other)]
    drawn = [generator(seed, *key).integers(0, 2**62, 4).tolist() for key in (one, other)]
    assert (drawn[0] == drawn[1]) == (typed[0] == typed[1])


def test_words_that_run_together_are_told_apart():
    assert generator(0, "ab", "c").random() != generator(0, "a", "bc").random()


@pytest.mark.parametrize("seed", [0, 1, 2**31, 2**32 - 1, 2**32, 10**20])
def test_a_seed_of_any_size_stands_before_the_words_of_its_key(seed):
    digest = hashlib.blake2b(b"str2:abint1:7", digest_size=16).digest()
    words = [int.from_bytes(digest[start : start + 4], "little") for start in range(0, 16, 4)]
    expected = np.random.SeedSequence([seed, *words])
    assert seed_sequence(seed, "ab", 7).generate_state(8).tolist() == expected.generate_state(8).tolist()


def test_a_seed_below_zero_is_refused():
    with pytest.raises(ValueError, match="non-negative"):
        generator(-1, "ab")
