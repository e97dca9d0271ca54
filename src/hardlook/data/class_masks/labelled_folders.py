"""Images in a folder, and their classes in label maps or in one binary mask a class.

>>> import tempfile
>>> from hardlook.data.class_masks.folder_listing import MAP_SUFFIXES
>>> import PIL.Image
>>> folder = Path(tempfile.mkdtemp())
>>> for place, values in (("images", [[9, 9]]), ("masks", [[0, 2]])):
...     (folder / place).mkdir()
...     PIL.Image.fromarray(np.array(values, np.uint8)).save(folder / place / "a.png")
>>> source = LabelledFolders(
...     FolderListing(folder / "images"), ("cat", "dog"), maps=(FolderListing(folder / "masks", MAP_SUFFIXES),)
... )
>>> source.tokens(), source.class_of("2_a"), source.read_mask("2_a").mask.tolist()
(('2_a',), 'dog', [[False, True]])
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hardlook.data.class_masks.folder_listing import FolderListing
from hardlook.data.class_masks.mask_files import VOID, image_size, read_binary_mask, why_unreadable
from hardlook.data.class_masks.pickled_by_fields import PickledByFields
from hardlook.data.class_masks.protocol import ClassMask
from hardlook.data.class_tokens import numbered_token
from hardlook.data.images import read_image
from hardlook.data.label_maps import read_label_map
from hardlook.errors import DataError


@dataclass(frozen=True)
class LabelledFolders(PickledByFields):
    """Class masks from folders; token `C_image` is class number C, `classes[C - 1]`, in that image.

    `maps` are folders of label maps `<image>.png`, `binary` folders of masks `<token>.png`. The first map that is
    there counts, else the first binary mask. `files` are further files that were read, for fingerprints.
    """

    images: FolderListing
    classes: tuple[str, ...]
    maps: tuple[FolderListing, ...] = ()
    binary: tuple[FolderListing, ...] = ()
    files: tuple[Path, ...] = ()

    def paths(self) -> Mapping[str, Path]:
        """Every folder and file by its name; of two with one name the second is named with its parent."""
        named: dict[str, Path] = {}
        for path in (self.images.folder, *(listing.folder for listing in self.maps + self.binary), *self.files):
            if path not in named.values():
                named[path.name if path.name not in named else f"{path.parent.name}/{path.name}"] = path
        return named

    @property
    def mask_folders(self) -> Mapping[str, int]:
        """How many images take their label map from each folder, and how many binary masks serve the others."""
        used: Counter[str] = Counter()
        mapped = {image: listing for listing in reversed(self.maps) for image in listing}
        for image in self.images:
            if image in mapped:
                used[mapped[image].folder.name] += 1
        for tokens in self._lone_tokens.values():
            used.update(path.parent.name for token in tokens if (path := self._binary_path(token)))
        return dict(used)

    def class_of(self, token: str) -> str:
        """The class name; a `DataError` for a class number beyond the classes."""
        return self.classes[self._parts(token)[0] - 1]

    def image_of(self, token: str) -> str:
        """The image's id."""
        return numbered_token(token)[1]

    def missing(self, token: str) -> str:
        """What is not there, in words."""
        number, image = numbered_token(token)
        if number > len(self.classes):
            return f"the class number {number} (there are {len(self.classes)} classes)"
        if image not in self.images:
            return f"the image {image}"
        if self._map_path(image) is None and self._binary_path(token) is None:
            return f"the mask of {token}"
        return ""

    def read_image(self, token: str) -> NDArray[np.uint8]:
        """The image (H, W, 3) uint8 RGB."""
        return read_image(self._image_path(self.image_of(token), token))

    def read_mask(self, token: str) -> ClassMask:
        """The truth; an empty mask where the label map has no pixel of the class."""
        number, image = self._parts(token)
        if self._map_path(image) is not None:
            labels = self._read_map(image, token)
            return ClassMask(labels == number, labels == VOID)
        path = self._binary_path(token)
        if path is None:
            raise self._no_mask(token)
        try:
            return read_binary_mask(path, image_size(self._image_path(image, token)))
        except DataError as error:
            raise error.at(unit=token) from error

    def read_classes(self, image: str) -> NDArray[np.int32]:
        """The label map (H, W), put together from the binary masks of an image that has no map.

        Where two of them overlap, the smaller mask is in front. A class without a mask counts as not there.
        """
        if self._map_path(image) is not None or image not in self._lone_tokens:
            return self._read_map(image, image)
        truths = [(numbered_token(token)[0], self.read_mask(token)) for token in self._lone_tokens[image]]
        labels = np.where(np.logical_or.reduce([truth.void for _, truth in truths]), VOID, 0).astype(np.int32)
        for number, truth in sorted(truths, key=lambda row: int(row[1].mask.sum()), reverse=True):
            labels[truth.mask] = number
        return labels

    def tokens(self) -> tuple[str, ...]:
        """Every class with pixels in every image that is there with its truth, by class, then image."""
        return self._scanned[0]

    def unreadable(self) -> Mapping[str, str]:
        """The images whose own file or truth cannot be read, and why; one bad binary mask costs the image."""
        return self._scanned[1]

    def _parts(self, token: str) -> tuple[int, str]:
        number, image = numbered_token(token)
        if number > len(self.classes):
            what = f"class number {number} where there are {len(self.classes)} classes"
            raise DataError(what, unit=token, remedy="give the labels that the tokens were made with")
        return number, image

    def _image_path(self, image: str, unit: str) -> Path:
        if image not in self.images:
            remedy = "unpack the images, or run what is there with --subset available"
            raise DataError(f"no image {image!r}", file=self.images.folder, unit=unit, remedy=remedy)
        return self.images.path(image)

    def _map_path(self, image: str) -> Path | None:
        return next((listing.path(image) for listing in self.maps if image in listing), None)

    def _binary_path(self, token: str) -> Path | None:
        return next((listing.path(token) for listing in self.binary if token in listing), None)

    @cached_property
    def _scanned(self) -> tuple[tuple[str, ...], Mapping[str, str]]:
        """Tokens, and the images that cannot be read."""
        found: list[tuple[int, str]] = []
        broken: dict[str, str] = {}
        for image in self.images:
            try:
                found += [(number, image) for number in self._present(image)]
            except (DataError, OSError) as error:
                broken[image] = why_unreadable(error)
        return tuple(f"{number}_{image}" for number, image in sorted(found)), broken

    def _present(self, image: str) -> list[int]:
        """The numbers of the classes that have pixels in an image."""
        if self._map_path(image) is None:
            tokens = self._lone_tokens.get(image, ())
            return [numbered_token(token)[0] for token in tokens if self.read_mask(token).mask.any()]
        numbers = [int(number) for number in np.unique(self._read_map(image, image)) if number not in (0, VOID)]
        for number in numbers:
            numbered_token(f"{number}_{image}")  # a name with a space in it makes no token
        return numbers

    @cached_property
    def _lone_tokens(self) -> Mapping[str, tuple[str, ...]]:
        """The tokens of binary masks by image, for images that are there and have no label map."""
        lone: dict[str, dict[str, None]] = {}
        for listing in self.binary:
            for stem in listing:
                number, _, image = stem.partition("_")
                if number.isdecimal() and int(number) > 0 and image in self.images and self._map_path(image) is None:
                    lone.setdefault(image, {})[stem] = None
        return {image: tuple(tokens) for image, tokens in lone.items()}

    def _read_map(self, image: str, unit: str) -> NDArray[np.int32]:
        path = self._map_path(image)
        if path is None:
            raise self._no_mask(unit)
        try:
            labels = read_label_map(path, size=image_size(self._image_path(image, unit)))
        except DataError as error:
            raise error.at(unit=unit) from error
        strange = (labels < 0) | ((labels > len(self.classes)) & (labels != VOID))
        if strange.any():
            numbers = ", ".join(map(str, np.unique(labels[strange])[:5]))
            what = f"the label map holds {numbers}: none of the {len(self.classes)} classes, nor {VOID}"
            raise DataError(what, file=path, unit=unit, remedy="give the labels that the maps were made with")
        return labels

    def _no_mask(self, unit: str) -> DataError:
        folders = [listing.folder for listing in (self.maps or self.binary)]
        kind = "label map" if self.maps or "_" not in unit else "mask"
        remedy = "add the label map, or one binary mask a class named by its token"
        return DataError(f"no {kind} for {unit}", file=next(iter(folders), None), unit=unit, remedy=remedy)
