from __future__ import annotations

import struct
import zlib
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


def write_png(path: Path, labels: np.ndarray, bits: int, colour: int = 0) -> None:
    """A PNG as its specification lays it out: rows of samples of `bits` bits, most significant bit first."""
    height, width = labels.shape[:2]
    samples = labels.reshape(height, -1).astype(">u2")
    if bits == 16:
        rows = samples.view(np.uint8)
    else:
        rows = np.packbits((samples[..., None] >> np.arange(bits - 1, -1, -1) & 1).reshape(height, -1).astype(bool), 1)
    lines = b"".join(b"\0" + row.tobytes() for row in rows)
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)),
        (b"IDAT", zlib.compress(lines)), (b"IEND", b""),
    ]  # fmt: skip
    framed = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(framed))


@pytest.mark.parametrize("bits", [1, 2, 4, 8, 16])
def test_grey_pngs_of_any_depth_hold_the_numbers_that_were_written(bits: int, tmp_path: Path) -> None:
    labels = np.arange(12).reshape(2, 6) % 2 ** min(bits, 3)
    write_png(tmp_path / "a.png", labels, bits)
    assert np.array_equal(read_label_map(tmp_path / "a.png"), labels)


def test_channels_of_16_bits_are_refused(tmp_path: Path) -> None:
    write_png(tmp_path / "a.png", np.dstack([_LABELS] * 3), 16, colour=2)
    with pytest.raises(DataError, match="16 bits in each of several channels"):
        read_label_map(tmp_path / "a.png")


@pytest.mark.parametrize("kind", ["JPEG", "WEBP"])
def test_formats_that_change_numbers_are_refused_whatever_the_suffix(kind: str, tmp_path: Path) -> None:
    PIL.Image.fromarray(_LABELS).save(tmp_path / "a.png", kind)
    with pytest.raises(DataError, match=f"stored as {kind}, which changes the numbers"):
        read_label_map(tmp_path / "a.png")


def test_a_map_without_pixels_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", _LABELS[:0])
    with pytest.raises(DataError, match=r"a label map of shape \(0, 3\)"):
        read_label_map(tmp_path / "a.npy")
