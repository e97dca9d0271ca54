"""The pictures of a study folder, named by a hash of their pixels: equal pictures are stored once.

>>> import tempfile
>>> folder = Path(tempfile.mkdtemp())
>>> name = write_picture(folder, "masks", np.array([[True, False]]))
>>> name.startswith("masks/"), name.endswith(".png"), name == write_picture(folder, "masks", np.array([[True, False]]))
(True, True, True)
>>> read_mask(folder / name).tolist()
[[True, False]]
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.data.images import decode_picture
from hardlook.errors import DataError
from hardlook.harness.runs.folder import write_atomically
from hardlook.models.roles import Mask
from hardlook.reading import read_bytes, reading

KINDS = ("images", "masks", "targets")
PREVIOUS_MASKS = "previous-masks"
QUALITY = 95

# Below this many pixels a PNG is small enough, and planted pictures carry their truth in their lowest bits.
SMALL = 256 * 256
Pixels = NDArray[np.uint8] | Mask


def write_picture(folder: Path, kind: str, pixels: Pixels, *, lossless: bool | None = None) -> str:
    """Write a picture unless it is there, and return its name: a posix path relative to `folder`, the study's.

    `pixels` are (H, W, 3) uint8 RGB, or (H, W) bool for a mask, which is stored as 0 and 255. Large `images` become
    JPEGs of quality 95 with full colour resolution, all else PNG, unless `lossless` says otherwise. A JPEG of a
    cut-out would blur the object's border; so targets are lossless.
    """
    if kind not in KINDS or pixels.ndim not in (2, 3) or pixels.dtype not in (np.uint8, np.bool_) or not pixels.size:
        what = f"no picture of kind {kind!r} from {pixels.shape} of {pixels.dtype}"
        raise DataError(what, file=folder, remedy=f"one of {', '.join(KINDS)}, (H, W, 3) uint8 or (H, W) bool")
    small = pixels.shape[0] * pixels.shape[1] <= SMALL
    exact = (kind != "images" or small or pixels.ndim == 2) if lossless is None else lossless
    name = f"{kind}/{hash_picture(pixels)}{'.png' if exact else '.jpg'}"
    if not (folder / name).is_file():
        write_atomically(folder / name, encode_picture(pixels, exact))
    return name


def write_previous_mask(folder: Path, dataset: str, full_stem: str, mask: Mask) -> str:
    """Write a mask that people's clicks will correct, where `--previous-masks` finds it; return its name in `folder`.

    >>> import tempfile
    >>> write_previous_mask(Path(tempfile.mkdtemp()), "grabcut", "llama_mivos_fn", np.ones((2, 2), bool))
    'previous-masks/grabcut/llama_mivos_fn.png'
    """
    for part in (dataset, full_stem):
        if part in ("", ".", "..") or set(part) & set("/\\\0"):
            raise DataError(f"{part!r} is not a name of a file", unit=full_stem, remedy="rename the image")
    name = f"{PREVIOUS_MASKS}/{dataset}/{full_stem}.png"
    write_atomically(folder / name, encode_picture(mask))
    return name


def read_mask(path: Path, size: tuple[int, int] | None = None) -> Mask:
    """A stored mask (H, W) bool; another `size` (width, height) than expected is a `DataError`."""
    with reading(path, "the mask cannot be decoded", remedy="make the study anew"):
        decoded = decode_picture(read_bytes(path), cv2.IMREAD_GRAYSCALE)
    if decoded is None:
        raise DataError("the mask cannot be decoded", file=path, remedy="make the study anew")
    if size is not None and decoded.shape != (size[1], size[0]):
        what = f"the mask is {decoded.shape[1]}x{decoded.shape[0]}, its image {size[0]}x{size[1]}"
        raise DataError(what, file=path, remedy="make the study anew")
    return np.asarray(decoded > 127)


def hash_picture(pixels: Pixels) -> str:
    """The stem of a picture's name: a hash of its pixels, shape and type.

    >>> hash_picture(np.zeros((1, 2), np.uint8)) == hash_picture(np.zeros((2, 1), np.uint8))
    False
    """
    header = f"{pixels.shape} {pixels.dtype}".encode()
    return hashlib.blake2b(header + np.ascontiguousarray(pixels).tobytes(), digest_size=16).hexdigest()


def encode_picture(pixels: Pixels, exact: bool = True) -> bytes:
    """A picture (H, W, 3) uint8 RGB or mask (H, W) bool as PNG, or as JPEG where it need not be exact."""
    stored: Any = pixels.astype(np.uint8) * 255 if pixels.dtype == np.bool_ else pixels
    if stored.ndim == 3:
        stored = cv2.cvtColor(stored, cv2.COLOR_RGB2BGR)
    if exact and pixels.dtype == np.bool_:
        options = [cv2.IMWRITE_PNG_BILEVEL, 1]
    elif exact:
        options = [cv2.IMWRITE_PNG_COMPRESSION, 6]
    else:
        full = cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444
        options = [cv2.IMWRITE_JPEG_QUALITY, QUALITY, cv2.IMWRITE_JPEG_SAMPLING_FACTOR, full]
    done, data = cv2.imencode(".png" if exact else ".jpg", stored, options)
    if not done:
        raise DataError("the picture cannot be encoded", remedy="check its size")
    return data.tobytes()
