from __future__ import annotations

from pathlib import Path

import numpy as np
import PIL.Image
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hardlook.data.previous_masks import PreviousMasks, compute_error_mask
from hardlook.errors import DataError

MASKS = arrays(bool, (3, 5))

TRUTH = np.array([[True, True, False]])


def _save(path: Path, values: list) -> None:
    path.parent.mkdir(exist_ok=True, parents=True)
    PIL.Image.fromarray(np.array(values, np.uint8)).save(path)


@given(MASKS, MASKS, st.sampled_from(["first", "fn", "fp"]))
def test_errors_pixel_by_pixel(truth: np.ndarray, previous: np.ndarray, click_type: str) -> None:
    found = compute_error_mask(truth, previous, click_type)
    for row, column in np.ndindex(truth.shape):
        is_object, was_found = bool(truth[row, column]), bool(previous[row, column])
        wanted = {"first": is_object, "fn": is_object and not was_found, "fp": was_found and not is_object}
        assert found[row, column] == wanted[click_type]


@pytest.mark.parametrize("high", [1, 255])
def test_masks_are_found_by_stem(tmp_path: Path, high: int) -> None:
    _save(tmp_path / "eu.a-1_mivos_fn.png", [[high, 0, high]])
    masks = PreviousMasks(tmp_path)
    assert masks.read("eu.a-1_mivos_fn", (3, 1)).tolist() == [[True, False, True]]
    assert masks.error("eu.a-1_mivos_fn", TRUTH, "fn").tolist() == [[False, True, False]]
    assert masks.error("eu.a-1", TRUTH, "first").tolist() == TRUTH.tolist()
    assert masks.missing(["b", "eu.a-1_mivos_fn", "a"]) == ("b", "a")


def test_half_of_the_largest_value_is_background(tmp_path: Path) -> None:
    _save(tmp_path / "a_mivos_fn.png", [[0, 1, 2]])
    _save(tmp_path / "b_mivos_fn.png", [[100, 101, 200]])
    masks = PreviousMasks(tmp_path)
    assert [masks.read(f"{name}_mivos_fn").tolist() for name in "ab"] == [[[False, False, True]], [[False, True, True]]]


def test_a_dataset_s_own_folder_goes_first(tmp_path: Path) -> None:
    _save(tmp_path / "a_mivos_fp.png", [[0, 0, 255]])
    _save(tmp_path / "GrabCut" / "a_mivos_fp.png", [[255, 0, 0]])
    masks = PreviousMasks(tmp_path)
    assert masks.read("a_mivos_fp", dataset="grabcut").tolist() == [[True, False, False]]
    assert masks.read("a_mivos_fp", dataset="berkeley").tolist() == [[False, False, True]]
    _save(tmp_path / "b_mivos_fp.png", [[0, 255, 0]])
    assert masks.read("b_mivos_fp", dataset="grabcut").tolist() == [[False, True, False]]
    assert masks.missing(["a_mivos_fp", "b_mivos_fp"], "grabcut") == ()


def test_a_mask_of_a_limited_image_is_made_smaller(tmp_path: Path) -> None:
    stored = np.zeros((2, 4096), np.uint8)
    stored[:, :1000] = 255
    _save(tmp_path / "a_mivos_fn.png", stored.tolist())
    assert PreviousMasks(tmp_path).read("a_mivos_fn", (2048, 1)).sum() == 500


def test_what_does_not_fit_is_named(tmp_path: Path) -> None:
    _save(tmp_path / "a_mivos_fp.png", [[255, 0, 0]])
    _save(tmp_path / "a_mivos_fn.png", [[0, 0, 0]])
    masks = PreviousMasks(tmp_path)
    with pytest.raises(DataError, match="no error of type fp") as caught:
        masks.error("a_mivos_fp", TRUTH, "fp")
    assert caught.value.unit == "a_mivos_fp"
    # A method that found nothing leaves the whole object as its error.
    assert masks.error("a_mivos_fn", TRUTH, "fn").tolist() == TRUTH.tolist()
    with pytest.raises(DataError, match="previous mask is 3x1, the truth 2x1"):
        masks.read("a_mivos_fp", (2, 1))
    with pytest.raises(DataError, match="no image 'b_mivos_fp'"):
        masks.read("b_mivos_fp")
    with pytest.raises(DataError, match="no folder of previous masks"):
        PreviousMasks(tmp_path / "none").read("a")
    with pytest.raises(DataError, match="click type 'second'"):
        compute_error_mask(TRUTH, TRUTH, "second")


def test_what_jpeg_leaves_around_an_edge_is_not_the_mask(tmp_path: Path) -> None:
    truth = np.zeros((24, 24), bool)
    truth[5:19, 3:13] = True
    path = tmp_path / "a_mivos_fn.jpg"
    PIL.Image.fromarray(truth.astype(np.uint8) * 255).save(path, quality=60)
    # The file does have such noise: pixels that are not 0 around the object.
    assert (np.asarray(PIL.Image.open(path))[~truth] > 0).any()
    assert np.array_equal(PreviousMasks(tmp_path).read("a_mivos_fn", (24, 24)), truth)


def test_two_masks_of_one_stem_are_an_error_that_names_both(tmp_path: Path) -> None:
    _save(tmp_path / "a_mivos_fp.png", [[0, 0, 255]])
    for name in ("a_mivos_fp.png", "a_mivos_fp.bmp"):
        _save(tmp_path / "GrabCut" / name, [[255, 0, 0]])
    masks = PreviousMasks(tmp_path)
    with pytest.raises(DataError, match=r"a_mivos_fp\.png and a_mivos_fp\.bmp"):
        masks.read("a_mivos_fp", dataset="grabcut")
    assert masks.read("a_mivos_fp").tolist() == [[False, False, True]]
