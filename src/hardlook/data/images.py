"""Images as every model gets them: uint8 RGB, as stored in the file.

EXIF orientation is ignored: the published masks of VOC, COCO and the interactive datasets refer to the pixels as
stored, and a rotated image would no longer match them. Alpha is dropped, palettes are resolved, 16-bit values are
reduced to their high byte. An image of more than `HARDLOOK_MAX_PIXELS` (100 million) is refused by the size in its
header, before memory is taken for it. JPEG and plain PNG are decoded with OpenCV (1.4 and 1.8 times faster than Pillow
on VOC and COCO files, equal pixels), the rest with Pillow; OpenCV silently fills the missing part of a truncated file
with grey, so only files with a proper end are decoded with it.

>>> import tempfile
>>> from pathlib import Path
>>> folder = Path(tempfile.mkdtemp())
>>> PIL.Image.new("L", (4, 3), 90).save(folder / "grey.png")
>>> read_image(find_image(folder, "grey")).shape
(3, 4, 3)
"""

from __future__ import annotations

import io
from functools import cache
from pathlib import Path

import cv2
import numpy as np
import PIL.Image
from numpy.typing import NDArray

from hardlook.errors import DataError
from hardlook.reading import check_pixels, get_max_pixels, read_bytes, reading

SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff", ".gif", ".ppm")
_JPEG_START, _JPEG_END = b"\xff\xd8\xff", b"\xff\xd9"
_PNG_START, _PNG_END = b"\x89PNG\r\n\x1a\n", b"IEND\xaeB`\x82"
_PLAIN_RGB = b"\x08\x02"  # bit depth and colour type in a PNG's header
# Pillow reads more formats by their content, some of which run other programs (EPS runs Ghostscript).
_FORMATS = ("BMP", "DIB", "GIF", "JPEG", "JPEG2000", "PNG", "PPM", "TIFF", "WEBP")
_DAMAGED = "the image is cut off or damaged"
_STRIP_PIXELS = 1 << 22  # pixels that are converted at a time, so that a large image is not in memory three times


def read_image(path: Path | str) -> NDArray[np.uint8]:
    """The image (H, W, 3) uint8 RGB; a `DataError` that names the file when it is missing, truncated or no image."""
    return decode_image(read_bytes(path), path)


def decode_image(data: bytes, path: Path | str) -> NDArray[np.uint8]:
    """The image (H, W, 3) uint8 RGB from the content of a file; errors name `path`."""
    with reading(path, _DAMAGED, remedy="copy it again"):
        if _is_safe_for_opencv(data):
            decoded = decode_picture(data, cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION)
            if decoded is not None:
                return np.asarray(cv2.cvtColor(decoded, cv2.COLOR_BGR2RGB, dst=decoded), dtype=np.uint8)
        return to_rgb(open_with_pillow(path, data), path)


def decode_picture(data: bytes, flags: int) -> NDArray[np.uint8] | None:
    """The pixels of a PNG or JPEG by OpenCV, (H, W, 3) BGR or (H, W); None if it is damaged or of another format.

    A picture beyond `HARDLOOK_MAX_PIXELS` is a `DataError`.

    >>> decode_picture(b"no picture", cv2.IMREAD_GRAYSCALE)
    """
    if (size := read_stated_size(data)) is None or (data.startswith(_PNG_START) and not _has_whole_chunks(data)):
        return None
    check_pixels(*size)
    try:
        decoded = cv2.imdecode(np.frombuffer(data, np.uint8), flags)
    except cv2.error:
        return None
    return None if decoded is None else np.asarray(decoded)


def read_stated_size(data: bytes) -> tuple[int, int] | None:
    """Width and height in the header of a PNG or JPEG; None for other data."""
    if data.startswith(_PNG_START):
        return (int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")) if len(data) > 33 else None
    if not data.startswith(_JPEG_START):
        return None
    place = 2
    while place + 9 < len(data) and data[place] == 0xFF:
        marker = data[place + 1]
        if marker == 0xFF:  # a byte that fills up
            place += 1
        elif marker == 0x01 or 0xD0 <= marker <= 0xD8:  # markers without content
            place += 2
        elif 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):  # the frame's header
            return int.from_bytes(data[place + 7 : place + 9], "big"), int.from_bytes(
                data[place + 5 : place + 7], "big"
            )
        else:
            place += 2 + int.from_bytes(data[place + 2 : place + 4], "big")
    return None


def _has_whole_chunks(png: bytes) -> bool:
    """Whether every chunk ends within the file: OpenCV takes the memory that a chunk's length states, up to 4 GB."""
    place = len(_PNG_START)
    while place + 12 <= len(png):
        place += 12 + int.from_bytes(png[place : place + 4], "big")
    return place == len(png)


def find_image(folder: Path | str, stem: str) -> Path:
    """The image file `stem` with any image suffix in `folder`; two are a `DataError`, and none is one."""
    folder = Path(folder)
    if path := find_optional_image(folder, stem):
        return path
    what = f"no image {stem!r}" if folder.is_dir() else "the folder of images does not exist"
    remedy = f"tried {', '.join(SUFFIXES)} (and upper case); check the dataset's path and that it is unpacked"
    raise DataError(what, file=folder, unit=stem, remedy=remedy)


def find_optional_image(folder: Path, stem: str) -> Path | None:
    """The image file `stem` with any image suffix in `folder`, None without one; two are a `DataError`."""
    names = (folder / f"{stem}{suffix}" for suffix in (*SUFFIXES, *(suffix.upper() for suffix in SUFFIXES)))
    found = [path for path in names if is_file(path)]
    return _choose_only(found) if found else None


def index_images(folder: Path) -> dict[str, Path]:
    """All image files of a folder by stem, sorted; two of one stem are a `DataError`."""
    paths: dict[str, list[Path]] = {}
    for path in sorted(path for path in folder.iterdir() if is_image_name(path)):
        paths.setdefault(path.stem, []).append(path)
    return {stem: _choose_only(paths[stem]) for stem in sorted(paths)}


def _choose_only(paths: list[Path]) -> Path:
    first, *others = paths
    # Where file names have no case, a.png and a.PNG are one file.
    if second := next((path for path in others if not path.samefile(first)), None):
        what = f"two images are called {first.stem!r}: {first.name} and {second.name}"
        raise DataError(what, file=first.parent, unit=first.stem, remedy="keep one of them, or rename one")
    return first


def is_file(path: Path) -> bool:
    """Whether the file exists; False too for a name that no file can have, which `Path.is_file` raises for.

    >>> is_file(Path("a" * 5000))
    False
    """
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def is_image_name(path: Path) -> bool:
    """Whether the file has the suffix of an image."""
    return path.suffix.lower() in SUFFIXES


def open_with_pillow(path: Path | str, data: bytes) -> PIL.Image.Image:
    """The decoded image in the mode that it is stored in; `path` is for error messages."""
    with reading(path, _DAMAGED, remedy="copy it again"):
        if (size := read_stated_size(data)) is not None:
            check_pixels(*size)
        image = open_header(io.BytesIO(data))
        check_pixels(*image.size)
        image.load()
    return image


def open_header(file: Path | io.BytesIO) -> PIL.Image.Image:
    """The image with its size and mode, not decoded yet; a `DataError` if it is none."""
    _register_formats()
    if PIL.Image.MAX_IMAGE_PIXELS is not None and PIL.Image.MAX_IMAGE_PIXELS < (limit := get_max_pixels()):
        PIL.Image.MAX_IMAGE_PIXELS = limit  # beyond its own limit Pillow warns, and refuses twice as many
    try:
        return PIL.Image.open(file, formats=_FORMATS)
    except PIL.UnidentifiedImageError:
        remedy = "replace it by an image file, or leave it out of the list"
        raise DataError("the file is not an image", remedy=remedy) from None
    except PIL.Image.DecompressionBombError:
        what = f"the image has more than {2 * get_max_pixels() / 1e6:.0f} megapixels"
        remedy = "check the file; if its size is right, raise HARDLOOK_MAX_PIXELS"
        raise DataError(what, remedy=remedy) from None


@cache
def _register_formats() -> None:
    PIL.Image.init()


def _is_safe_for_opencv(data: bytes) -> bool:
    if data.startswith(_JPEG_START):
        return data[-64:].rstrip(b"\0\r\n").endswith(_JPEG_END)
    return data.startswith(_PNG_START) and data[24:26] == _PLAIN_RGB and data.endswith(_PNG_END)


def to_rgb(image: PIL.Image.Image, path: Path | str) -> NDArray[np.uint8]:
    """The pixels (H, W, 3) uint8 RGB of an image in any mode; `path` is for error messages."""
    if image.mode == "F":
        raise DataError("grey values are floating-point", file=path, remedy="store the image with 8 or 16 bits")
    width, height = image.size
    rows = max(1, _STRIP_PIXELS // max(1, width))
    if rows >= height:
        return _strip_to_rgb(image, path)
    rgb = np.empty((height, width, 3), np.uint8)
    for top in range(0, height, rows):
        bottom = min(height, top + rows)
        rgb[top:bottom] = _strip_to_rgb(image.crop((0, top, width, bottom)), path)
    return rgb


def _strip_to_rgb(image: PIL.Image.Image, path: Path | str) -> NDArray[np.uint8]:
    if not image.mode.startswith("I"):
        return np.array(image.convert("RGB"), dtype=np.uint8)
    wide = np.asarray(image).astype(np.int64)
    if wide.min(initial=0) < 0 or wide.max(initial=0) > 65535:
        raise DataError("grey values beyond 16 bits", file=path, remedy="store the image with 8 or 16 bits")
    return np.repeat((wide >> 8).astype(np.uint8)[..., None], 3, axis=2)
