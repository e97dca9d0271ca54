"""Where the images and class masks of a pair list come from: what every source answers.

A token names one class in one image, such as `3_2007_000032`. A source turns tokens into images and masks.

>>> truth = ClassMask(np.ones((2, 2), bool), np.zeros((2, 2), bool))
>>> truth.mask.shape == truth.void.shape
True

Files of one class's mask, and whether they fit their image.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "1_2007_000032.png"
>>> PIL.Image.fromarray(np.array([[0, 255, 255]], np.uint8)).save(path)
>>> read_binary_mask(path, (3, 1)).mask.tolist()
[[False, True, True]]

Dataclasses that travel to workers with their fields alone, without what they have looked up.

>>> import pickle
>>> from dataclasses import dataclass
>>> from functools import cached_property
>>> @dataclass(frozen=True)
... class Folder(PickledByFields):
...     name: str
...     @cached_property
...     def files(self) -> list[str]:
...         return [self.name] * 9999
>>> folder = Folder("a")
>>> len(folder.files), sorted(folder.__getstate__())
(9999, ['name'])

A folder's files by stem, listed once a process and small when pickled.

>>> import tempfile
>>> folder = Path(tempfile.mkdtemp())
>>> _ = (folder / "2007_000032.jpg").write_bytes(b"")
>>> listing = FolderListing(folder)
>>> "2007_000032" in listing, listing.path("2007_000032").name
(True, '2007_000032.jpg')
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import PIL.Image
from numpy.typing import NDArray

from hardlook.data.images import SUFFIXES, read_bytes, read_image
from hardlook.data.label_maps import read_label_map
from hardlook.errors import DataError


@dataclass(frozen=True, eq=False)
class ClassMask:
    """The truth of one class in one image.

    `mask` (H, W) bool: the class's pixels. `void` (H, W) bool: pixels that the truth leaves open (VOC's 255).
    """

    mask: NDArray[np.bool_]
    void: NDArray[np.bool_]


class ClassMaskSource(Protocol):
    """A source of images and class masks; small when pickled, since every worker gets one."""

    @property
    def classes(self) -> tuple[str, ...]:
        """The names; the class number n of a token is `classes[n - 1]` (FSS-1000: tokens hold the names)."""

    def paths(self) -> Mapping[str, Path]:
        """The folders and files that are read, by name, for fingerprints."""

    def class_of(self, token: str) -> str:
        """The class name of a token, such as "aeroplane"."""

    def image_of(self, token: str) -> str:
        """The id of a token's image: queries of one image belong together."""

    def missing(self, token: str) -> str:
        """Empty when image and mask can be had, else what is not there, in words ("the image 2007_000032")."""

    def read_image(self, token: str) -> NDArray[np.uint8]:
        """The image (H, W, 3) uint8 RGB of a token."""

    def read_mask(self, token: str) -> ClassMask:
        """The truth of a token; a `DataError` when unreadable or not of the image's size."""

    def read_classes(self, image: str) -> NDArray[np.int32]:
        """The label map (H, W) of an image: 0 background, n the class number n, 255 left open."""

    def tokens(self) -> tuple[str, ...]:
        """Every class that has pixels in every image, sorted by class, then image; reads all maps, once."""

    def unreadable(self) -> Mapping[str, str]:
        """The images that `tokens` leaves out since image or truth cannot be read, and why, in a line each."""


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
    check_mask_size((grey.shape[1], grey.shape[0]), size, path)
    return ClassMask(grey > 127, np.zeros(grey.shape, bool))


def check_mask_size(mask: tuple[int, int], size: tuple[int, int], path: Path) -> None:
    """A `DataError` when a mask is not of the image's size; both are (width, height)."""
    if mask != size:
        raise DataError(
            f"the mask is {mask[0]}x{mask[1]}, its image {size[0]}x{size[1]}",
            file=path,
            remedy="store the mask at the image's own size",
        )


def describe_read_error(error: DataError | OSError) -> str:
    """What is wrong with a file, in one line that names it by its folder and name.

    >>> describe_read_error(DataError("the file is empty", file=Path("far") / "masks" / "a.png"))
    'masks/a.png: the file is empty'
    """
    if isinstance(error, OSError):
        where, what = error.filename, error.strerror or str(error)
    else:
        where, what = error.file, error.what
    return f"{'/'.join(Path(where).parts[-2:])}: {what}" if where else what


def read_image_size(path: Path) -> tuple[int, int]:
    """Width and height of an image file from its header."""
    try:
        with PIL.Image.open(path) as image:
            return image.size
    except (OSError, SyntaxError, ValueError, PIL.Image.DecompressionBombError):
        # The reader knows what is wrong with the file and says it.
        read_bytes(path)
        height, width = read_image(path).shape[:2]
        return width, height


class PickledByFields:
    """Leaves cached properties of a dataclass behind when it is pickled."""

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]


MAP_SUFFIXES = (".png", ".npy", ".npz", ".bmp", ".tif", ".tiff")


@dataclass(frozen=True)
class FolderListing(PickledByFields):
    """The files in `folder` with one of `suffixes` (any case); the earlier suffix wins where a stem comes twice.

    The folder is listed when it is first asked for, and a folder that is not there has no files.
    """

    folder: Path
    suffixes: tuple[str, ...] = SUFFIXES

    def __contains__(self, stem: str) -> bool:
        return stem in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def path(self, stem: str) -> Path:
        """The file of a stem that is there."""
        return self.folder / self._names[stem]

    @cached_property
    def _names(self) -> Mapping[str, str]:
        return _listed(self.folder, self.suffixes, modification_time(self.folder))


def modification_time(path: Path) -> int:
    """When a folder or file last changed, in nanoseconds; 0 where there is none."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


# A worker may unpickle one source many times; it lists a folder once all the same.
@lru_cache(maxsize=4096)
def _listed(folder: Path, suffixes: tuple[str, ...], _changed: int) -> Mapping[str, str]:
    if not folder.is_dir():
        return {}
    ranked = {suffix: rank for rank, suffix in enumerate(suffixes)}
    found: dict[str, tuple[int, str]] = {}
    for name in sorted(entry.name for entry in os.scandir(folder)):
        stem, _, suffix = name.rpartition(".")
        rank = ranked.get(f".{suffix.lower()}")
        if rank is not None and (stem not in found or rank < found[stem][0]):
            found[stem] = (rank, name)
    return {stem: name for stem, (_, name) in sorted(found.items())}
