"""Files of one class's mask, and whether they fit their image.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "1_2007_000032.png"
>>> PIL.Image.fromarray(np.array([[0, 255, 255]], np.uint8)).save(path)
>>> read_binary_mask(path, (3, 1)).mask.tolist()
[[False, True, True]]
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import PIL.Image

from hardlook.data.class_masks.protocol import ClassMask
from hardlook.data.images import read_bytes, read_image
from hardlook.data.label_maps import read_label_map
from hardlook.errors import DataError

VOID = 255


def read_binary_mask(path: Path, size: tuple[int, int]) -> ClassMask:
    """The mask of a file with 0 and 1, or 0 and 255; with 0, 1 and 255 the 255 is left open, as in VOC.

    `size` (width, height) is the image's. Any other value is a `DataError`.
    """
    values = read_label_map(path, size=size)
    found = np.unique(values)
    if strange := [int(value) for value in found if value not in (0, 1, VOID)]:
        raise DataError(
            f"a binary mask with the values {', '.join(map(str, strange[:5]))}",
            file=path,
            remedy="store 0 and 1, or 0 and 255; put whole label maps in SegmentationClass or give them as masks",
        )
    if 1 in found:
        return ClassMask(values == 1, values == VOID)
    return ClassMask(values == VOID, np.zeros(values.shape, bool))


def read_bright_mask(path: Path, size: tuple[int, int]) -> ClassMask:
    """The mask of a grey file: foreground above 127, as FSS-1000 stores it; nothing is left open."""
    picture = read_image(path)
    grey = picture[..., 0]
    if not bool((picture == picture[..., :1]).all()):
        raise DataError("a mask with colours", file=path, remedy="store the mask in grey, or in three equal channels")
    refuse_other_size((grey.shape[1], grey.shape[0]), size, path)
    return ClassMask(grey > 127, np.zeros(grey.shape, bool))


def refuse_other_size(mask: tuple[int, int], size: tuple[int, int], path: Path) -> None:
    """A `DataError` when a mask is not of the image's size; both are (width, height)."""
    if mask != size:
        raise DataError(
            f"the mask is {mask[0]}x{mask[1]}, its image {size[0]}x{size[1]}",
            file=path,
            remedy="store the mask at the image's own size",
        )


def why_unreadable(error: DataError | OSError) -> str:
    """What is wrong with a file, in one line that names it by its folder and name.

    >>> why_unreadable(DataError("the file is empty", file=Path("far") / "masks" / "a.png"))
    'masks/a.png: the file is empty'
    """
    if isinstance(error, OSError):
        where, what = error.filename, error.strerror or str(error)
    else:
        where, what = error.file, error.what
    return f"{'/'.join(Path(where).parts[-2:])}: {what}" if where else what


def image_size(path: Path) -> tuple[int, int]:
    """Width and height of an image file from its header."""
    try:
        with PIL.Image.open(path) as image:
            return image.size
    except (OSError, SyntaxError, ValueError, PIL.Image.DecompressionBombError):
        # The reader knows what is wrong with the file and says it.
        read_bytes(path)
        height, width = read_image(path).shape[:2]
        return width, height
