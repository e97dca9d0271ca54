"""Saliency masks are cached by image content and model identity, and damaged files are replaced."""

import numpy as np
import pytest

from hardlook.errors import ModelError
from hardlook.toss.saliency_cache import SaliencyMaskCache, default_mask_folder


class Brightness:
    """Salient is what is bright; counts the images it is asked for."""

    def __init__(self):
        self.asked = 0

    def saliency(self, images):
        self.asked += len(images)
        return [image.mean(axis=2).astype(np.float32) / 255 for image in images]


@pytest.fixture
def images():
    return list(np.random.default_rng(0).integers(0, 256, (4, 13, 21, 3), dtype=np.uint8))


def test_masks_are_the_map_above_a_half_and_asked_for_once(tmp_path, images):
    model = Brightness()
    seen = SaliencyMaskCache(model, "bright", tmp_path)
    first = seen.masks(images)
    for mask, image in zip(first, images, strict=True):
        assert mask.dtype == bool and (mask == (image.mean(axis=2).astype(np.float32) / 255 > 0.5)).all()
    other_process = SaliencyMaskCache(model, "bright", tmp_path)
    again = other_process.masks([images[2], images[0], images[2]])
    assert (again[0] == first[2]).all() and (again[1] == first[0]).all() and (again[2] == first[2]).all()
    assert model.asked == 4 and (seen.computed, other_process.found) == (4, 3)


def test_another_model_and_a_changed_pixel_miss(tmp_path, images):
    model = Brightness()
    SaliencyMaskCache(model, "bright", tmp_path).masks(images[:1])
    SaliencyMaskCache(model, "other", tmp_path).masks(images[:1])
    changed = images[0].copy()
    changed[0, 0, 0] ^= 1
    SaliencyMaskCache(model, "bright", tmp_path).masks([changed])
    assert model.asked == 3


def test_the_same_image_twice_in_a_call_is_asked_for_once(tmp_path, images):
    model = Brightness()
    SaliencyMaskCache(model, "bright", tmp_path).masks([images[0], images[0].copy()])
    assert model.asked == 1


def test_a_damaged_file_is_computed_again(tmp_path, images):
    model = Brightness()
    (mask,) = SaliencyMaskCache(model, "bright", tmp_path).masks(images[:1])
    (path,) = tmp_path.rglob("*.npz")
    path.write_bytes(path.read_bytes()[:40])
    (again,) = SaliencyMaskCache(model, "bright", tmp_path).masks(images[:1])
    assert model.asked == 2 and (again == mask).all()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (np.zeros((5, 5), np.float32), r"expected shape \(H, W\) = \(13, 21\), got \(5, 5\)"),
        (np.full((13, 21), np.nan, np.float32), "expected finite values, got nan"),
        (np.full((13, 21), 200, np.uint8), r"expected values in \[0, 1\], got 200"),
    ],
)
def test_a_map_of_another_size_or_range_or_without_numbers_is_refused(tmp_path, images, wrong, words):
    class Wrong:
        def saliency(self, images):
            return [wrong for _ in images]

    with pytest.raises(ModelError, match=words):
        SaliencyMaskCache(Wrong(), "wrong", tmp_path).masks(images[:1])
    assert not list(tmp_path.rglob("*.npz"))


def test_no_images_ask_nothing(tmp_path):
    assert SaliencyMaskCache(Brightness(), "bright", tmp_path).masks([]) == []


def test_the_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("HARDLOOK_CACHE", str(tmp_path))
    assert default_mask_folder() == tmp_path / "salient"
