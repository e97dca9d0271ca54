import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import cityblock
from scipy.stats import entropy, zscore

from hardlook.metrics.click_maps import map_divergence, map_similarity, nss, pde

maps = arrays(np.float64, (5, 7), elements=st.floats(0.01, 1))

clicks = arrays(np.int64, (9, 2), elements=st.integers(0, 4))


@pytest.mark.parametrize(("height", "width"), [(3, 4), (10, 10), (1, 30)])
def test_a_uniform_map_over_a_share_of_the_frame(height, width):
    frame = np.zeros((20, 40))
    frame[5 : 5 + height, 5 : 5 + width] = 1
    share = height * width / frame.size
    inside = [(5, 5), (4 + width, 4 + height)]
    assert nss(frame, inside, "paper") == pytest.approx(np.sqrt((1 - share) / share))
    assert nss(frame, inside) == pytest.approx(np.sqrt((1 - share) / share), rel=1e-5)
    assert pde(frame, inside, "paper") == pytest.approx(1 / (height * width))
    assert pde(frame, inside) == pytest.approx(1 / (height * width), rel=1e-8)


@given(maps, clicks)
def test_scores_at_clicks_equal_scipy_and_a_loop(click_map, points):
    if np.ptp(click_map) > 1e-6:
        z = zscore(click_map, axis=None)
        assert nss(click_map, points, "paper") == pytest.approx(np.mean([z[y, x] for x, y in points]), abs=1e-6)
    share = click_map / click_map.sum()
    assert pde(click_map, points, "paper") == pytest.approx(np.mean([share[y, x] for x, y in points]))


def test_released_adds_a_small_number_twice():
    click_map = np.array([[1.0, 3.0]]) * 1e-9
    share = np.array([1.0, 3.0]) / 5  # the sum 4e-9 becomes 5e-9
    assert pde(click_map, [(1, 0)]) == pytest.approx(share[1])
    assert nss(click_map, [(1, 0)]) == pytest.approx((share[1] - 0.4) / (0.2 + 1e-9))


def test_the_small_number_counts_where_the_standard_deviation_is_small():
    frame = np.zeros((400, 500))
    frame[100:300, 100:400] = 1
    deviation = np.sqrt(0.3 * 0.7) / 60_000
    expected = (1 / 60_000 - 1 / 200_000) / (deviation + 1e-9)
    assert nss(frame, [(100, 100)]) == pytest.approx(expected, rel=1e-9)
    assert nss(frame, [(100, 100)]) < nss(frame, [(100, 100)], "paper") * (1 - 1e-4)


def test_a_constant_map_scores_nothing():
    assert nss(np.full((3, 3), 0.1), [(0, 0)]) == nss(np.full((3, 3), 0.1), [(2, 1)], "paper") == 0


def test_a_fraction_of_a_pixel_falls_to_its_pixel():
    click_map = np.arange(6.0).reshape(2, 3)
    assert pde(click_map, [(2.9, 1.2)]) == pde(click_map, [(2, 1)])


@given(maps, maps, st.floats(0.1, 50))
def test_similarity_is_one_less_half_the_distance(first, second, factor):
    distance = cityblock((first / first.sum()).ravel(), (second / second.sum()).ravel())
    assert map_similarity(first, second) == pytest.approx(1 - distance / 2)
    assert map_similarity(first, factor * first) == pytest.approx(1)
    assert map_similarity(first, second) == map_similarity(second, first)


def test_the_worked_divergence():
    assert map_divergence([[0.5, 0.5, 0, 0]], [[0.25] * 4]) == pytest.approx(0.693147, abs=5e-7)


@given(maps, maps)
def test_divergence_equals_scipy(target, predicted):
    assert map_divergence(target, predicted) == pytest.approx(entropy(target.ravel(), predicted.ravel()), abs=1e-5)


def test_divergence_stays_finite_where_the_prediction_has_nothing():
    assert map_divergence([[1.0, 0.0]], [[0.0, 1.0]]) == pytest.approx(np.log(1e9), rel=1e-6)
    assert map_similarity([[1.0, 0.0]], [[0.0, 1.0]]) == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nss(np.ones((2, 3)), [(0, 0), (3, 1)]), r"inside 3 x 2 pixels, got \(3, 1\)"),
        (lambda: pde(np.ones((2, 3)), [(-1, 0)]), r"got \(-1, 0\)"),
        (lambda: pde(np.zeros((2, 3)), [(0, 0)]), "a sum above 0, got a sum of 0.0"),
        (lambda: pde([[2.0, -1.0]], [(0, 0)]), "values of 0 or more"),
        (lambda: pde([1.0], [(0, 0)]), r"click_map: expected shape \(H, W\), got \(1,\)"),
        (lambda: nss(np.ones((2, 3)), [(0, 0)], "ours"), "released or paper, got 'ours'"),
        (lambda: map_similarity([[1.0]], [[1.0, 1.0]]), r"one shape, got \(1, 1\) and \(1, 2\)"),
    ],
)
def test_errors_say_what_came(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("point", [(-0.5, 1), (1, -0.5), (3, 1), (1, 2), (-9, 1), (1, -9), (9, 1), (1, 9)])
def test_a_click_just_outside_the_frame_is_refused(point):
    with pytest.raises(ValueError, match="inside 3 x 2 pixels"):
        pde(np.ones((2, 3)), [(1, 1), point])
    assert pde(np.ones((2, 3)), [(0, 0), (2.99, 0), (0, 1.99), (2.99, 1.99)], "paper") == pytest.approx(1 / 6)
