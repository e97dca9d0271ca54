from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from hardlook.errors import OptionError
from hardlook.world.planted import FAVOURITE_CONTEXTS, PlantedWorld
from hardlook.world.render import render_scene
from hardlook.world.vocabulary import CONCEPTS, CONTEXTS, sibling_of


def test_every_concept_meets_every_context_equally_often() -> None:
    world = PlantedWorld(seed=3, count=2 * 96)
    cells = Counter((world.concept(i), world.context(i)) for i in range(len(world)))
    assert len(cells) == 96
    assert set(cells.values()) == {2}


def test_a_short_world_is_balanced_too() -> None:
    world = PlantedWorld(seed=5, count=24)
    assert set(Counter(map(world.concept, range(24))).values()) == {2}
    assert max(Counter(map(world.context, range(24))).values()) <= 4


def test_half_of_each_concepts_scenes_are_salient_and_both_states_meet_each_cell() -> None:
    world = PlantedWorld(seed=3, count=2 * 96)
    states = Counter((world.concept(i), world.is_salient(i)) for i in range(96))
    assert set(states.values()) == {4}
    cells = {(world.concept(i), world.context(i), world.is_salient(i)) for i in range(192)}
    assert len(cells) == 192


def test_correlation_moves_contexts_to_the_favourite() -> None:
    count = 960
    shares = []
    for correlation in (0.0, 0.5, 1.0):
        world = PlantedWorld(seed=1, count=count, correlation=correlation)
        shares.append(sum(world.context(i) == FAVOURITE_CONTEXTS[world.concept(i)] for i in range(count)) / count)
    assert shares[0] == pytest.approx(1 / 8)
    assert shares[1] == pytest.approx(0.5 + 0.5 / 8, abs=0.05)
    assert shares[2] == 1.0


def test_favourites_cover_all_contexts_and_siblings_differ() -> None:
    assert set(FAVOURITE_CONTEXTS) == {label.name for label in CONCEPTS}
    assert set(FAVOURITE_CONTEXTS.values()) == {context.name for context in CONTEXTS}
    assert all(FAVOURITE_CONTEXTS[name] != FAVOURITE_CONTEXTS[sibling_of(name)] for name in FAVOURITE_CONTEXTS)


def test_a_longer_world_begins_with_the_shorter_one() -> None:
    assert PlantedWorld(seed=2, count=500).scene(7) == PlantedWorld(seed=2, count=10).scene(7)


def test_fingerprint_tells_options_apart() -> None:
    world = PlantedWorld(seed=2, count=10)
    others = [
        replace(world, seed=3),
        replace(world, count=11),
        replace(world, size=(96, 96)),
        replace(world, salient=True),
    ]
    assert len({w.fingerprint() for w in (world, *others)}) == 5
    assert world.fingerprint() == PlantedWorld(2, 10).fingerprint()


def test_indices_out_of_range_and_impossible_options_are_refused() -> None:
    world = PlantedWorld(count=4)
    assert world.scene(-1) == world.scene(3)
    with pytest.raises(IndexError):
        world[4]
    with pytest.raises(OptionError, match="correlation"):
        PlantedWorld(correlation=1.5)
    with pytest.raises(OptionError, match="count"):
        PlantedWorld(count=-1)


@pytest.mark.parametrize("size", [(160, 120), (200, 160)])
def test_a_scene_that_was_painted_over_is_whole_when_asked_for_again(size: tuple[int, int]) -> None:
    world = PlantedWorld(seed=4, count=3, size=size)
    fresh = render_scene(world.scene(1))
    for _ in range(3):
        asked = world[1]
        assert asked.scene == fresh.scene
        for part in ("image", "classes", "instances", "salient"):
            assert np.array_equal(getattr(asked, part), getattr(fresh, part)), part
            getattr(asked, part)[:] = 0
