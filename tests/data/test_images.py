from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import PIL.Image
import pytest

from hardlook.data import images
from hardlook.data.images import find_image, read_image
from hardlook.errors import DataError

_COLOURS = np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)


def _smooth() -> np.ndarray:
    return cv2.GaussianBlur(cv2.resize(_COLOURS, (90, 60)), (0, 0), 3)


@pytest.mark.parametrize("suffix", ["png", "bmp", "webp", "tif", "jpg"])
def test_equals_pillow_for_every_format(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.{suffix}"
    PIL.Image.fromarray(_smooth()).save(path)
    image = read_image(path)
    assert image.dtype == np.uint8
    assert np.array_equal(image, np.asarray(PIL.Image.open(path).convert("RGB")))


def test_grey_alpha_palette_and_one_bit_become_rgb(tmp_path: Path) -> None:
    picture = PIL.Image.fromarray(_COLOURS)
    for mode in ("L", "LA", "P", "1", "RGBA", "CMYK"):
        path = tmp_path / ("a.tif" if mode == "CMYK" else "a.png")
        converted = picture.convert(mode)
        converted.save(path)
        assert np.array_equal(read_image(path), np.asarray(converted.convert("RGB"))), mode


def test_alpha_is_dropped_not_blended(tmp_path: Path) -> None:
    PIL.Image.fromarray(np.dstack([_COLOURS, np.zeros((20, 30), np.uint8)])).save(tmp_path / "a.png")
    assert np.array_equal(read_image(tmp_path / "a.png"), _COLOURS)


def test_sixteen_bits_keep_the_high_byte(tmp_path: Path) -> None:
    wide = np.array([[0, 255, 256, 65535]], np.uint16)
    cv2.imwrite(str(tmp_path / "grey.png"), wide)
    assert read_image(tmp_path / "grey.png")[0, :, 0].tolist() == [0, 0, 1, 255]
    cv2.imwrite(str(tmp_path / "colour.png"), np.dstack([wide, wide, wide]))
    assert read_image(tmp_path / "colour.png")[0, [0, 3], 1].tolist() == [0, 255]


def test_a_large_image_is_converted_in_strips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "_STRIP_PIXELS", 100)  # three rows of 30 pixels
    PIL.Image.fromarray(np.dstack([_COLOURS, _COLOURS[..., 0]])).save(tmp_path / "alpha.png")
    assert np.array_equal(read_image(tmp_path / "alpha.png"), _COLOURS)
    wide = np.random.default_rng(1).integers(0, 1 << 16, (20, 30)).astype(np.uint16)
    PIL.Image.fromarray(wide).save(tmp_path / "wide.png")
    assert np.array_equal(read_image(tmp_path / "wide.png"), np.stack([wide >> 8] * 3, axis=-1))


@pytest.mark.parametrize("value", [-1, 1 << 16])
def test_whole_numbers_beyond_16_bits_are_an_error(tmp_path: Path, value: int) -> None:
    PIL.Image.fromarray(np.array([[0, value]], np.int32)).save(tmp_path / "a.tif")
    with pytest.raises(DataError, match="beyond 16 bits"):
        read_image(tmp_path / "a.tif")


def test_orientation_notes_are_not_followed(tmp_path: Path) -> None:
    exif = PIL.Image.Exif()
    exif[0x0112] = 6
    PIL.Image.fromarray(_smooth()).save(tmp_path / "turned.jpg", exif=exif)
    assert read_image(tmp_path / "turned.jpg").shape == (60, 90, 3)


@pytest.mark.parametrize("suffix", ["jpg", "png"])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.97])
def test_a_cut_off_file_is_an_error_that_names_it(tmp_path: Path, suffix: str, share: float) -> None:
    path = tmp_path / f"cut.{suffix}"
    PIL.Image.fromarray(_smooth()).save(path)
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    with pytest.raises(DataError) as caught:
        read_image(path)
    assert caught.value.file == str(path)
    assert caught.value.remedy


def test_damage_in_the_middle_of_a_png_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "damaged.png"
    PIL.Image.fromarray(_COLOURS).save(path)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(bytes(data))
    with pytest.raises(DataError, match="damaged"):
        read_image(path)


def test_bytes_after_a_jpegs_end_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "tail.jpg"
    PIL.Image.fromarray(_smooth()).save(path)
    whole = read_image(path)
    path.write_bytes(path.read_bytes() + b"appended by a camera" * 10)
    assert np.array_equal(read_image(path), whole)


def test_missing_empty_foreign_and_floating_files_are_errors(tmp_path: Path) -> None:
    (tmp_path / "empty.jpg").write_bytes(b"")
    (tmp_path / "text.jpg").write_text("<html>404</html>")
    PIL.Image.fromarray(np.ones((3, 3), np.float32)).save(tmp_path / "float.tif")
    for name, words in (
        ("none.jpg", "does not exist"),
        ("empty.jpg", "is empty"),
        ("text.jpg", "not an image"),
        ("float.tif", "floating-point"),
    ):
        with pytest.raises(DataError, match=words) as caught:
            read_image(tmp_path / name)
        assert name in str(caught.value)


def test_find_image_tries_suffixes_and_lists_them(tmp_path: Path) -> None:
    for name in ("a.png", "b.JPG", "c.txt"):
        (tmp_path / name).write_bytes(b"x")
    assert find_image(tmp_path, "a").name == "a.png"
    assert find_image(tmp_path, "b").name == "b.JPG"
    with pytest.raises(DataError, match="no image 'c'") as caught:
        find_image(tmp_path, "c")
    assert ".jpeg" in str(caught.value.remedy)
    with pytest.raises(DataError, match="folder of images does not exist"):
        find_image(tmp_path / "nowhere", "a")


@pytest.mark.real
def test_real_jpegs_equal_pillow(shared_data: Path) -> None:
    for path in sorted((shared_data / "data" / "coco100" / "images").iterdir())[:20]:
        assert np.array_equal(read_image(path), np.asarray(PIL.Image.open(path).convert("RGB")))


def test_two_files_of_one_stem_are_an_error_that_names_both(tmp_path: Path) -> None:
    for name in ("a.png", "a.jpg", "b.PNG"):
        PIL.Image.new("RGB", (2, 2)).save(tmp_path / name)
    with pytest.raises(DataError, match=r"two images are called 'a': a\.jpg and a\.png") as caught:
        find_image(tmp_path, "a")
    assert "keep one" in str(caught.value.remedy)
    assert find_image(tmp_path, "b").name == "b.PNG"
