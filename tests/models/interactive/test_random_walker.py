"""The random walker against scikit-image and a dense system written out by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from hardlook.errors import OptionError
from hardlook.models.conformance import check_named
from hardlook.models.interactive.random_walker import RandomWalker, arrival_chances, laplacian
from hardlook.models.roles import Clicks

SHAPES = st.tuples(st.integers(1, 9), st.integers(1, 9)).filter(lambda shape: shape[0] * shape[1] > 1)


def prompt(*clicks):
    points = np.array([click[:2] for click in clicks], np.float32).reshape(-1, 2)
    return Clicks(points, np.array([click[2] for click in clicks], bool))


def answer(image, *clicks, **options):
    [answered] = RandomWalker(**options).open(image).predict([prompt(*clicks)])
    return answered.mask


def picture(seed, shape=(14, 18)):
    return np.random.default_rng(seed).integers(0, 256, (*shape, 3)).astype(np.uint8)


def drawn_seeds(seed, shape):
    rng = np.random.default_rng(seed)
    seeds = rng.choice([1, -1, 0, 0, 0, 0, 0], shape).astype(np.int8)
    seeds[rng.integers(shape[0]), rng.integers(shape[1])] = 1
    return seeds


def test_it_keeps_its_contract():
    findings = check_named("random-walker", "promptable-segmenter", {})
    assert [finding.line() for finding in findings if not finding.passed] == []


@pytest.mark.parametrize("beta", [10.0, 130.0])
def test_chances_are_scikit_images(beta):
    segmentation = pytest.importorskip("skimage.segmentation")
    image, seeds = picture(1), np.zeros((14, 18), np.int8)
    seeds[3:5, 2:6] = 1
    seeds[10, 3] = seeds[7:12, 15] = -1
    labels = np.select([seeds > 0, seeds < 0], [1, 2], 0)
    theirs = segmentation.random_walker(
        image, labels, beta=beta, mode="bf", channel_axis=-1, return_full_prob=True, prob_tol=1
    )
    ours = arrival_chances(laplacian(image, beta, border=0.0), seeds)
    np.testing.assert_allclose(ours, theirs[0], atol=1e-6)


@pytest.mark.parametrize("border", [0.0, 0.001, 0.7])
def test_chances_are_those_of_the_dense_system_with_a_ring_of_background(border):
    image, beta = picture(2, (4, 5)), 20.0
    values = image / 255
    scale = beta / (10 * values.std() * np.sqrt(3))
    matrix, right = np.zeros((20, 20)), np.zeros(20)
    for row in range(4):
        for column in range(5):
            here = row * 5 + column
            for r, c in ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)):
                if 0 <= r < 4 and 0 <= c < 5:
                    weight = np.exp(-scale * ((values[row, column] - values[r, c]) ** 2).sum()) + 1e-10
                    matrix[here, r * 5 + c] -= weight
                    matrix[here, here] += weight
                else:
                    matrix[here, here] += border
    seeds = np.zeros((4, 5), np.int8)
    seeds[1, 1], seeds[3, 4] = 1, -1
    for here, sign in ((6, 1), (19, -1)):
        matrix[here], matrix[here, here], right[here] = 0, 1, sign > 0
    expected = np.linalg.solve(matrix, right).reshape(4, 5)
    np.testing.assert_allclose(arrival_chances(laplacian(image, beta, border), seeds), expected, atol=1e-9)


@given(SHAPES, st.integers(0, 999), st.sampled_from([0.0, 0.01, 5.0]))
def test_chances_are_chances_and_every_region_has_a_seed(shape, seed, border):
    seeds = drawn_seeds(seed, shape)
    chance = arrival_chances(laplacian(picture(seed, shape), 30.0, border), seeds)
    assert 0 <= chance.min() and chance.max() <= 1
    assert (chance[seeds > 0] == 1).all() and (chance[seeds < 0] == 0).all()
    parts, count = ndimage.label(chance > 0.5)
    assert all((seeds[parts == part] > 0).any() for part in range(1, count + 1))


@given(SHAPES, st.integers(0, 999))
def test_without_a_border_the_sides_are_alike(shape, seed):
    graph, seeds = laplacian(picture(seed, shape), 30.0, 0.0), drawn_seeds(seed, shape)
    both = arrival_chances(graph, seeds) + arrival_chances(graph, -seeds)
    np.testing.assert_allclose(both, 1, atol=1e-6)


def test_the_border_bounds_what_one_click_takes():
    image = np.full((30, 40, 3), 90, np.uint8)
    areas = [answer(image, (20, 15, True), border=border).mean() for border in (0.0, 0.001, 1.0)]
    assert areas[0] == 1 and areas[0] >= areas[1] > areas[2] > 0


def test_a_negative_click_takes_its_part_away():
    image = np.full((40, 60, 3), 40, np.uint8)
    image[10:30, 5:25] = image[10:30, 35:55] = 200
    image[18:22, 25:35] = 200  # a bridge between the two
    one = answer(image, (15, 20, True))
    less = answer(image, (15, 20, True), (45, 20, False))
    assert one[10:30, 35:55].mean() > 0.9 and less[10:30, 5:25].mean() > 0.9 and less[10:30, 35:55].mean() < 0.1


def test_without_a_positive_click_nothing_is_found():
    assert not answer(picture(3), (4, 4, False)).any()
    assert not answer(picture(3)).any()


@settings(max_examples=40)
@given(
    SHAPES,
    st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11), st.booleans()), min_size=1, max_size=4),
    st.sampled_from([0, 1, 255]),
    st.sampled_from([0.0, 1.0]),
)
def test_any_small_picture_has_an_answer(shape, clicks, contrast, radius):
    image = np.random.default_rng(shape[0]).integers(0, contrast + 1, (*shape, 3)).astype(np.uint8)
    mask = answer(image, *clicks, size=8, radius=radius)
    x, y, positive = clicks[-1]
    assert mask.shape == shape and mask.dtype == np.bool_
    if any(click[2] for click in clicks):
        assert mask[min(y, shape[0] - 1), min(x, shape[1] - 1)] == positive


def test_options_that_cannot_be():
    with pytest.raises(OptionError, match="0 or more"):
        RandomWalker(beta=-1)
    with pytest.raises(OptionError, match="working size"):
        RandomWalker(size=2)
