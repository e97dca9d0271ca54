"""The floor that follows salience."""

import numpy as np
import pytest

from hardlook.errors import OptionError
from hardlook.models.one_shot.saliency import SaliencyOnly
from hardlook.models.planted.saliency import PlantedSaliency

from .scenes import scenes, shown


def test_the_mask_is_where_the_map_is_above_the_threshold():
    images = [scene.image for scene in scenes(count=6)]
    maps = PlantedSaliency(centre=0.5).saliency(images)
    for threshold in (0.3, 0.5):
        model = SaliencyOnly(model="planted-saliency", model_args="centre=0.5", threshold=threshold)
        masks = model.segment_queries(images, [[]] * len(images))
        assert all(np.array_equal(mask, one > threshold) for mask, one in zip(masks, maps, strict=True))


def test_the_support_does_not_matter():
    query, first, second = scenes(count=3)
    model = SaliencyOnly(model="planted-saliency")
    one, other = model.segment_queries([query.image] * 2, [[shown(first)], [shown(second), shown(first)]])
    assert np.array_equal(one, other)


def test_each_image_is_looked_at_once():
    model = SaliencyOnly(model="planted-saliency")
    images = [scene.image for scene in scenes(count=3)]
    first = model.segment_queries(images * 2, [[]] * 6)
    first[0][:] = ~first[0]
    again = model.segment_queries([image.copy() for image in images], [[]] * 3)
    assert model._store.made == 3
    assert np.array_equal(again[0], ~first[0]) and np.array_equal(again[0], first[3])


def test_a_threshold_that_is_none():
    with pytest.raises(OptionError, match="from 0 to 1"):
        SaliencyOnly(model="planted-saliency", threshold=2)
