"""Samples on the grid: what they hold, mirrored, and the same from any number of threads.

Samples that cannot be used are found before a training, all of them.
"""

import numpy as np
import pytest

from hardlook.errors import DataError, ModelError
from hardlook.rclicks.training.samples import (
    GridSamples,
    epoch_flips,
    epoch_order,
    find_unusable,
    prepare_sample,
    stack_batch,
)
from hardlook.rclicks.training.target_maps import click_map


def test_a_sample_shows_image_masks_and_clicks_in_one_place(scenes, brief):
    image, target, _, clicks = scenes[0].read()
    sample = prepare_sample(scenes[0], brief)
    assert (sample.image.shape, sample.masks.shape, sample.target.shape) == ((3, 64, 64), (2, 64, 64), (64, 64))
    # The spot is bright, inside the mask, and where the mass and the clicks are.
    row, column = np.unravel_index(sample.target.argmax(), (64, 64))
    assert sample.image[:, row, column].min() > 1.5
    assert sample.masks[:, row, column].tolist() == [1, 1]
    x, y = sample.clicks.mean(0) + np.array([sample.box.left, sample.box.top])
    assert abs(x - column) < 5
    assert abs(y - row) < 5
    whole = click_map(clicks, target)
    rows = (np.indices(whole.shape)[0] * whole).sum()
    placed = sample.target / sample.target.sum()
    given = ((np.indices(placed.shape)[0] * placed).sum() + 0.5 - sample.box.top) * image.shape[0] / sample.box.rows
    assert given == pytest.approx(rows + 0.5, abs=0.1)


def test_mirroring_turns_all_three_and_nothing_else(scenes, brief):
    group = [prepare_sample(scene, brief) for scene in scenes[:2]]
    plain, turned = stack_batch(group, [False, False]), stack_batch(group, [True, False])
    for before, after in zip(plain, turned, strict=True):
        assert np.array_equal(after[0], before[0].flip(-1))
        assert np.array_equal(after[1], before[1])
        assert not np.array_equal(after[0], before[0])


def test_order_and_flips_are_drawn_by_seed_epoch_and_sample():
    assert sorted(epoch_order(0, 1, 50)) == list(range(50))
    assert np.array_equal(epoch_order(0, 1, 50), epoch_order(0, 1, 50))
    assert not np.array_equal(epoch_order(0, 1, 50), epoch_order(0, 2, 50))
    # A sample's flip does not change when more samples come after it.
    assert np.array_equal(epoch_flips(0, 3, 40), epoch_flips(0, 3, 90)[:40])
    assert 350 < epoch_flips(0, 1, 800).sum() < 450


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("workers", [0, 3])
def test_any_number_of_threads_gives_the_same_batches(scenes, brief, workers, keep):
    order = epoch_order(0, 1, len(scenes))
    samples = GridSamples(scenes, brief, workers=workers, keep=keep)
    for _ in range(2):
        batches = list(samples.batches(order, 4))
        assert [len(group) for group in batches] == [4, 4, 2]
        given = [sample for group in batches for sample in group]
        for place, sample in zip(order, given, strict=True):
            assert np.array_equal(sample.image, prepare_sample(scenes[place], brief).image)


def test_a_sample_that_cannot_be_is_named(scenes, brief):
    class Nowhere:
        def read(self):
            image, target, error, _ = scenes[0].read()
            return image, target, error & False, np.array([[1, 1]])

    with pytest.raises(DataError, match="sample 1"):
        list(GridSamples([scenes[0], Nowhere()], brief).batches(range(2), 2))


def test_a_sample_with_a_key_is_named_by_it(scenes, brief):
    class Named:
        key = "grabcut/llama"

        def read(self):
            image, target, error, _ = scenes[0].read()
            return image, target, error & False, np.array([[1, 1]])

    with pytest.raises(DataError, match="grabcut/llama"):
        list(GridSamples([scenes[0], Named()], brief).batches(range(2), 2))


class Broken:
    def __init__(self, error):
        self.error = error

    def read(self):
        raise self.error


@pytest.mark.parametrize("workers", [0, 3])
def test_every_sample_that_fails_is_told_with_its_error(scenes, brief, workers):
    class Far:
        def read(self):
            image, target, error, clicks = scenes[0].read()
            return image, target, error & False, clicks

    told = []
    samples = [scenes[0], Broken(DataError("truncated")), scenes[1], Far()]
    found = find_unusable(samples, brief, workers=workers, progress=told.append)
    assert told == [True, False, True, False]
    assert {place: error.what for place, error in found.items()} == {
        1: "truncated",
        3: "none of 20 clicks falls near the error region",
    }


def test_what_is_no_fault_of_the_data_is_raised(scenes, brief):
    with pytest.raises(ModelError, match="no weights"):
        find_unusable([scenes[0], Broken(ModelError("no weights"))], brief)
