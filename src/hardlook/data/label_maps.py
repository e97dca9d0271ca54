"""Label maps: one integer per pixel, from PNG (grey, 16-bit, palette indices), BMP, TIFF, .npy or .npz.

>>> import tempfile
>>> from pathlib import Path
>>> path = Path(tempfile.mkdtemp()) / "labels.npy"
>>> np.save(path, np.array([[0, 3], [255, 3]], np.uint8))
>>> read_label_map(path).tolist()
[[0, 3], [255, 3]]
"""

from __future__ import annotations

import io
import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
from numpy.typing import NDArray

from hardlook.data.images import open_with_pillow
from hardlook.errors import DataError, shorten
from hardlook.reading import check_pixels, read_bytes, reading

_GREY = 0  # the colour type in a PNG's header
_LOSSY = ("JPEG", "JPEG2000", "MPO", "WEBP")
_LIMITS = np.iinfo(np.int32)


def read_label_map(path: Path | str, *, size: tuple[int, int] | None = None, lossy: bool = False) -> NDArray[np.int32]:
    """The labels (H, W) int32; if `size` (width, height) is given, a map of another size is a `DataError`.

    A palette PNG gives its indices, not its colours. Three equal channels are read as one. JPEG, which changes numbers,
    is a `DataError` unless `lossy` says that the numbers are brightness.
    """
    return decode_label_map(read_bytes(path), Path(path), size=size, lossy=lossy)


def decode_label_map(
    data: bytes, path: Path, *, size: tuple[int, int] | None = None, lossy: bool = False
) -> NDArray[np.int32]:
    """The labels (H, W) int32 from the content of a file, NumPy's where `path` says .npy or .npz; errors name it."""
    if path.suffix.lower() in (".npy", ".npz"):
        with reading(path, "not a readable NumPy file", remedy="write it with np.save"):
            labels = _from_numpy(path, data)
    else:
        with reading(path, "the label map is cut off or damaged", remedy="copy it again"):
            labels = _from_image(path, data, lossy=lossy)
    if labels.ndim != 2 or not labels.size:
        raise DataError(f"a label map of shape {labels.shape}", file=path, remedy="store one (H, W) array per file")
    if size is not None and labels.shape != (size[1], size[0]):
        what = f"the label map is {labels.shape[1]}x{labels.shape[0]}, its image {size[0]}x{size[1]}"
        remedy = "store labels at the image's own size; resize with nearest neighbour if you must"
        raise DataError(what, file=path, remedy=remedy)
    if labels.dtype == np.bool_ or labels.dtype in (np.uint8, np.uint16, np.int8, np.int16, np.int32):
        return labels.astype(np.int32)
    if not np.issubdtype(labels.dtype, np.integer):
        raise DataError(f"labels of type {labels.dtype}", file=path, remedy="store labels as integers")
    if labels.size and (int(labels.min()) < _LIMITS.min or int(labels.max()) > _LIMITS.max):
        raise DataError(f"labels reach {labels.max()}", file=path, remedy="store labels that fit 32 bits")
    return labels.astype(np.int32)


def open_mask(path: Path) -> PIL.Image.Image:
    """The decoded image of a mask, whose colours count; a `DataError` where only its transparency says something."""
    image = open_with_pillow(path, read_bytes(path))
    if image.has_transparency_data:
        *colours, transparency = (np.ptp(channel) > 0 for channel in np.asarray(image.convert("RGBA")).T)
        if transparency and not any(colours):
            what = "the mask has one colour; what differs is its transparency, which is not read"
            remedy = "store 255 on the object and 0 elsewhere, without transparency"
            raise DataError(what, file=path, remedy=remedy)
    return image


def _from_image(path: Path, data: bytes, *, lossy: bool) -> NDArray[np.generic]:
    image = open_with_pillow(path, data)
    if image.format in _LOSSY and not lossy:
        what = f"the label map is stored as {image.format}, which changes the numbers"
        raise DataError(what, file=path, remedy="write it as PNG or npy; a new suffix does not change the format")
    bits, colour = (data[24], data[25]) if image.format == "PNG" else (8, _GREY)
    if bits == 16 and colour != _GREY:  # Pillow keeps their high bytes
        what = "a label map with 16 bits in each of several channels"
        raise DataError(what, file=path, remedy="store one channel: a grey PNG of 8 or 16 bits")
    stored = np.asarray(image)
    if stored.ndim == 2:
        # Pillow spreads the numbers of a grey PNG of 2 or 4 bits over 0 to 255.
        return stored // (255 // (2**bits - 1)) if bits in (2, 4) and colour == _GREY else stored
    if image.mode == "RGB" and all(bool((stored[..., 0] == stored[..., other]).all()) for other in (1, 2)):
        return stored[..., 0]
    remedy = "store label indices: a grey or palette PNG; colours alone do not say which class is which"
    raise DataError(f"a label map with {stored.shape[2]} channels ({image.mode}) that differ", file=path, remedy=remedy)


def _from_numpy(path: Path, data: bytes) -> NDArray[np.generic]:
    if data[:2] != b"PK":
        return _read_array(io.BytesIO(data))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = archive.namelist()
        if len(names) == 1:
            with archive.open(names[0]) as stream:
                return _read_array(stream)
    listed = shorten(", ".join(name.removesuffix(".npy") for name in names)) or "none"
    raise DataError(f"{len(names)} arrays in one file ({listed})", file=path, remedy="store one array per file")


def _read_array(stream: Any) -> NDArray[np.generic]:
    """The array, if the shape in its header is that of a label map: np.load takes the memory first and looks later."""
    version = np.lib.format.read_magic(stream)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise DataError(f"version {version} of NumPy's format", remedy="write it with np.save")
    shape, fortran, dtype = readers[version](stream)
    if dtype.kind not in "biuf":
        raise ValueError(f"values of type {dtype}")
    pixels = math.prod(shape)
    check_pixels(*(shape[::-1] if len(shape) == 2 else (pixels, 1)))
    content = stream.read(pixels * dtype.itemsize)
    if len(content) < pixels * dtype.itemsize:
        raise DataError(f"the file ends before its {pixels} labels do", remedy="copy it again")
    return np.frombuffer(content, dtype).reshape(shape, order="F" if fortran else "C")
