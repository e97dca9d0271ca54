"""Prototype matching against a literal version in float64, and the laws it must keep."""

from dataclasses import replace

import numpy as np
import pytest
from one_shot_scenes import assert_decides, literal_coverage, planted_cells, scenes, shown, subject_mask
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.preprocessing import normalize

from hardlook.errors import ModelError, OptionError
from hardlook.models.one_shot.prototype import Prototype
from hardlook.models.roles import Features, Support


def matcher(**args):
    return Prototype(encoder="planted-encoder", **args)


def literal_prototypes(supports):
    """Foreground and background: weighted means of unit cells for each support, then the mean of those that have it."""
    sides = []
    for inverted in (False, True):
        means = []
        for support in supports:
            cells = planted_cells(support.image)
            weights = literal_coverage(support.mask ^ inverted, cells.shape[:2])
            units = normalize(cells.reshape(-1, cells.shape[2])).reshape(cells.shape)
            if weights.sum() > 0:
                means.append((units * weights[..., None]).sum((0, 1)) / weights.sum())
        sides.append(np.mean(means, axis=0) if means else np.zeros(units.shape[2]))
    return sides


def cosines(query, vector):
    cells = planted_cells(query)
    return cosine_similarity(cells.reshape(-1, cells.shape[2]), vector[None]).reshape(cells.shape[:2])


@pytest.mark.parametrize("shots", [1, 3])
def test_each_cell_goes_with_the_nearer_prototype(shots):
    drawn = scenes(count=24)
    for place in range(6):
        query, supports = drawn[place].image, [shown(scene) for scene in drawn[place : place + shots]]
        [mask] = matcher().segment_queries([query], [supports])
        foreground, background = literal_prototypes(supports)
        assert_decides(mask, cosines(query, foreground) - cosines(query, background), query.shape[:2])


@pytest.mark.parametrize("threshold", [0.3, 0.5])
def test_without_background_the_scaled_cosine_decides(threshold):
    query, support = scenes()[3].image, shown(scenes()[5])
    [mask] = matcher(background="none", threshold=threshold).segment_queries([query], [[support]])
    likeness = cosines(query, literal_prototypes([support])[0])
    scaled = (likeness - likeness.min()) / (likeness.max() - likeness.min())
    assert_decides(mask, scaled - threshold, query.shape[:2])


def test_the_class_that_is_shown_is_found():
    drawn = scenes(count=48, salient=True, distractors=2)
    by_concept = {scene.scene.subject.concept: scene for scene in drawn}
    queries = [scene for scene in drawn if by_concept[scene.scene.subject.concept] is not scene]
    supports = [[shown(by_concept[scene.scene.subject.concept])] for scene in queries]
    masks = matcher().segment_queries([scene.image for scene in queries], supports)
    overlaps = [
        np.count_nonzero(mask & subject_mask(scene)) / np.count_nonzero(mask | subject_mask(scene))
        for mask, scene in zip(masks, queries, strict=True)
    ]
    # Cells are 8 pixels wide and other places have other grounds; to take the whole picture is the floor.
    assert np.mean(overlaps) > 2 * np.mean([subject_mask(scene) for scene in queries])


def test_nothing_shown_nothing_found():
    query, other = scenes()[0].image, scenes()[1]
    unmasked = Support(other.image, np.zeros(other.image.shape[:2], bool))
    black = Support(np.zeros_like(query), np.zeros(query.shape[:2], bool))
    for background in ("prototype", "none"):
        lists = [[unmasked], [black], [unmasked, black], []]
        masks = matcher(background=background).segment_queries([query] * 4, lists)
        assert not np.any(masks)


def test_a_support_without_foreground_adds_background_only():
    query, other, third = scenes()[0].image, shown(scenes()[1]), scenes()[2]
    supports = [other, Support(third.image, np.zeros(third.image.shape[:2], bool))]
    [mask] = matcher().segment_queries([query], [supports])
    foreground, background = literal_prototypes(supports)
    assert_decides(mask, cosines(query, foreground) - cosines(query, background), query.shape[:2])
    assert np.allclose(foreground, literal_prototypes([other])[0])


def test_a_mask_without_background_leaves_the_foreground_alone():
    scene = scenes()[0]
    everything = Support(scene.image, np.ones(scene.image.shape[:2], bool))
    [mask] = matcher().segment_queries([scene.image], [[everything]])
    foreground, background = literal_prototypes([everything])
    assert not background.any()
    assert_decides(mask, cosines(scene.image, foreground), mask.shape)


def test_neither_memory_nor_order_nor_neighbours_change_a_bit():
    drawn = scenes(count=8)
    queries = [scene.image for scene in drawn] * 2
    supports = [[shown(drawn[(place * 3 + 1) % 8])] for place in range(16)]
    together = matcher()
    masks = together.segment_queries(queries, supports)
    assert together._cache.created == 8 + 8  # eight images, eight supports
    small = matcher(memory=40_000)
    for place in reversed(range(16)):
        [alone] = small.segment_queries([queries[place].copy()], [supports[place]])
        assert np.array_equal(alone, masks[place])
    assert small._cache.size <= 40_000 < together._cache.size


def test_an_image_goes_through_the_encoder_alone_and_once():
    asked = []

    class Counting:
        dimension = 2

        def encode(self, images):
            asked.append(len(images))
            return Features(
                np.zeros((1, 2), np.float32), [images[0][::8, ::8, :2].transpose(2, 0, 1) / np.float32(255)]
            )

    model = matcher()
    model._inner = replace(model._inner, model=Counting())
    images = [scene.image for scene in scenes(count=4)]
    model.segment_queries(images * 3, [[shown(scenes(count=4)[0])]] * 12)
    model.segment_queries(images, [[shown(scenes(count=4)[1])]] * 4)
    assert asked == [1] * 4


def test_errors_say_what_is_wrong():
    scene = scenes()[0]
    with pytest.raises(ModelError, match="1 queries have 0 lists"):
        matcher().segment_queries([scene.image], [])
    with pytest.raises(ModelError, match=r"mask is \(2, 2\), its image \(72, 96\)"):
        matcher().segment_queries([scene.image], [[Support(scene.image, np.ones((2, 2), bool))]])
    with pytest.raises(OptionError, match="threshold goes from 0 to 1"):
        matcher(threshold=-1)

    class Blind:
        dimension = 2

        def encode(self, images):
            return Features(np.zeros((len(images), 2), np.float32))

    model = matcher()
    model._inner = replace(model._inner, model=Blind())
    with pytest.raises(ModelError, match="gives vectors only"):
        model.segment_queries([scene.image], [[shown(scene)]])
