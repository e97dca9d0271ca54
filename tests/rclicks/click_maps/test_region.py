"""Masks of every kind: which pixels are the object, which are ignored, and when one must be chosen."""

import numpy as np
import pytest
from PIL import Image

from hardlook.errors import DataError
from hardlook.rclicks.click_maps.region import read_object, read_previous_mask

COLOURS = [0, 0, 0, 128, 0, 0, 0, 128, 0] + [0] * 3 * 252 + [224, 224, 192]

SIZE = (30, 20)


def values():
    """Two objects, 1 and 2, with a rim of 255 around the first."""
    found = np.zeros((20, 30), np.uint8)
    found[3:13, 3:13] = 255
    found[5:11, 5:11] = 1
    found[5:15, 18:26] = 2
    return found


def palette(path, stored, colours=COLOURS):
    image = Image.fromarray(stored).convert("L")
    image = Image.frombytes("P", image.size, image.tobytes())
    image.putpalette(colours)
    image.save(path)
    assert Image.open(path).mode == "P"
    return path


def plain(path, stored, **options):
    Image.fromarray(stored).save(path, **options)
    return path


def test_a_palette_with_several_objects_asks_for_one(tmp_path):
    path = palette(tmp_path / "a.png", values())
    with pytest.raises(DataError, match=r"several objects: 1, 2 \(255 = ignore\)") as caught:
        read_object(path, None, size=SIZE)
    assert "--object" in caught.value.remedy and caught.value.file == str(path)
    target = read_object(path, 2, size=SIZE)
    assert np.array_equal(target.mask, values() == 2) and np.array_equal(target.ignore, values() == 255)
    for wrong in (3, 255):
        with pytest.raises(DataError, match=rf"no object {wrong} in the mask: it has 1, 2 \(255 = ignore\)"):
            read_object(path, wrong, size=SIZE)


def test_the_only_object_of_a_palette_needs_no_number(tmp_path):
    alone = np.where(values() == 2, 0, values()).astype(np.uint8)
    target = read_object(palette(tmp_path / "a.png", alone), None, size=SIZE)
    assert np.array_equal(target.mask, alone == 1) and np.array_equal(target.ignore, alone == 255)
    # Where there is nothing but 255, it is no rim.
    white = np.where(values() == 2, 255, 0).astype(np.uint8)
    path = palette(tmp_path / "b.png", white)
    for number in (None, 255):
        target = read_object(path, number, size=SIZE)
        assert np.array_equal(target.mask, white == 255) and not target.ignore.any()


def test_a_palette_of_greys_is_a_grey_image(tmp_path):
    stored = np.where(values() == 2, 255, np.where(values() == 1, 128, 0)).astype(np.uint8)
    # A palette the other way round: what counts is how bright a pixel is.
    path = palette(tmp_path / "a.png", 255 - stored, [grey for grey in range(255, -1, -1) for _ in range(3)])
    target = read_object(path, None, size=SIZE)
    assert np.array_equal(target.mask, stored == 255) and np.array_equal(target.ignore, stored == 128)


@pytest.mark.parametrize("kind", ["grey", "wide", "npy"])
def test_integers_with_several_objects_ask_for_one(tmp_path, kind):
    stored = np.where(values() == 255, 0, values()).astype(np.uint16 if kind == "wide" else np.uint8)
    stored = stored * 300 if kind == "wide" else stored
    path = tmp_path / ("a.npy" if kind == "npy" else "a.png")
    np.save(path, stored) if kind == "npy" else plain(path, stored)
    one, two = np.unique(stored)[1:].tolist()
    with pytest.raises(DataError, match=rf"several objects: {one}, {two}\n"):
        read_object(path, None, size=SIZE)
    target = read_object(path, two, size=SIZE)
    assert np.array_equal(target.mask, stored == two) and not target.ignore.any()
    with pytest.raises(DataError, match=f"no object 9 in the mask: it has {one}, {two}"):
        read_object(path, 9, size=SIZE)


def test_grey_labels_beside_255_are_no_brightness(tmp_path):
    path = plain(tmp_path / "a.png", values())
    with pytest.raises(DataError, match="several objects: 1, 2, 255"):
        read_object(path, None, size=SIZE)
    # In a grey file 255 may be an object like any other.
    assert np.array_equal(read_object(path, 255, size=SIZE).mask, values() == 255)


@pytest.mark.parametrize(("high", "ignored"), [(255, 128), (200, 128), (1, 0), (128, 0)])
def test_a_grey_mask_has_one_object(tmp_path, high, ignored):
    stored = np.where(values() == 2, high, np.where(values() == 1, ignored, 0)).astype(np.uint8)
    target = read_object(plain(tmp_path / "a.png", stored), None, size=SIZE)
    assert np.array_equal(target.mask, stored == high)
    assert np.array_equal(target.ignore, (values() == 1) & (ignored > 0))


def test_soft_edges_and_jpeg_are_one_object(tmp_path):
    sharp = Image.fromarray((values() == 2).astype(np.uint8) * 255)
    soft = np.asarray(sharp.resize((23, 15), Image.Resampling.BILINEAR).resize(SIZE, Image.Resampling.BILINEAR))
    assert len(np.unique(soft)) > 5
    assert np.array_equal(read_object(plain(tmp_path / "a.png", soft), None, size=SIZE).mask, soft > 128)
    path = plain(tmp_path / "a.jpg", np.asarray(sharp), quality=50)
    assert np.array_equal(read_object(path, None, size=SIZE).mask, values() == 2)


def test_colours_without_a_palette_are_one_object(tmp_path):
    stored = np.zeros((20, 30, 3), np.uint8)
    stored[values() == 1] = (255, 255, 0)
    stored[values() == 2] = (0, 0, 200)
    target = read_object(plain(tmp_path / "a.png", stored), None, size=SIZE)
    assert np.array_equal(target.mask, (values() == 1) | (values() == 2))


def test_an_answer_may_be_empty_and_a_target_not(tmp_path):
    path = plain(tmp_path / "a.png", np.zeros((20, 30), np.uint8))
    assert read_previous_mask(path, size=SIZE).shape == (20, 30) and not read_previous_mask(path, size=SIZE).any()
    with pytest.raises(DataError, match="the mask is empty"):
        read_object(path, None, size=SIZE)
    with pytest.raises(DataError, match="the mask is 30x20, its image 20x30"):
        read_previous_mask(path, size=(20, 30))
    with pytest.raises(DataError, match="no object 1 in the mask: it has none"):
        read_object(path, 1, size=SIZE)
    with pytest.raises(DataError, match="the previous mask has several objects"):
        read_previous_mask(palette(tmp_path / "b.png", values()), size=SIZE)


@pytest.mark.real
def test_an_object_of_voc(shared_data):
    path = shared_data / "data" / "VOCdevkit" / "VOC2012" / "SegmentationObject" / "2007_000063.png"
    stored = np.array(Image.open(path))
    size = (stored.shape[1], stored.shape[0])
    with pytest.raises(DataError, match=r"several objects: 1, 2 \(255 = ignore\)"):
        read_object(path, None, size=size)
    target = read_object(path, 2, size=size)
    assert np.array_equal(target.mask, stored == 2) and np.array_equal(target.ignore, stored == 255)
