"""Sources of images and class masks, and reading the files they consist of.

A token names one class in one image, such as `3_2007_000032`. A `ClassMaskSource` reads the images and masks of tokens.

>>> import tempfile
>>> import PIL.Image
>>> folder = Path(tempfile.mkdtemp())
>>> PIL.Image.fromarray(np.array([[0, 255, 255]], np.uint8)).save(folder / "1_2007_000032.png")
>>> listing = FolderListing(folder)
>>> "1_2007_000032" in listing
True
>>> read_binary_mask(listing.path("1_2007_000032"), (3, 1)).mask.tolist()
[[False, True, True]]
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hardlook.data.images import SUFFIXES, open_header, read_image
from hardlook.data.label_maps import read_label_map
from hardlook.errors import DataError
from hardlook.file_hashes import file_version

VOID = 255
MAP_SUFFIXES = (".png", ".npy", ".npz", ".bmp", ".tif", ".tiff")


@dataclass(frozen=True, eq=False)
class ClassMask:
    """The truth of one class in one image: `mask` (H, W) bool; `void` (H, W) bool, unlabelled pixels (VOC's 255)."""

    mask: NDArray[np.bool_]
    void: NDArray[np.bool_]


class ClassMaskSource(Protocol):
    """A source of images and class masks; small when pickled, since every worker receives one."""

    @property
    def classes(self) -> tuple[str, ...]:
        """The names; the class number n of a token is `classes[n - 1]` (FSS-1000: tokens hold the names)."""

    def paths(self) -> Mapping[str, Path]:
        """The folders and files that are read, by name, for fingerprints."""

    def class_of(self, token: str) -> str:
        """The class name of a token, such as "aeroplane"."""

    def image_of(self, token: str) -> str:
        """The id of a token's image; tokens of one image share it."""

    def missing(self, token: str) -> str:
        """Empty if image and mask exist, else what is missing ("the image 2007_000032")."""

    def read_image(self, token: str) -> NDArray[np.uint8]:
        """The image (H, W, 3) uint8 RGB of a token."""

    def read_mask(self, token: str) -> ClassMask:
        """The truth of a token; a `DataError` when unreadable or not of the image's size."""

    def read_classes(self, image: str) -> NDArray[np.int32]:
        """The label map (H, W) of an image: 0 background, n the class number n, 255 void."""

    def tokens(self) -> tuple[str, ...]:
        """Every class with pixels in every image, sorted by class, then image; reads all masks once."""

    def unreadable(self) -> Mapping[str, str]:
        """The images that `tokens` leaves out because image or mask cannot be read, with the reason."""


class PickledByFields:
    """A dataclass that is pickled without its cached properties.

    >>> @dataclass(frozen=True)
    ... class Folder(PickledByFields):
    ...     name: str
    ...     @cached_property
    ...     def files(self) -> list[str]:
    ...         return [self.name] * 9999
    >>> folder = Folder("a")
    >>> len(folder.files), sorted(folder.__getstate__())
    (9999, ['name'])
    """

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]


@dataclass(frozen=True)
class FolderListing(PickledByFields):
    """Files of `folder` by stem, with one of `suffixes` (any case), listed on first use; two of a stem are an error."""

    folder: Path
    suffixes: tuple[str, ...] = SUFFIXES

    def __contains__(self, stem: str) -> bool:
        return stem in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def path(self, stem: str) -> Path:
        """The file of a stem in the listing; a `DataError` if it has two."""
        first, *others = self._names[stem]
        if others:
            what = f"two files are called {stem!r}: {first} and {others[0]}"
            raise DataError(what, file=self.folder, remedy="keep one of them, or rename one")
        return self.folder / first

    @cached_property
    def _names(self) -> Mapping[str, tuple[str, ...]]:
        return _list_folder(self.folder, self.suffixes, file_version(self.folder))


# A worker may unpickle one source many times but lists a folder only once.
@lru_cache(maxsize=4096)
def _list_folder(folder: Path, suffixes: tuple[str, ...], _version: Hashable) -> Mapping[str, tuple[str, ...]]:
    if not folder.is_dir():
        return {}
    found: dict[str, list[str]] = {}
    for name in sorted(entry.name for entry in os.scandir(folder)):
        stem, _, suffix = name.rpartition(".")
        if f".{suffix.lower()}" in suffixes:
            found.setdefault(stem, []).append(name)
    return {stem: tuple(found[stem]) for stem in sorted(found)}


def read_binary_mask(path: Path, size: tuple[int, int]) -> ClassMask:
    """The mask, of the image's `size` (width, height), in 0 and 1 or 0 and 255; of all three 255 is void, as in VOC."""
    values = read_label_map(path, size=size)
    found = np.unique(values)
    if unknown := [int(value) for value in found if value not in (0, 1, VOID)]:
        remedy = "store 0 and 1, or 0 and 255; put label maps in SegmentationClass or pass them as masks"
        raise DataError(f"a binary mask with the values {', '.join(map(str, unknown[:5]))}", file=path, remedy=remedy)
    if 1 in found:
        return ClassMask(values == 1, values == VOID)
    return ClassMask(values == VOID, np.zeros(values.shape, bool))


def read_bright_mask(path: Path, size: tuple[int, int]) -> ClassMask:
    """The mask of a grey file: foreground above 127, as in FSS-1000; no pixel is void."""
    image = read_image(path)
    grey = image[..., 0]
    if not bool((image == image[..., :1]).all()):
        raise DataError("a mask with colours", file=path, remedy="store the mask in grey, or in three equal channels")
    check_mask_size((grey.shape[1], grey.shape[0]), size, path)
    return ClassMask(grey > 127, np.zeros(grey.shape, bool))


def check_mask_size(mask: tuple[int, int], size: tuple[int, int], path: Path) -> None:
    """Raise a `DataError` if a mask does not have the image's size; both are (width, height)."""
    if mask != size:
        remedy = "store the mask at the image's own size"
        raise DataError(f"the mask is {mask[0]}x{mask[1]}, its image {size[0]}x{size[1]}", file=path, remedy=remedy)


def read_image_size(path: Path) -> tuple[int, int]:
    """Width and height of an image file from its header."""
    try:
        with open_header(path) as image:
            return image.size
    except Exception:
        # The reader raises an error that says what is wrong with the file.
        height, width = read_image(path).shape[:2]
        return width, height


def describe_read_error(error: DataError | OSError) -> str:
    """What is wrong with a file, in one line that gives its folder and name.

    >>> describe_read_error(DataError("the file is empty", file=Path("far") / "masks" / "a.png"))
    'masks/a.png: the file is empty'
    """
    if isinstance(error, OSError):
        where, what = error.filename, error.strerror or str(error)
    else:
        where, what = error.file, error.what
    return f"{'/'.join(Path(where).parts[-2:])}: {what}" if where else what
