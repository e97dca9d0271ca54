"""Reading pairs: images by way of the cache, sizes, contents of supports, transformed copies."""

from dataclasses import replace

import pytest

from hardlook.caching import ArrayCache
from hardlook.toss.pairs import OneShotPair, PairSettings, read_pair
from hardlook.toss.planted_pairs import PlantedScenes
from hardlook.world.planted import PlantedWorld
from hardlook.world.signature import read_signature


@pytest.fixture(scope="module")
def pair():
    source = PlantedScenes(PlantedWorld(count=24))
    cats = [token for token in source.tokens() if token.startswith("1_")]
    settings = PairSettings(source, "world", "planted world")
    return OneShotPair(settings, cats[0], (cats[1],), {"class": "cat"})


def test_a_pair_is_what_its_source_shows(pair):
    seen = read_pair(pair, "a", ArrayCache())
    source = pair.settings.source
    assert (seen.image == source.read_image(pair.query)).all()
    assert (seen.truth.mask == source.read_mask(pair.query).mask).all()
    [shown] = seen.support
    assert (shown.image == source.read_image(pair.supports[0])).all()
    assert (shown.mask == source.read_mask(pair.supports[0]).mask).all()


def test_pairs_of_one_image_share_one_array(pair):
    cache = ArrayCache()
    first, second = read_pair(pair, "a", cache), read_pair(pair, "b", cache)
    assert first.image is second.image
    assert first.support[0].mask is second.support[0].mask
    assert cache.created == 4


@pytest.mark.parametrize(
    ("content", "image", "mask"),
    [("as it is", True, True), ("no mask", True, False), ("no image", False, True), ("nothing", False, False)],
)
def test_supports_have_the_content_of_the_pair(pair, content, image, mask):
    [support] = read_pair(replace(pair, content=content), "a", ArrayCache()).support
    assert (bool(support.image.any()), bool(support.mask.any())) == (image, mask)
    assert support.image.shape[:2] == support.mask.shape == (120, 160)


def test_a_transformed_query_moves_with_its_truth_and_leaves_the_support_alone(pair):
    own = replace(pair, supports=(pair.query,), transform=4711)
    still, moved = read_pair(pair, "a", ArrayCache()), read_pair(own, "b", ArrayCache())
    assert (moved.support[0].image == still.image).all()
    assert (moved.image != still.image).any()
    assert moved.truth.mask.sum() >= still.truth.mask.sum() / 2
    # The signature in the pixels says where the cat went.
    code = read_signature(still.image).classes[still.truth.mask][0]
    assert ((read_signature(moved.image).classes == code) == moved.truth.mask).all()


def test_numbers_and_seeds_give_other_copies_and_orders_do_not(pair):
    def copies(order, seed=0):
        settings = replace(pair.settings, seed=seed)
        found = {n: read_pair(replace(pair, settings=settings, transform=n), "a", ArrayCache()).image for n in order}
        return [found[number] for number in sorted(order)]

    one, two, three = copies((1, 2, 3)), copies((3, 1, 2)), copies((1, 2, 3), seed=1)
    assert all((a == b).all() for a, b in zip(one, two, strict=True))
    assert all((a != b).any() for a, b in zip(one, three, strict=True))
    assert (one[0] != one[1]).any()
