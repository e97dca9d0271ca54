"""Reading pairs: images by way of the shelf, sizes, shown supports, transformed copies."""

from dataclasses import replace

import numpy as np
import pytest

from hardlook.benchmarks.one_shot_pairs.pairs import OneShotPair, PairSettings
from hardlook.benchmarks.one_shot_pairs.planted_scenes import PlantedScenes
from hardlook.benchmarks.one_shot_pairs.reading import read_pair
from hardlook.benchmarks.one_shot_pairs.records import decode_prediction, record_of
from hardlook.benchmarks.one_shot_pairs.shelf import Shelf
from hardlook.contract.benchmark import Unit
from hardlook.world.planted import PlantedWorld
from hardlook.world.signature import read


@pytest.fixture(scope="module")
def pair():
    source = PlantedScenes(PlantedWorld(count=24))
    cats = [token for token in source.tokens() if token.startswith("1_")]
    settings = PairSettings(source, "world", "planted world")
    return OneShotPair(settings, cats[0], (cats[1],), {"class": "cat"})


def test_a_pair_is_what_its_source_shows(pair):
    seen = read_pair(pair, "a", Shelf())
    source = pair.settings.source
    assert (seen.image == source.read_image(pair.query)).all()
    assert (seen.truth.mask == source.read_mask(pair.query).mask).all()
    [shown] = seen.support
    assert (shown.image == source.read_image(pair.supports[0])).all()
    assert (shown.mask == source.read_mask(pair.supports[0]).mask).all()


def test_pairs_of_one_image_share_one_array(pair):
    shelf = Shelf()
    first, second = read_pair(pair, "a", shelf), read_pair(pair, "b", shelf)
    assert first.image is second.image
    assert first.support[0].mask is second.support[0].mask
    assert shelf.made == 4


@pytest.mark.parametrize(
    ("shown", "image", "mask"),
    [("as it is", True, True), ("no mask", True, False), ("no image", False, True), ("nothing", False, False)],
)
def test_supports_show_what_they_are_told_to(pair, shown, image, mask):
    [support] = read_pair(replace(pair, shown=shown), "a", Shelf()).support
    assert (bool(support.image.any()), bool(support.mask.any())) == (image, mask)
    assert support.image.shape[:2] == support.mask.shape == (120, 160)


def test_a_transformed_query_moves_with_its_truth_and_leaves_the_support_alone(pair):
    own = replace(pair, supports=(pair.query,), transform=4711)
    still, moved = read_pair(pair, "a", Shelf()), read_pair(own, "b", Shelf())
    assert (moved.support[0].image == still.image).all()
    assert (moved.image != still.image).any()
    assert moved.truth.mask.sum() >= still.truth.mask.sum() / 2
    # The signature in the pixels says where the cat went.
    code = read(still.image).classes[still.truth.mask][0]
    assert ((read(moved.image).classes == code) == moved.truth.mask).all()


def test_numbers_and_seeds_give_other_copies_and_orders_do_not(pair):
    def copies(order, seed=0):
        settings = replace(pair.settings, seed=seed)
        found = {n: read_pair(replace(pair, settings=settings, transform=n), "a", Shelf()).image for n in order}
        return [found[number] for number in sorted(order)]

    one, two, three = copies((1, 2, 3)), copies((3, 1, 2)), copies((1, 2, 3), seed=1)
    assert all((a == b).all() for a, b in zip(one, two, strict=True))
    assert all((a != b).any() for a, b in zip(one, three, strict=True))
    assert (one[0] != one[1]).any()


def test_records_count_pixels_and_keep_the_prediction(pair):
    seen = read_pair(pair, "a", Shelf())
    rng = np.random.default_rng(0)
    mask = rng.random(seen.truth.mask.shape) < 0.3
    record = record_of(Unit("a", seen), mask, ["class"])
    true, void = seen.truth.mask, seen.truth.void
    assert record["intersection"] == int(np.logical_and(mask, true).sum())
    assert (record["predicted"], record["truth"], record["void"]) == (mask.sum(), true.sum(), void.sum())
    assert record["predicted_void"] == int(np.logical_and(mask, void).sum())
    assert record["pixels"] == 120 * 160
    assert (decode_prediction(record["prediction"], mask.shape) == mask).all()
    unkept = replace(seen, settings=replace(seen.settings, keep_prediction=False))
    assert record_of(Unit("a", unkept), mask, ["class"])["prediction"] == ""


def test_a_full_shelf_forgets_what_was_unused_longest():
    shelf = Shelf(most_bytes=100)

    def get(key):
        return shelf.get(key, lambda: np.zeros(40, np.uint8))

    for key in ("a", "b", "a", "c"):
        get(key)
    assert shelf.made == 3
    get("a")
    assert shelf.made == 3
    get("b")
    assert shelf.made == 4


def test_something_larger_than_the_shelf_is_still_handed_out():
    shelf = Shelf(most_bytes=10)
    assert len(shelf.get("a", lambda: np.zeros(40, np.uint8))) == 40
