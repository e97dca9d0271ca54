"""The segmenters' dials: names, borders and misses, each spoilt by its own dial alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planted_measures import assert_flat, assert_rises, images, iou, scenes

from hardlook.errors import ModelError
from hardlook.models.planted.segmenters import Faults, PlantedInstances, PlantedPanoptic, PlantedSegmenter, perceive
from hardlook.world.signature import write_signature
from hardlook.world.vocabulary import BY_NAME, sibling_of, unrelated_to

OBJECTS = [(scene, thing) for scene in scenes() for thing in scene.scene.objects if scene.mask_of(thing).sum() > 20]


def named(labels, mask):
    """The label that most pixels of an object have."""
    values = labels[mask]
    return int(np.bincount(values[values >= 0], minlength=22).argmax())


def semantic_maps(**dials):
    return PlantedSegmenter(**dials).segment(images())


def instance_maps(**dials):
    maps = []
    for image, found in zip(images(), PlantedInstances(**dials).detect(images()), strict=True):
        maps.append(np.full(image.shape[:2], -1, np.int32))
        for mask, label in zip(found.masks, found.labels, strict=True):
            maps[-1][mask] = label
    return maps


def panoptic_maps(**dials):
    maps = []
    for answer in PlantedPanoptic(**dials).segment_panoptic(images()):
        table = np.full(max(answer.labels, default=0) + 1, -1, np.int32)
        table[list(answer.labels)] = list(answer.labels.values())
        maps.append(table[answer.map])
    return maps


def misnamed(maps):
    by_scene = dict(zip(map(id, scenes()), maps, strict=True))
    wrong = [named(by_scene[id(s)], s.mask_of(t)) != BY_NAME[t.concept].code - 1 for s, t in OBJECTS]
    return float(np.mean(wrong))


MODELS = pytest.mark.parametrize("maps", [semantic_maps, instance_maps, panoptic_maps])


@MODELS
def test_without_faults_the_truth_comes_out(maps):
    for scene, labels in zip(scenes(), maps(), strict=True):
        things = scene.classes <= 12
        expected = scene.classes.astype(np.int32) - 1
        shown = things & (scene.classes > 0) if maps is instance_maps else np.ones_like(things)
        assert np.array_equal(labels[shown], expected[shown])


@MODELS
@pytest.mark.parametrize("dial", ["sibling", "stranger"])
def test_misnamed_objects_rise_with_the_dial_and_not_with_ragged_borders(maps, dial):
    assert_rises(lambda value: misnamed(maps(**{dial: value})))
    assert_flat(lambda value: misnamed(maps(ragged=value)))
    assert misnamed(maps(**{dial: 1.0})) > 0.95


@pytest.mark.parametrize("maps", [semantic_maps, instance_maps])
def test_wrong_borders_rise_with_ragged_and_not_with_wrong_names(maps):
    def border_error(**dials):
        found = [labels >= 0 if maps is instance_maps else (labels >= 0) & (labels < 12) for labels in maps(**dials)]
        true = [(scene.classes > 0) & (scene.classes <= 12) for scene in scenes()]
        return 1 - float(np.mean([iou(a, b) for a, b in zip(found, true, strict=True)]))

    assert_rises(lambda value: border_error(ragged=value))
    assert_flat(lambda value: border_error(sibling=value))
    assert_flat(lambda value: border_error(stranger=value))


@pytest.mark.parametrize("maps", [instance_maps, panoptic_maps])
def test_missed_objects_rise_with_missed(maps):
    def missed(value):
        by_scene = dict(zip(map(id, scenes()), maps(missed=value), strict=True))
        return float(np.mean([not (by_scene[id(s)][s.mask_of(t)] >= 0).any() for s, t in OBJECTS]))

    assert_rises(missed)
    assert missed(0.0) == 0
    assert missed(1.0) == 1
    assert 0.2 < missed(0.4) < 0.6


def test_siblings_and_strangers_share_the_objects_between_them():
    scene = scenes()[0]
    concept = scene.scene.subject.concept
    with pytest.raises(ModelError, match="shares of the same objects"):
        PlantedSegmenter(sibling=0.6, stranger=0.6)
    for dials, name in (
        ({"sibling": 1.0}, sibling_of(concept)),
        ({"stranger": 1.0}, unrelated_to(concept)),
    ):
        [labels] = PlantedSegmenter(**dials).segment([scene.image])
        assert PlantedSegmenter.labels[named(labels, scene.target_mask)] == name


@given(low=st.floats(0, 1), high=st.floats(0, 1), dial=st.sampled_from(["sibling", "stranger", "ragged", "missed"]))
@settings(max_examples=25, deadline=None)
def test_a_higher_dial_spoils_what_a_lower_one_spoils(low, high, dial):
    low, high = sorted((low, high))
    spoilt = []
    for value in (low, high):
        seen = [perceive(image, Faults(**{dial: value}), "nested", 0) for image in images()[:4]]
        true = [perceive(image, Faults(), "nested", 0) for image in images()[:4]]
        spoilt.append({
            (index, thing.true, thing.instance)
            for index, (one, two) in enumerate(zip(seen, true, strict=True))
            for position, thing in enumerate(one.things)
            if thing != two.things[position] or ((one.owner == position + 1) != (two.owner == position + 1)).any()
        })  # fmt: skip
    assert spoilt[0] <= spoilt[1]


def test_seeds_strike_differently():
    maps = [PlantedSegmenter(sibling=0.5, seed=seed).segment(images()) for seed in (0, 1)]
    assert any((a != b).any() for a, b in zip(*maps, strict=True))


def test_scores_know_nothing_of_the_faults_and_lie_near_one():
    plain, spoilt = (PlantedInstances(sibling=dial).detect(images()) for dial in (0.0, 1.0))
    for a, b in zip(plain, spoilt, strict=True):
        assert np.array_equal(a.scores, b.scores)
        assert (a.scores > 0.94).all()


def test_pictures_of_nothing_but_void_or_objects():
    void = np.zeros((9, 7, 3), np.uint8)
    classes = np.ones((9, 7), np.uint8)
    full = write_signature(void, classes, np.zeros_like(classes), classes == 1)
    faults = {"sibling": 0.5, "stranger": 0.5, "ragged": 1.0}
    assert [set(np.unique(labels)) for labels in PlantedSegmenter(ragged=1.0).segment([void, full])] == [{-1}, {0}]
    assert [len(found.labels) for found in PlantedInstances(**faults).detect([void, full])] == [0, 1]
    assert [len(answer.labels) for answer in PlantedPanoptic(**faults).segment_panoptic([void, full])] == [0, 1]


def test_dials_out_of_range_are_refused():
    for kind in (PlantedSegmenter, PlantedInstances, PlantedPanoptic):
        with pytest.raises(ModelError, match=r"the dial stranger is -0\.1"):
            kind(stranger=-0.1)
