"""Image effects do to pixels what their names say."""

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hardlook.errors import OptionError
from hardlook.metacoco.contexts.image_effects import EFFECTS, MASKED_EFFECTS, apply_effect, blend, smooth_noise, to_grey
from hardlook.randomness import generator
from hardlook.world.planted import PlantedWorld

NAMES = [*EFFECTS, *MASKED_EFFECTS]


@pytest.fixture(scope="module")
def scenes():
    world = PlantedWorld(count=40, salient=True)
    return [world[i] for i in range(40) if world.context(i) in ("meadow", "street")][:6]


def dressed(scene, name, seed=0, **options):
    return apply_effect(scene.image, name, generator(seed, name), mask=scene.salient > 0, **options)


@pytest.mark.parametrize("name", NAMES)
def test_a_look_is_a_picture_of_the_same_size_and_repeats(scenes, name):
    before = scenes[0].image.copy()
    first = dressed(scenes[0], name)
    assert first.shape == before.shape and first.dtype == np.uint8
    assert (scenes[0].image == before).all() and first is not scenes[0].image
    assert (dressed(scenes[0], name) == first).all()
    assert (first != before).any() == (name != "plain")


@pytest.mark.parametrize("name", ["snow", "dusk", "fog", "autumn", "sketch", "blur", "grass", "water"])
def test_another_seed_another_picture(scenes, name):
    assert (dressed(scenes[0], name, seed=1) != dressed(scenes[0], name, seed=2)).any()


@settings(max_examples=25)
@given(st.integers(1, 60), st.integers(1, 60), st.sampled_from(NAMES))
def test_any_size_down_to_a_pixel(height, width, name):
    image = np.random.default_rng(height).integers(0, 256, (height, width, 3), dtype=np.uint8)
    mask = np.arange(height * width).reshape(height, width) % 3 == 0
    assert apply_effect(image, name, generator(0, name), mask=mask).shape == image.shape


@pytest.fixture(scope="module")
def large_scenes():
    """Scenes of 480 x 360 with the texture of a photograph, which a smaller copy of them loses."""
    world, rng = PlantedWorld(count=3, size=(480, 360), salient=True), np.random.default_rng(0)
    leaves = [cv2.resize(rng.normal(0, 30, (120, 160, 3)), (480, 360)) for _ in range(3)]
    images = [np.clip(world[i].image + leaves[i], 0, 255).astype(np.uint8) for i in range(3)]
    return [(image, world[i].salient > 0) for i, image in enumerate(images)]


@pytest.mark.parametrize("name", NAMES)
def test_the_size_of_the_image_does_not_matter(large_scenes, name):
    # The effect on a smaller copy, against a smaller copy of the effect.
    for image, mask in large_scenes:
        small = cv2.resize(image, (160, 120), interpolation=cv2.INTER_AREA)
        small_mask = mask.reshape(120, 3, 160, 3).mean((1, 3)) > 0.5
        wanted = cv2.resize(
            apply_effect(image, name, generator(0, name), mask=mask), (160, 120), interpolation=cv2.INTER_AREA
        ).astype(float)
        found = apply_effect(small, name, generator(0, name), mask=small_mask).astype(float)
        changed = np.abs(wanted - small).mean()
        assert abs(np.abs(found - small).mean() - changed) <= 0.05 * changed + 1
        assert np.abs(found - wanted).mean() <= 0.1 * changed + 1


def colourfulness(image):
    return float(cv2.cvtColor(image, cv2.COLOR_RGB2HSV)[..., 1].mean())


def sharpness(image):
    return float(cv2.Laplacian(to_grey(image), cv2.CV_32F).var())


def test_each_look_does_what_it_says(scenes):
    for scene in scenes:
        plain = scene.image
        seen = {name: dressed(scene, name) for name in NAMES}
        brightness = {name: float(to_grey(image).mean()) for name, image in seen.items()}
        assert brightness["dusk"] < 0.75 * brightness["plain"] and brightness["snow"] > brightness["plain"]
        assert brightness["snow"] > 150 and to_grey(seen["snow"][-8:]).mean() > 220
        assert seen["snow"][..., 2].mean() > seen["snow"][..., 0].mean()
        assert to_grey(seen["fog"]).std() < 0.6 * to_grey(plain).std()
        assert colourfulness(seen["fog"]) < 0.6 * colourfulness(plain)
        warm = {name: float(image[..., 0].mean() - image[..., 2].mean()) for name, image in seen.items()}
        assert warm["autumn"] > warm["plain"] + 30 and warm["dusk"] > warm["plain"]
        assert colourfulness(seen["sketch"]) < 15 and brightness["sketch"] > 170
        assert (seen["grey"][..., 0] == seen["grey"][..., 2]).all()
        assert sharpness(seen["blur"]) < 0.1 * sharpness(plain)
        far = scene.salient == 0
        red, green, blue = (float(seen["grass"][..., channel][far].mean()) for channel in range(3))
        assert green > red + 20 and green > blue + 40
        red, green, blue = (float(seen["water"][..., channel][far].mean()) for channel in range(3))
        assert blue > green > red


@pytest.mark.parametrize("name", sorted(MASKED_EFFECTS))
def test_backdrops_keep_the_inside_of_the_object(scenes, name):
    for scene in scenes:
        inside = cv2.erode((scene.salient > 0).astype(np.uint8), np.ones((7, 7), np.uint8)) > 0
        assert inside.any() and (dressed(scene, name)[inside] == scene.image[inside]).all()


def test_strength_runs_from_the_image_to_the_look(scenes):
    image = scenes[0].image
    whole = dressed(scenes[0], "fog").astype(float)
    for strength in (0.0, 0.3, 1.0):
        expected = image * (1 - strength) + whole * strength
        assert np.abs(dressed(scenes[0], "fog", strength=strength) - expected).max() <= 0.51


def test_errors_name_what_there_is(scenes):
    with pytest.raises(OptionError, match="no context 'rain'"):
        dressed(scenes[0], "rain")
    with pytest.raises(OptionError, match="needs a mask"):
        apply_effect(scenes[0].image, "grass", generator(0))
    with pytest.raises(OptionError, match=r"there is \(2, 2\)"):
        apply_effect(scenes[0].image, "water", generator(0), mask=np.ones((2, 2), bool))


def test_noise_and_mixing():
    noise = smooth_noise((30, 50), 4, np.random.default_rng(0))
    assert noise.min() == 0 and noise.max() == 1 and np.abs(np.diff(noise, axis=0)).max() < 0.4
    share = np.array([[0.0, 1.0]], np.float32)
    assert blend(np.zeros((1, 2, 3)), np.full((1, 2, 3), 8.0), share)[0, :, 0].tolist() == [0, 8]
