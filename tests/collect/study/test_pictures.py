"""Pictures of a study: exact where they must be, stored once, with names that tell nothing."""

import re

import numpy as np
import PIL.Image
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hardlook.collect.study.pictures import read_mask, write_picture, write_previous_mask
from hardlook.data.previous_masks import PreviousMasks
from hardlook.errors import DataError


def pixels(height, width, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


@pytest.mark.parametrize(("kind", "shape"), [("images", (30, 40)), ("targets", (30, 40)), ("targets", (300, 400))])
def test_small_images_and_all_targets_keep_every_pixel(tmp_path, kind, shape):
    image = pixels(*shape)
    name = write_picture(tmp_path, kind, image)
    assert re.fullmatch(kind + r"/[0-9a-f]{32}\.png", name)
    assert np.array_equal(np.asarray(PIL.Image.open(tmp_path / name)), image)


def test_a_large_image_is_a_jpeg_with_full_colour_resolution_and_no_notes(tmp_path):
    smooth = np.indices((300, 400)).sum(axis=0)[..., None] * np.array([1, 0, 0]) // 3
    name = write_picture(tmp_path, "images", smooth.astype(np.uint8))
    with PIL.Image.open(tmp_path / name) as stored:
        assert (stored.format, stored.size, len(stored.getexif())) == ("JPEG", (400, 300), 0)
        # Every component is sampled once in each direction: 4:4:4.
        assert {layer[1:3] for layer in stored.layer} == {(1, 1)}
        assert np.abs(np.asarray(stored).astype(int) - smooth).max() <= 6
    assert write_picture(tmp_path, "images", smooth.astype(np.uint8), lossless=True).endswith(".png")


@given(mask=arrays(np.bool_, st.tuples(st.integers(1, 20), st.integers(1, 20))))
def test_masks_come_back(tmp_path_factory, mask):
    folder = tmp_path_factory.mktemp("masks")
    path = folder / write_picture(folder, "masks", mask)
    assert np.array_equal(read_mask(path, (mask.shape[1], mask.shape[0])), mask)
    shown = np.asarray(PIL.Image.open(path).convert("L"))
    assert np.array_equal(shown, np.where(mask, 255, 0))


def test_equal_pictures_are_written_once(tmp_path):
    first = write_picture(tmp_path, "images", pixels(20, 20))
    (tmp_path / first).write_bytes(b"kept")
    assert write_picture(tmp_path, "images", pixels(20, 20)) == first
    assert (tmp_path / first).read_bytes() == b"kept"
    assert write_picture(tmp_path, "images", pixels(20, 20, seed=1)) != first
    # The same bytes in another shape are another picture.
    assert write_picture(tmp_path, "images", pixels(20, 20).reshape(10, 40, 3)) != first


@pytest.mark.parametrize(
    ("kind", "array"),
    [
        ("secrets", np.zeros((2, 2, 3), np.uint8)),
        ("images", np.zeros((2, 2, 3), float)),
        ("images", np.zeros((0, 2, 3), np.uint8)),
        ("images", np.zeros(4, np.uint8)),
    ],
)
def test_what_is_no_picture(tmp_path, kind, array):
    with pytest.raises(DataError, match="no picture of kind"):
        write_picture(tmp_path, kind, array)


def test_a_mask_that_is_no_picture(tmp_path):
    (tmp_path / "m.png").write_bytes(b"nonsense")
    with pytest.raises(DataError, match="cannot be decoded"):
        read_mask(tmp_path / "m.png")


def test_previous_masks_are_read_by_the_rest_of_the_project(tmp_path):
    mask = np.random.default_rng(0).random((9, 7)) < 0.5
    write_previous_mask(tmp_path, "grabcut", "llama_mivos_fn", mask)
    found = PreviousMasks(tmp_path / "previous-masks").read("llama_mivos_fn", (7, 9), "GrabCut")
    assert np.array_equal(found, mask)
    for name in ("../x", "a/b", "a\\b", "", ".."):
        with pytest.raises(DataError, match="not a name of a file"):
            write_previous_mask(tmp_path, "grabcut", name, mask)
