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
import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hardlook.data.images import open_with_pillow, read_bytes
from hardlook.errors import DataError

_LIMITS = np.iinfo(np.int32)


def read_label_map(path: Path | str, *, size: tuple[int, int] | None = None) -> NDArray[np.int32]:
    """The labels (H, W) int32; if `size` (width, height) is given, a map of another size is a `DataError`.

    A palette PNG gives its indices, not its colours. Three equal channels are read as one.
    """
    path = Path(path)
    data = read_bytes(path)
    labels = _from_numpy(path, data) if path.suffix.lower() in (".npy", ".npz") else _from_image(path, data)
    if labels.ndim != 2:
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


def _from_image(path: Path, data: bytes) -> NDArray[np.generic]:
    image = open_with_pillow(path, data)
    stored = np.asarray(image)
    if stored.ndim == 2:
        return stored
    if image.mode == "RGB" and bool((stored == stored[..., :1]).all()):
        return stored[..., 0]
    remedy = "store label indices: a grey or palette PNG; colours alone do not say which class is which"
    raise DataError(f"a label map with {stored.shape[2]} channels ({image.mode}) that differ", file=path, remedy=remedy)


def _from_numpy(path: Path, data: bytes) -> NDArray[np.generic]:
    try:
        loaded = np.load(io.BytesIO(data), allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return loaded
        names = list(loaded.files)
        if len(names) == 1:
            return np.asarray(loaded[names[0]])
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(f"not a readable NumPy file: {error}", file=path, remedy="write it with np.save") from error
    remedy = "store one array per file"
    raise DataError(f"{len(names)} arrays in one file ({', '.join(names) or 'none'})", file=path, remedy=remedy)
