from hypothesis import given
from hypothesis import strategies as st

from hardlook.randomness import generator

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
