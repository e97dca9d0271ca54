"""Samples of simulated people: regions of every round, clicks by their exact chances, the same on every reading."""

from collections import Counter

import numpy as np
import pytest
from scipy.stats import chisquare

from hardlook.errors import DataError, OptionError
from hardlook.models.planted.click_models import user_map
from hardlook.randomness import generator
from hardlook.rclicks.user_clicks.planted_users import MIN_PIXELS, draw_clicks, planted_error, planted_samples
from hardlook.rclicks.user_clicks.stems import ClickedStem

SIZE = (96, 72)

SAMPLES = planted_samples(seed=4, count=36, size=SIZE)

STEMS = [sample.clicked_stem() for sample in SAMPLES]


def test_all_rounds_occur_and_regions_are_what_they_say():
    kinds = Counter(stem.click_type for stem in STEMS)
    assert set(kinds) == {"first", "fn", "fp"}
    for stem in STEMS:
        assert stem.error.sum() >= MIN_PIXELS
        if stem.click_type == "first":
            assert np.array_equal(stem.error, stem.target)
        elif stem.click_type == "fn":
            assert (stem.error <= stem.target).all()
            assert stem.error.sum() < stem.target.sum()
        else:
            assert not (stem.error & stem.target).any()
        assert stem.positive == (stem.click_type != "fp")


def test_first_rounds_alone_where_wanted():
    alone = planted_samples(seed=4, count=6, size=SIZE, later_rounds=False)
    assert {sample.clicked_stem().click_type for sample in alone} == {"first"}


def test_samples_are_the_same_on_every_reading():
    again = planted_samples(seed=4, count=36, size=SIZE)
    for index in (5, 0):
        for first, second in zip(SAMPLES[index].read(), again[index].read(), strict=True):
            assert np.array_equal(first, second)
        stem = STEMS[index]
        for first, second in zip(
            SAMPLES[index].read(), (stem.image, stem.target, stem.error, stem.clicks), strict=True
        ):
            assert np.array_equal(first, second)


def test_the_map_is_that_of_the_click_model():
    for sample, stem in zip(SAMPLES[:6], STEMS, strict=False):
        model = user_map(stem.image, stem.target, stem.error, stem.positive)
        assert np.array_equal(sample.map(), model)


def test_clicks_follow_the_map():
    [sample] = planted_samples(seed=1, count=1, size=SIZE, clicks=4000)
    chances = sample.map()
    x, y = sample.read()[3].T
    # Cells of equal chance, about: pixels by rank of their chance, cut into twenty runs of mass.
    order = np.argsort(chances, axis=None)
    run = np.empty(chances.size, int)
    run[order] = np.minimum((np.cumsum(chances.ravel()[order]) * 20).astype(int), 19)
    expected = np.bincount(run, chances.ravel(), minlength=20) * 4000
    counted = np.bincount(run[y * SIZE[0] + x], minlength=20)
    assert chisquare(counted, expected).pvalue > 0.001


def test_devices_share_regions_and_not_clicks():
    mobile = planted_samples(seed=4, count=36, size=SIZE, device="mobile", clumsy=0.8)
    for here, there in zip(SAMPLES[:4], mobile, strict=False):
        ours, theirs = here.read(), there.read()
        assert all(np.array_equal(first, second) for first, second in zip(ours[:3], theirs[:3], strict=True))
        assert not np.array_equal(ours[3], theirs[3])
        assert not np.array_equal(here.map(), there.map())


def test_draws_are_keyed():
    chances = np.full((20, 30), 1 / 600)
    first, again = (draw_clicks(chances, 9, ("a", 1), seed=2) for _ in range(2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, draw_clicks(chances, 9, ("a", 2), seed=2))
    assert not np.array_equal(first, draw_clicks(chances, 9, ("a", 1), seed=3))


def test_no_clicks_are_refused():
    with pytest.raises(OptionError, match="0 clicks"):
        planted_samples(0, 1, clicks=0)


@pytest.mark.parametrize("index", range(12))
def test_missing_parts_are_a_quarter_to_three_quarters(index):
    target = STEMS[index].target
    missing = planted_error(target, "fn", generator(0, index))
    share = missing.sum() / target.sum()
    # A cut along a row or column takes or leaves all of its pixels.
    assert 0.2 < share < 0.85


def test_surplus_leaves_the_frame_unharmed():
    target = np.ones((9, 9), bool)
    assert not planted_error(target, "fp", generator(0, "full")).any()


def test_a_stem_says_what_is_wrong_with_it():
    image, target = np.zeros((4, 5, 3), np.uint8), np.ones((4, 5), bool)
    with pytest.raises(DataError, match=r"got \(0, 2\)"):
        ClickedStem("a", "mine", image, target, target, np.empty((0, 2)))
    with pytest.raises(DataError, match="outside the 5 x 4 pixels"):
        ClickedStem("a", "mine", image, target, target, np.array([[1, 4]]))
    with pytest.raises(DataError, match="of one size"):
        ClickedStem("a", "mine", image, target, target[1:], np.array([[1, 1]]))
    with pytest.raises(DataError, match="mask is empty"):
        _ = ClickedStem("a", "mine", image, ~target, target, np.array([[1, 1]])).box
