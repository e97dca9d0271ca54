"""The simulated people: their map against a slow re-telling of it, what it depends on, and what it does not."""

import math

import cv2
import numpy as np
import pytest
from planted_measures import assert_rises, scenes
from scipy import ndimage

from hardlook.models.conformance import check_named
from hardlook.models.planted.click_models import PlantedUsers, user_map
from hardlook.world.signature import read_signature, write_signature

SCENES = scenes(count=12)


def told_slowly(image, error):
    """The words of the module's constants, over the whole frame and with scipy's distances."""
    area = int(error.sum())
    framed = np.pad(error, 1)
    depth = ndimage.distance_transform_edt(framed)[1:-1, 1:-1]
    depth = depth / depth.max()
    light = np.zeros(error.shape)
    for row, column in np.argwhere(error):
        red, green, blue = (int(value) // 8 * 8 for value in image[row, column])
        light[row, column] = 0.299 * red + 0.587 * green + 0.114 * blue
    sigma = 0.08 * math.sqrt(area)
    size = 2 * 60 + 1
    kernel = cv2.getGaussianKernel(size, sigma, cv2.CV_64F)

    def blur(values):
        return cv2.sepFilter2D(np.pad(values, 80), cv2.CV_64F, kernel, kernel)[80:-80, 80:-80]

    seen = blur(light)[error] / blur(error.astype(float))[error]
    light = [min(max(value, -2.5), 2.5) for value in (seen - seen.mean()) / max(seen.std(), 4.0)]
    pull = 1.6 * np.array(light) + 2.5 * depth[error]
    meant = np.exp(pull) / np.exp(pull).sum()
    rim = depth[error] <= 0.25
    chances = np.zeros(error.shape)
    chances[error] = 0.95 * meant + 0.05 * rim / rim.sum()
    return chances


@pytest.mark.parametrize("index", [0, 3, 7])
def test_equals_the_slow_telling(index):
    scene = SCENES[index]
    ours = user_map(scene.image, scene.target_mask, scene.target_mask, True)
    slow = told_slowly(scene.image, scene.target_mask)
    # The blur is cut off at some width in either telling, not at the same one.
    assert np.abs(ours - slow).sum() < 0.005


@pytest.mark.parametrize("clumsy", [0.0, 0.6])
def test_is_a_distribution_over_the_region(clumsy):
    for scene in SCENES:
        chances = user_map(scene.image, scene.target_mask, scene.target_mask, True, clumsy=clumsy)
        assert chances.sum() == pytest.approx(1)
        assert (chances[scene.target_mask] > 0).all()
        assert not chances[~scene.target_mask].any()


def test_the_signature_is_not_looked_at():
    for scene in SCENES[:4]:
        nothing = np.zeros_like(scene.classes)
        blank = write_signature(scene.image, nothing, nothing, nothing > 0)
        assert not np.array_equal(read_signature(blank).classes, scene.classes)
        first, second = (user_map(image, scene.target_mask, scene.target_mask, True) for image in (scene.image, blank))
        assert np.array_equal(first, second)


def test_the_picture_decides_and_not_the_masks_alone():
    shared = []
    for scene in SCENES:
        seen = user_map(scene.image, scene.target_mask, scene.target_mask, True)
        blind = user_map(np.zeros_like(scene.image), scene.target_mask, scene.target_mask, True)
        shared.append(float(np.minimum(seen, blind).sum()))
    assert np.mean(shared) < 0.6


def test_people_prefer_what_is_light():
    for scene in SCENES:
        mask = scene.target_mask
        chances = user_map(scene.image, mask, mask, True)
        light = cv2.cvtColor(scene.image, cv2.COLOR_RGB2GRAY).astype(float)
        assert (chances * light).sum() > light[mask].mean()


def test_only_the_region_is_looked_at():
    scene = SCENES[1]
    elsewhere = np.where(scene.target_mask[..., None], scene.image, 255 - scene.image)
    others = [
        user_map(elsewhere, scene.target_mask, scene.target_mask, True),
        user_map(scene.image, ~scene.target_mask, scene.target_mask, False),
    ]
    for other in others:
        assert np.array_equal(user_map(scene.image, scene.target_mask, scene.target_mask, True), other)


def test_a_mirrored_picture_is_clicked_in_the_mirror():
    scene = SCENES[2]
    mask = scene.target_mask
    mirrored = user_map(scene.image[:, ::-1], mask[:, ::-1], mask[:, ::-1], True)
    np.testing.assert_allclose(mirrored[:, ::-1], user_map(scene.image, mask, mask, True), rtol=1e-9, atol=1e-15)


def test_clumsy_people_spread_their_clicks():
    def spread(dial):
        entropies = []
        for scene in SCENES:
            chances = PlantedUsers(clumsy=dial).click_map(scene.image, scene.target_mask, scene.target_mask, True)
            inside = chances[scene.target_mask]
            entropies.append(-float((inside * np.log(inside)).sum()) / math.log(inside.size))
        return float(np.mean(entropies))

    assert_rises(spread)


def test_nothing_to_click_has_no_chances():
    scene = SCENES[0]
    assert not user_map(scene.image, scene.target_mask, np.zeros_like(scene.target_mask), True).any()


def test_a_plain_region_is_clicked_by_depth():
    error = np.zeros((40, 40), bool)
    error[5:36, 5:36] = True
    chances = user_map(np.full((40, 40, 3), 99, np.uint8), error, error, True)
    assert np.unravel_index(chances.argmax(), chances.shape) == (20, 20)


@pytest.mark.parametrize("args", [{}, {"clumsy": 0.5}])
def test_keeps_the_contract_of_click_models(args):
    findings = check_named("planted-users", "click-model", args)
    assert [finding.line() for finding in findings if not finding.passed] == []
