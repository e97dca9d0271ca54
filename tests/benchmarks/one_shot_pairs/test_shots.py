"""K-shot supports: the pair's own first, others of its class, never the query, the same for any order."""

from hypothesis import given
from hypothesis import strategies as st
from one_shot_folders import write_general_folder

from hardlook.benchmarks.one_shot_pairs.lists import OpenedList
from hardlook.benchmarks.one_shot_pairs.pairs import PairSettings
from hardlook.benchmarks.one_shot_pairs.planted_scenes import PlantedScenes
from hardlook.benchmarks.one_shot_pairs.shots import class_pools, supports_of
from hardlook.data.class_masks import open_fss
from hardlook.data.toss_pairs import Pair
from hardlook.world.planted import PlantedWorld

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


def test_too_many_shots_for_the_pool_are_none():
    assert supports("1_a", "1_b", 8) is None
    assert len(supports("1_a", "1_a", 8)) == 8


def opened(name, pairs, named=()):
    source = PlantedScenes(PlantedWorld(count=24))
    listed = tuple(Pair(*tokens, 0, 0) for tokens in pairs)
    return OpenedList(name, listed, PairSettings(source, "world", "built"), named)


def test_a_pool_is_all_that_any_list_names_of_a_class_also_without_a_partner():
    lists = [
        opened("a", [("1_0001", "1_0002")], named=("1_0005", "1_0001", "2_0007")),
        opened("b", [("1_0003", "1_0002"), ("2_0009", "2_0008")]),
    ]
    assert class_pools(lists) == {
        ("world", "cat"): ("1_0001", "1_0002", "1_0003", "1_0005"),
        ("world", "dog"): ("2_0007", "2_0008", "2_0009"),
    }


def test_one_image_under_two_numbers_is_in_the_pool_once(tmp_path):
    data = write_general_folder(tmp_path, [("1_owl_1", "1_owl_2"), ("2_owl_1", "2_owl_3")])
    listed = OpenedList(
        "tier3", (), PairSettings(open_fss(data["fss"]), "fss", "built"), ("1_owl_1", "2_owl_1", "2_owl_3")
    )
    assert class_pools([listed]) == {("fss", "owl"): ("1_owl_1", "2_owl_3")}
