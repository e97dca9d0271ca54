"""The floors that look at nothing.

The floor that follows salience.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from one_shot_scenes import scenes, shown

from hardlook.errors import OptionError
from hardlook.models.one_shot.baselines import CenterBox, Empty, SaliencyOnly, WholeImage
from hardlook.models.planted.saliency import PlantedSaliency

SIDES = st.integers(1, 60)


def one(model, height, width):
    [mask] = model.segment_queries([np.zeros((height, width, 3), np.uint8)], [[]])
    return mask


@given(SIDES, SIDES)
def test_nothing_and_everything(height, width):
    assert not one(Empty(), height, width).any()
    assert one(WholeImage(), height, width).all()


def test_half_the_sides_is_a_quarter_of_the_picture():
    mask = one(CenterBox(), 8, 12)
    assert mask[2:6, 3:9].all()
    assert mask.sum() == 24


@given(SIDES, SIDES, st.floats(0.01, 1))
def test_the_box_is_one_box_in_the_middle(height, width, share):
    mask = one(CenterBox(share=share), height, width)
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    assert mask.sum() == len(rows) * len(columns) >= 1
    assert mask[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1].all()
    for found, side in ((rows, height), (columns, width)):
        assert abs(len(found) - share * side) <= 1
        assert abs((found[0] + found[-1] + 1) / 2 - side / 2) <= 1


def test_a_share_of_one_is_the_whole_image():
    assert one(CenterBox(share=1), 7, 5).all()


@pytest.mark.parametrize("share", [0.0, -1.0, 1.5])
def test_a_share_that_makes_no_box(share):
    with pytest.raises(OptionError, match="at most 1"):
        CenterBox(share=share)


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
    assert model._cache.created == 3
    assert np.array_equal(again[0], ~first[0]) and np.array_equal(again[0], first[3])


def test_a_threshold_that_is_none():
    with pytest.raises(OptionError, match="threshold 2 is outside"):
        SaliencyOnly(model="planted-saliency", threshold=2)
