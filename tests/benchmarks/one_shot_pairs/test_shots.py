"""K-shot supports: the pair's own first, others of its class, never the query, the same for any order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.benchmarks.one_shot_pairs.shots import supports_of
from hardlook.errors import DataError

POOL = tuple(f"1_{name}" for name in "abcdefgh")


def supports(query, support, shots, seed=0, pair="pair"):
    return supports_of(query, support, shots, POOL, image_of=lambda token: token[2:], seed=seed, pair=pair)


@given(st.sampled_from(POOL), st.sampled_from(POOL), st.integers(1, 7), st.integers(0, 5))
def test_supports_are_distinct_images_of_the_class_without_the_query(query, support, shots, seed):
    found = supports(query, support, shots, seed)
    assert (found[0], len(found), len(set(found))) == (support, shots, shots)
    assert set(found) <= set(POOL)
    assert query not in found[1:]


@given(st.sampled_from(POOL), st.sampled_from(POOL), st.integers(0, 5))
def test_more_shots_hold_those_of_fewer(query, support, seed):
    most = supports(query, support, 7, seed)
    assert all(most[:shots] == supports(query, support, shots, seed) for shots in range(1, 8))


def test_pairs_and_seeds_draw_their_own():
    by_pair = {supports("1_a", "1_b", 4, pair=f"pair {number}") for number in range(20)}
    by_seed = {supports("1_a", "1_b", 4, seed=seed) for seed in range(20)}
    assert len(by_pair) > 10
    assert len(by_seed) > 10


def test_too_many_shots_name_the_pair_and_what_there_is():
    with pytest.raises(
        DataError, match="8 supports are asked for, and beside the query the class of 1_b has 7"
    ) as caught:
        supports("1_a", "1_b", 8)
    assert caught.value.unit == "pair"
    assert len(supports("1_a", "1_a", 8)) == 8
