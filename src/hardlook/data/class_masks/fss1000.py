"""Class masks of FSS-1000: one folder per class with ten images `<n>.jpg` and their masks `<n>.png`.

Tokens are `X_class_n`. TOSS's tokens write `0` for the apostrophe and the hyphen in a folder's name (abe0s_flyingfish,
one0armed_bandit). If a class name has no folder, it is compared by its letters and non-zero digits.

>>> import tempfile
>>> import PIL.Image
>>> folder = Path(tempfile.mkdtemp()) / "abe's_flyingfish"
>>> folder.mkdir()
>>> PIL.Image.new("RGB", (2, 1)).save(folder / "3.jpg")
>>> PIL.Image.new("L", (2, 1), 255).save(folder / "3.png")
>>> source = open_fss(folder.parent)
>>> source.class_of("4_abe0s_flyingfish_3"), source.read_mask("4_abe0s_flyingfish_3").mask.tolist(), source.tokens()
("abe's_flyingfish", [[True, True]], ("1_abe's_flyingfish_3",))
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hardlook.data.class_masks.source import (
    ClassMask,
    ClassMaskSource,
    FolderListing,
    PickledByFields,
    describe_read_error,
    read_bright_mask,
    read_image_size,
)
from hardlook.data.class_tokens import parse_named_token
from hardlook.data.images import SUFFIXES, read_image
from hardlook.errors import DataError
from hardlook.file_hashes import file_version

IMAGE_SUFFIXES = tuple(suffix for suffix in SUFFIXES if suffix != ".png")  # .png files are masks
_NOT_COMPARED = re.compile(r"[^a-z1-9]")


@dataclass(frozen=True)
class FssClassMasks(PickledByFields):
    """Class masks of the folder `root`, which holds the class folders."""

    root: Path

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """The class folders' names, sorted."""
        return _list_class_folders(self.root, file_version(self.root))

    def paths(self) -> Mapping[str, Path]:
        """The one folder."""
        return {"fss": self.root}

    def class_of(self, token: str) -> str:
        """The class folder's name; the name in the token if there is no such folder."""
        name = parse_named_token(token)[0]
        return self._folder_name(name) or name

    def image_of(self, token: str) -> str:
        """The image's id, `class/n`."""
        return f"{self.class_of(token)}/{parse_named_token(token)[1]}"

    def missing(self, token: str) -> str:
        """What is missing; empty if nothing is."""
        name, number = parse_named_token(token)
        if (folder := self._folder_name(name)) is None:
            return f"the class {name}"
        if str(number) not in self._images[folder]:
            return f"the image {folder}/{number}"
        return "" if str(number) in self._masks[folder] else f"the mask of {folder}/{number}"

    def read_image(self, token: str) -> NDArray[np.uint8]:
        """The image (H, W, 3) uint8 RGB."""
        return read_image(self._files(token)[0])

    def read_mask(self, token: str) -> ClassMask:
        """The class mask: values above 127."""
        image, mask = self._files(token)
        try:
            return read_bright_mask(mask, read_image_size(image))
        except DataError as error:
            raise error.at(unit=token) from error

    def read_classes(self, image: str) -> NDArray[np.int32]:
        """Always a `DataError`: only one class per image is annotated, so there are no label maps."""
        what = "FSS-1000 has no label maps, only one mask per image"
        raise DataError(what, file=self.root, unit=image, remedy="use VOC, COCO, or folders of label maps")

    def tokens(self) -> tuple[str, ...]:
        """Every image whose mask has pixels, by class, then number; X is the class's position in `classes`, from 1."""
        return self._token_scan[0]

    def unreadable(self) -> Mapping[str, str]:
        """The images whose file or mask cannot be read, with the reason."""
        return self._token_scan[1]

    def _files(self, token: str) -> tuple[Path, Path]:
        """The files of image and mask."""
        if absent := self.missing(token):
            remedy = "unpack FSS-1000, or evaluate the existing images with --subset available"
            raise DataError(f"{absent} is missing", file=self.root, unit=token, remedy=remedy)
        folder, number = self.class_of(token), str(parse_named_token(token)[1])
        return self._images[folder].path(number), self._masks[folder].path(number)

    @cached_property
    def _token_scan(self) -> tuple[tuple[str, ...], Mapping[str, str]]:
        """Tokens, and the images that cannot be read."""
        found: list[str] = []
        broken: dict[str, str] = {}
        for place, name in enumerate(self.classes, start=1):
            for number in sorted(int(stem) for stem in self._images[name] if stem.isdecimal()):
                token = f"{place}_{name}_{number}"
                try:
                    if not self.missing(token) and self.read_mask(token).mask.any():
                        found.append(token)
                except (DataError, OSError) as error:
                    broken[self.image_of(token)] = describe_read_error(error)
        return tuple(found), broken

    @cached_property
    def _images(self) -> Mapping[str, FolderListing]:
        return {name: FolderListing(self.root / name, IMAGE_SUFFIXES) for name in self.classes}

    @cached_property
    def _masks(self) -> Mapping[str, FolderListing]:
        return {name: FolderListing(self.root / name, (".png",)) for name in self.classes}

    @cached_property
    def _by_reduced_name(self) -> Mapping[str, list[str]]:
        matches: defaultdict[str, list[str]] = defaultdict(list)
        for name in self.classes:
            matches[_reduce_name(name)].append(name)
        return dict(matches)

    def _folder_name(self, name: str) -> str | None:
        """The folder of a class name from a token, None if there is none or several match."""
        if name in self._images:
            return name
        matches = self._by_reduced_name.get(_reduce_name(name), [])
        return matches[0] if len(matches) == 1 else None


def open_fss(folder: Path) -> ClassMaskSource:
    """The source at `folder`, or one or two folders named `fewshot_data` below it, as the archive unpacks."""
    folder = Path(folder)
    for root in (folder / "fewshot_data" / "fewshot_data", folder / "fewshot_data", folder):
        if root.is_dir() and _list_class_folders(root, file_version(root)):
            return FssClassMasks(root)
    what = "no FSS-1000 here" if folder.is_dir() else "the folder does not exist"
    remedy = "pass the folder that holds one folder per class, with <n>.jpg and <n>.png in it"
    raise DataError(what, file=folder, remedy=remedy)


def _reduce_name(name: str) -> str:
    return _NOT_COMPARED.sub("", name.lower())


@lru_cache(maxsize=8)
def _list_class_folders(root: Path, _version: Hashable) -> tuple[str, ...]:
    masks = {folder.name: FolderListing(folder, (".png",)) for folder in root.iterdir()}
    return tuple(sorted(name for name, stems in masks.items() if any(map(str.isdecimal, stems))))
