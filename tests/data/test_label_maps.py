from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import PIL.Image
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hardlook.data.label_maps import read_label_map
from hardlook.errors import DataError

_LABELS = np.array([[0, 1, 2], [255, 7, 128]], np.uint8)


@settings(max_examples=25, deadline=None)
@given(labels=arrays(np.uint16, st.tuples(st.integers(1, 9), st.integers(1, 9))))
def test_png_and_numpy_give_back_what_was_stored(labels: np.ndarray, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("labels")
    cv2.imwrite(str(folder / "a.png"), labels)
    np.save(folder / "a.npy", labels)
    np.savez_compressed(folder / "a.npz", labels=labels)
    for name in ("a.png", "a.npy", "a.npz"):
        read = read_label_map(folder / name)
        assert read.dtype == np.int32
        assert np.array_equal(read, labels), name


def test_palette_indices_not_colours(tmp_path: Path) -> None:
    picture = PIL.Image.fromarray(_LABELS)
    picture.putpalette([(7 * i) % 256 for i in range(768)])
    picture.save(tmp_path / "a.png")
    assert np.array_equal(read_label_map(tmp_path / "a.png"), _LABELS)


def test_one_bit_and_equal_channels(tmp_path: Path) -> None:
    PIL.Image.fromarray(_LABELS > 5).save(tmp_path / "bits.png")
    assert np.array_equal(read_label_map(tmp_path / "bits.png"), _LABELS > 5)
    PIL.Image.fromarray(np.dstack([_LABELS] * 3)).save(tmp_path / "three.png")
    assert np.array_equal(read_label_map(tmp_path / "three.png"), _LABELS)


def test_colours_are_refused_with_an_explanation(tmp_path: Path) -> None:
    PIL.Image.fromarray(np.dstack([_LABELS, _LABELS, 255 - _LABELS])).save(tmp_path / "a.png")
    with pytest.raises(DataError, match="3 channels") as caught:
        read_label_map(tmp_path / "a.png")
    assert "palette" in str(caught.value.remedy)


def test_negative_labels_survive_and_odd_arrays_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "negative.npy", np.array([[-1, 4]], np.int64))
    assert read_label_map(tmp_path / "negative.npy").tolist() == [[-1, 4]]
    np.save(tmp_path / "float.npy", np.ones((2, 2)))
    np.save(tmp_path / "cube.npy", np.ones((2, 2, 2), np.uint8))
    np.save(tmp_path / "huge.npy", np.array([[2**40]]))
    np.savez(tmp_path / "two.npz", a=_LABELS, b=_LABELS)
    (tmp_path / "text.npy").write_text("no array")
    (tmp_path / "text.npz").write_text("no archive")
    np.save(tmp_path / "pickled.npy", np.array([{"a": 1}], dtype=object))
    for name, words in (
        ("float.npy", "type float64"), ("cube.npy", "shape"), ("huge.npy", "labels reach"), ("two.npz", "2 arrays"),
        ("text.npy", "NumPy"), ("text.npz", "NumPy"), ("pickled.npy", "NumPy"), ("none.png", "does not exist"),
    ):  # fmt: skip
        with pytest.raises(DataError, match=words) as caught:
            read_label_map(tmp_path / name)
        assert name in str(caught.value)


def test_another_size_than_the_image_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", _LABELS)
    assert read_label_map(tmp_path / "a.npy", size=(3, 2)).shape == (2, 3)
    with pytest.raises(DataError, match="is 3x2, its image 2x3"):
        read_label_map(tmp_path / "a.npy", size=(2, 3))
