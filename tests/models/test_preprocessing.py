"""The paper's preprocessing is a bilinear resize to 96 x 96 that averages, and the 84 x 84 in the middle."""

import numpy as np
import PIL.Image
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hardlook.models.preprocessing import preprocess_image


def make_weights(source, target):
    """(target, source): each pixel a triangle of the size of an output pixel, at least of an input pixel."""
    scale = source / target
    reach = max(scale, 1.0)
    centres = (np.arange(target) + 0.5) * scale
    distance = np.abs(np.arange(source) + 0.5 - centres[:, None]) / reach
    weights = np.clip(1 - distance, 0, None)
    return weights / weights.sum(1, keepdims=True)


def resize_plainly(image, side):
    down = np.einsum("ah,hwc->awc", make_weights(image.shape[0], side), image.astype(float))
    return np.einsum("bw,awc->abc", make_weights(image.shape[1], side), down)


@settings(max_examples=30, deadline=None)
@given(height=st.integers(1, 260), width=st.integers(1, 260), seed=st.integers(0, 9))
def test_it_is_the_plain_bilinear_resize_and_the_centre(height, width, seed):
    image = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    found = preprocess_image(image, "paper")
    assert found.shape == (84, 84, 3) and found.dtype == np.uint8
    # Two roundings, after each direction.
    assert np.abs(found - resize_plainly(image, 96)[6:90, 6:90]).max() <= 1.5


def test_an_image_of_96_pixels_is_only_cropped():
    image = np.random.default_rng(0).integers(0, 256, (96, 96, 3), dtype=np.uint8)
    assert (preprocess_image(image, "paper") == image[6:90, 6:90]).all()
    assert preprocess_image(image, "encoder") is image


@pytest.mark.parametrize("read_only", [False, True])
def test_it_is_what_pillow_does_for_torchvision(read_only):
    # torchvision.transforms.Compose([Resize((96, 96)), CenterCrop(84)]) on a Pillow image calls these two.
    image = np.random.default_rng(1).integers(0, 256, (333, 500, 3), dtype=np.uint8)
    image.flags.writeable = not read_only
    whole = PIL.Image.fromarray(image).resize((96, 96), PIL.Image.Resampling.BILINEAR)
    assert (preprocess_image(image[:, :], "paper") == np.asarray(whole.crop((6, 6, 90, 90)))).all()
