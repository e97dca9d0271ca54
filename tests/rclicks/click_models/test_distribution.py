"""Maps as distributions: what is refused, what falls back, and that draws follow the chances."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from hardlook.errors import DataError, ModelError
from hardlook.rclicks.click_models.distribution import ClickDistribution, click_distribution

ERROR = np.array([[True, True, False], [False, True, True]])


def test_only_the_region_counts():
    crowd = click_distribution(np.array([[1.0, 2.0, 50.0], [50.0, 3.0, 4.0]]), ERROR)
    assert crowd.chances.tolist() == [[0.1, 0.2, 0.0], [0.0, 0.3, 0.4]]
    assert not crowd.fell_back


@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-290, 1e-6, 1.0, 1e300]))
def test_a_factor_changes_nothing(seed, factor):
    values = np.random.default_rng(seed).random((2, 3)) + 0.1
    plain, scaled = (click_distribution(values * number, ERROR).chances for number in (1.0, factor))
    np.testing.assert_allclose(scaled, plain, rtol=1e-12)


def test_an_empty_map_falls_back_to_uniform():
    crowd = click_distribution(np.array([[0.0, 0.0, 9.0], [9.0, 0.0, 0.0]]), ERROR)
    assert crowd.fell_back
    assert np.array_equal(crowd.chances, ERROR / 4)


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_impossible_chances_are_refused(bad):
    values = np.ones((2, 3))
    values[0, 0] = bad
    with pytest.raises(ModelError, match="in the error region"):
        click_distribution(values, ERROR)
    values[0, 0], values[0, 2] = 1.0, bad
    assert click_distribution(values, ERROR).chances.sum() == pytest.approx(1)


def test_wrong_shapes_and_empty_regions_are_refused():
    with pytest.raises(ModelError, match=r"shape \(3, 2\) where the error region has \(2, 3\)"):
        click_distribution(np.ones((3, 2)), ERROR)
    with pytest.raises(DataError, match="nothing to click"):
        click_distribution(np.ones((2, 3)), np.zeros((2, 3), bool))


def test_draws_follow_the_chances():
    chances = np.array([[0.1, 0.2, 0.0], [0.0, 0.3, 0.4]])
    points = ClickDistribution(chances).draw(np.random.default_rng(0), 100, 200).reshape(-1, 2)
    counted = np.zeros((2, 3))
    np.add.at(counted, (points[:, 1], points[:, 0]), 1)
    assert not counted[~ERROR].any()
    assert chisquare(counted[ERROR], chances[ERROR] * 20_000).pvalue > 0.001


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 9))
def test_more_draws_begin_with_those_of_fewer(seed, draws, count):
    crowd = click_distribution(np.random.default_rng(seed).random((2, 3)) + 0.01, ERROR)
    few, many = (crowd.draw(np.random.default_rng(seed), number, count) for number in (draws, draws + 3))
    assert np.array_equal(many[:draws], few)
