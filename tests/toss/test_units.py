"""Units: K-shot supports of the class without the query, and the order by fold, class and query image."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from one_shot_folders import write_general_folder, write_one_shot_folder

from hardlook.data.class_masks import open_fss
from hardlook.data.toss_pairs import Pair, list_pair_files, read_pairs
from hardlook.harness.runs.batches import make_batches
from hardlook.toss.benchmark import TOSS
from hardlook.toss.options import TossOptions
from hardlook.toss.pair_lists import OpenedList
from hardlook.toss.pairs import PairSettings
from hardlook.toss.planted_pairs import PlantedScenes
from hardlook.toss.units import collect_class_pools, draw_supports
from hardlook.world.planted import PlantedWorld

POOL = tuple(f"1_{name}" for name in "abcdefgh")


def supports(query, support, shots, seed=0, pair="pair"):
    return draw_supports(query, support, shots, POOL, image_of=lambda token: token[2:], seed=seed, pair=pair)


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
    assert collect_class_pools(lists) == {
        ("world", "cat"): ("1_0001", "1_0002", "1_0003", "1_0005"),
        ("world", "dog"): ("2_0007", "2_0008", "2_0009"),
    }


def test_one_image_under_two_numbers_is_in_the_pool_once(tmp_path):
    data = write_general_folder(tmp_path, [("1_owl_1", "1_owl_2"), ("2_owl_1", "2_owl_3")])
    listed = OpenedList(
        "tier3", (), PairSettings(open_fss(data["fss"]), "fss", "built"), ("1_owl_1", "2_owl_1", "2_owl_3")
    )
    assert collect_class_pools([listed]) == {("fss", "owl"): ("1_owl_1", "2_owl_3")}


def test_batches_keep_the_order_of_fold_class_and_image():
    units = TOSS.list_units(TossOptions(scenes=48))
    pairs = [unit.payload for batch in make_batches(units, TOSS.card.batch_size) for unit in batch]
    order = [(pair.slices["fold"], pair.slices["class"], pair.settings.source.image_of(pair.query)) for pair in pairs]
    assert order == sorted(order)
    # Scenes with two objects are queries of two classes.
    assert len({(fold, image) for fold, _, image in order}) < len(set(order))


def misses(images, room):
    """How often a store with room for so many images has to make one, the longest unused going first."""
    kept, made = OrderedDict(), 0
    for image in images:
        made += image not in kept
        kept[image] = None
        kept.move_to_end(image)
        if len(kept) > room:
            kept.popitem(last=False)
    return made


@pytest.mark.real
def test_the_published_tier_one_encodes_each_image_twice_at_most(shared_data):
    files = [file for file in list_pair_files(shared_data / "reference" / "toss") if file.tier == 1]
    listed = [pair for file in files for pair in read_pairs(file).pairs]
    assert len(listed) == 308_269

    def images(pairs):
        return [token.partition("_")[2] for pair in pairs for token in (pair.query, pair.support)]

    def place(pair):
        number, _, image = pair.query.partition("_")
        return pair.fold, number, image

    distinct = len(set(images(listed)))
    # 2 GiB of EfficientNet-Lite0's cells: stride 16 and 32 at 320 pixels are 20 x 20 x 432 floats an image.
    room = (2 << 30) // (20 * 20 * 432 * 4)
    assert distinct == 12_012
    assert misses(images(sorted(listed, key=place)), room) < 2 * distinct < misses(images(listed), room)


def drop_what_all_lists_decide(unit):
    settings = replace(unit.payload.settings, listing="", training_classes=None)
    return replace(unit, payload=replace(unit.payload, settings=settings))


def test_units_that_are_found_by_id_are_those_of_the_list(tmp_path):
    """Tiers 1 and 2 and the fixed lists, from their lines; ids of no unit and pairs without files are left out."""
    folder = write_one_shot_folder(tmp_path)
    for more in ({"tiers": (1, 2)}, {"fixed": True}, {"tiers": (1,), "folds": (1,)}):
        options = TossOptions(data=folder.data, **more)
        listed = {unit.id: drop_what_all_lists_decide(unit) for unit in TOSS.list_units(options)}
        found = TOSS.find_units(options, list(listed))
        assert {name: drop_what_all_lists_decide(unit) for name, unit in found.items()} == listed
    (first, *_, last) = listed
    strange = [
        "tier1-fold0-easy_sal-00001",
        "tier1-fold1-easy-00001",
        f"{first}\n",
        f"{last}0",
        "fixed-fold0-00001",
        "",
    ]
    assert list(TOSS.find_units(options, [last, *strange])) == [last]
    folder.image(found[last].payload.query.partition("_")[2]).unlink()
    assert TOSS.find_units(options.model_copy(update={"seed": 1}), [last]) == {}  # folders are listed once


def test_units_of_tier_three_are_found_once_or_per_fold(tmp_path):
    data = write_general_folder(tmp_path, [("1_apple_1", "1_apple_2"), ("1_apple_2", "1_apple_1")])
    for more in ({}, {"per_fold": True, "folds": (0, 1)}):
        options = TossOptions(data=data, tiers=(3,), **more)
        listed = {unit.id: drop_what_all_lists_decide(unit) for unit in TOSS.list_units(options)}
        found = TOSS.find_units(options, [*listed, "tier3-00001", "tier3-fold0-00001"])
        assert {name: drop_what_all_lists_decide(unit) for name, unit in found.items()} == listed


def test_units_of_several_shots_and_planted_ones_are_listed(tmp_path):
    folder = write_one_shot_folder(tmp_path)
    assert TOSS.find_units(TossOptions(data=folder.data, shots=(1, 5)), ["tier1-fold0-easy_sal-00001"]) is None
    assert TOSS.find_units(TossOptions(), ["tier1-fold0-easy_sal-00001"]) is None
