"""Class masks in folders: label maps or one binary mask per class, as in the Pascal VOC devkit or any two folders.

>>> import tempfile
>>> import PIL.Image
>>> folder = Path(tempfile.mkdtemp())
>>> for place, values in (("images", [[9, 9]]), ("masks", [[0, 2]])):
...     (folder / place).mkdir()
...     PIL.Image.fromarray(np.array(values, np.uint8)).save(folder / place / "a.png")
>>> _ = (folder / "masks" / "classes.txt").write_text("cat dog".replace(" ", chr(10)))
>>> source = open_class_mask_folders({"images": folder / "images", "masks": folder / "masks"})
>>> source.tokens(), source.class_of("2_a"), source.read_mask("2_a").mask.tolist()
(('2_a',), 'dog', [[False, True]])
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hardlook.data.class_masks.source import (
    MAP_SUFFIXES,
    VOID,
    ClassMask,
    ClassMaskSource,
    FolderListing,
    PickledByFields,
    describe_read_error,
    read_binary_mask,
    read_image_size,
)
from hardlook.data.class_tokens import parse_numbered_token
from hardlook.data.images import SUFFIXES, read_image
from hardlook.data.label_maps import read_label_map
from hardlook.data.voc import VOC_CLASSES, find_devkit_root
from hardlook.errors import DataError, OptionError
from hardlook.reading import reading

VOC_MAPS = ("SegmentationClassAug", "SegmentationClass")
VOC_BINARY = ("SegmentationBinary", "BinaryMasks", "binary")
_USAGE = "pass voc=DIR (also with binary=DIR), or images=DIR masks=DIR, or images=DIR binary=DIR"


def open_class_mask_folders(data: Mapping[str, Path], *, labels: Path | None = None) -> ClassMaskSource:
    """The source of `{"voc": DIR}`, `{"images": DIR, "masks": DIR}` or `{"images": DIR, "binary": DIR}`.

    `labels` is a text file with one class name per line, class number 1 first; the default is a `classes.txt` beside
    the masks, and for VOC its twenty classes. In VOC's devkit each image uses the first mask that exists:
    SegmentationClassAug, SegmentationClass, then binary masks `<token>.png` in any of these folders, in
    SegmentationBinary, BinaryMasks or binary, or in the folder given as `binary` beside `voc`.
    """
    given = {name: Path(path) for name, path in data.items()}
    for name, path in given.items():
        if not path.is_dir():
            raise DataError(f"no folder for {name}", file=path, remedy="check the path and that it is unpacked")
    if set(given) in ({"voc"}, {"voc", "binary"}):
        return _open_voc(given["voc"], given.get("binary"), labels)
    if set(given) not in ({"images", "masks"}, {"images", "binary"}):
        raise OptionError(f"--data {', '.join(sorted(given)) or 'nothing'}: no source of class masks", remedy=_USAGE)
    kind = "masks" if "masks" in given else "binary"
    classes, files = _read_class_names(labels, given[kind])
    masks = (FolderListing(given[kind], MAP_SUFFIXES),)
    maps, binary = (masks, ()) if kind == "masks" else ((), masks)
    # A folder may hold an image and its label map under one name.
    shared = bool(maps) and given["images"].samefile(given["masks"])
    suffixes = tuple(suffix for suffix in SUFFIXES if suffix not in MAP_SUFFIXES) if shared else SUFFIXES
    return LabelledFolders(FolderListing(given["images"], suffixes), classes, maps, binary, files)


def _open_voc(folder: Path, binary: Path | None, labels: Path | None) -> LabelledFolders:
    root = find_devkit_root(folder, "JPEGImages")
    if root is None:
        remedy = f"pass the folder that holds JPEGImages and {' or '.join(VOC_MAPS)}"
        raise DataError("no VOC devkit here", file=folder, remedy=remedy)
    maps, masks = (
        tuple(FolderListing(root / name, MAP_SUFFIXES) for name in names if (root / name).is_dir())
        for names in (VOC_MAPS, VOC_BINARY)
    )
    if binary:
        masks = (FolderListing(binary, MAP_SUFFIXES), *masks)
    if not maps + masks:
        remedy = f"unpack {' or '.join(VOC_MAPS)}, or put masks named <token>.png in {VOC_BINARY[0]}"
        raise DataError("the devkit has no class masks", file=root, remedy=remedy)
    classes, files = _read_class_names(labels, root, VOC_CLASSES)
    return LabelledFolders(FolderListing(root / "JPEGImages"), classes, maps, masks + maps, files)


def _read_class_names(
    labels: Path | None, folder: Path, default: tuple[str, ...] = ()
) -> tuple[tuple[str, ...], tuple[Path, ...]]:
    """Class names, and the file they come from."""
    # The list of a devkit is inside it; one in the parent folder may belong to something else.
    places = [folder] if default else [folder, folder.parent]
    path = labels or next((place / "classes.txt" for place in places if (place / "classes.txt").is_file()), None)
    if path is None:
        if default:
            return default, ()
        remedy = "pass --labels FILE: one class name per line, class number 1 first"
        raise OptionError("unknown class names", remedy=remedy)
    if not path.is_file():
        remedy = "one class name per line, class number 1 first"
        raise DataError("no such file of class names", file=path, remedy=remedy)
    with reading(path, "not a list of class names", remedy="one class name per line, class number 1 first"):
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    names = tuple(line.strip() for line in lines if line.strip() and not line.startswith("#"))
    if not 0 < len(names) < VOID or len(set(names)) < len(names):
        what = f"{len(names)} class names, {len(set(names))} of them different"
        raise DataError(what, file=path, remedy=f"give 1 to {VOID - 1} different names; {VOID} is the void label")
    return names, (path,)


@dataclass(frozen=True)
class LabelledFolders(PickledByFields):
    """Class masks from folders; token `C_image` is class number C, `classes[C - 1]`, in that image.

    `maps` are folders of label maps `<image>.png`, `binary` folders of masks `<token>.png`. The first existing map is
    used, else the first binary mask. `files` are further files that were read, for fingerprints.
    """

    images: FolderListing
    classes: tuple[str, ...]
    maps: tuple[FolderListing, ...] = ()
    binary: tuple[FolderListing, ...] = ()
    files: tuple[Path, ...] = ()

    def paths(self) -> Mapping[str, Path]:
        """Every folder and file by its name; of two with the same name the second is named with its parent."""
        named: dict[str, Path] = {}
        for path in (self.images.folder, *(listing.folder for listing in self.maps + self.binary), *self.files):
            if path not in named.values():
                named[path.name if path.name not in named else f"{path.parent.name}/{path.name}"] = path
        return named

    def class_of(self, token: str) -> str:
        """The class name; a `DataError` for a class number beyond the classes."""
        return self.classes[self._parts(token)[0] - 1]

    def image_of(self, token: str) -> str:
        """The image's id."""
        return parse_numbered_token(token)[1]

    def missing(self, token: str) -> str:
        """What is missing; empty if nothing is."""
        number, image = parse_numbered_token(token)
        if number > len(self.classes):
            return f"the class number {number} (there are {len(self.classes)} classes)"
        if image not in self.images:
            return f"the image {image}"
        self.images.path(image)  # raises an error where there are two
        if self._map_path(image) is None and self._binary_path(token) is None:
            return f"the mask of {token}"
        return ""

    def read_image(self, token: str) -> NDArray[np.uint8]:
        """The image (H, W, 3) uint8 RGB."""
        return read_image(self._image_path(self.image_of(token), token))

    def read_mask(self, token: str) -> ClassMask:
        """The class mask; empty if the label map has no pixel of the class."""
        number, image = self._parts(token)
        if self._map_path(image) is not None:
            labels = self._read_map(image, token)
            return ClassMask(labels == number, labels == VOID)
        if (path := self._binary_path(token)) is None:
            raise self._missing_mask_error(token)
        try:
            return read_binary_mask(path, read_image_size(self._image_path(image, token)))
        except DataError as error:
            raise error.at(unit=token) from error

    def read_classes(self, image: str) -> NDArray[np.int32]:
        """The label map (H, W), or composed of binary masks, the smaller in front; a class without one is absent."""
        if self._map_path(image) is not None or image not in self._binary_tokens:
            return self._read_map(image, image)
        truths = [(parse_numbered_token(token)[0], self.read_mask(token)) for token in self._binary_tokens[image]]
        labels = np.where(np.logical_or.reduce([truth.void for _, truth in truths]), VOID, 0).astype(np.int32)
        for number, truth in sorted(truths, key=lambda row: int(row[1].mask.sum()), reverse=True):
            labels[truth.mask] = number
        return labels

    def tokens(self) -> tuple[str, ...]:
        """Every class with pixels in every image that exists with its masks, by class, then image."""
        return self._token_scan[0]

    def unreadable(self) -> Mapping[str, str]:
        """The images whose file or masks cannot be read, with the reason; one bad binary mask excludes the image."""
        return self._token_scan[1]

    def _parts(self, token: str) -> tuple[int, str]:
        number, image = parse_numbered_token(token)
        if number > len(self.classes):
            what = f"class number {number} where there are {len(self.classes)} classes"
            raise DataError(what, unit=token, remedy="pass the labels that the tokens were made with")
        return number, image

    def _image_path(self, image: str, unit: str) -> Path:
        if image not in self.images:
            remedy = "unpack the images, or evaluate the existing ones with --subset available"
            raise DataError(f"no image {image!r}", file=self.images.folder, unit=unit, remedy=remedy)
        return self.images.path(image)

    def _map_path(self, image: str) -> Path | None:
        return next((listing.path(image) for listing in self.maps if image in listing), None)

    def _binary_path(self, token: str) -> Path | None:
        return next((listing.path(token) for listing in self.binary if token in listing), None)

    @cached_property
    def _token_scan(self) -> tuple[tuple[str, ...], Mapping[str, str]]:
        """Tokens, and the images that cannot be read."""
        found: list[tuple[int, str]] = []
        broken: dict[str, str] = {}
        for image in self.images:
            try:
                found += [(number, image) for number in self._list_classes(image)]
            except (DataError, OSError) as error:
                broken[image] = describe_read_error(error)
        return tuple(f"{number}_{image}" for number, image in sorted(found)), broken

    def _list_classes(self, image: str) -> list[int]:
        """The numbers of the classes that have pixels in an image."""
        if self._map_path(image) is None:
            tokens = self._binary_tokens.get(image, ())
            return [parse_numbered_token(token)[0] for token in tokens if self.read_mask(token).mask.any()]
        numbers = [int(number) for number in np.unique(self._read_map(image, image)) if number not in (0, VOID)]
        for number in numbers:
            parse_numbered_token(f"{number}_{image}")  # raises if the image's name contains a space
        return numbers

    @cached_property
    def _binary_tokens(self) -> Mapping[str, tuple[str, ...]]:
        """The tokens of binary masks by image, for existing images without a label map."""
        lone: dict[str, dict[str, None]] = {}
        for listing in self.binary:
            for stem in listing:
                number, _, image = stem.partition("_")
                if number.isdecimal() and int(number) > 0 and image in self.images and self._map_path(image) is None:
                    lone.setdefault(image, {})[stem] = None
        return {image: tuple(tokens) for image, tokens in lone.items()}

    def _read_map(self, image: str, unit: str) -> NDArray[np.int32]:
        if (path := self._map_path(image)) is None:
            raise self._missing_mask_error(unit)
        try:
            labels = read_label_map(path, size=read_image_size(self._image_path(image, unit)))
        except DataError as error:
            raise error.at(unit=unit) from error
        unknown = (labels < 0) | ((labels > len(self.classes)) & (labels != VOID))
        if unknown.any():
            numbers = ", ".join(map(str, np.unique(labels[unknown])[:5]))
            what = f"the label map holds {numbers}: none of the {len(self.classes)} classes, nor {VOID}"
            raise DataError(what, file=path, unit=unit, remedy="pass the labels that the maps were made with")
        return labels

    def _missing_mask_error(self, unit: str) -> DataError:
        folders = [listing.folder for listing in (self.maps or self.binary)]
        kind = "label map" if self.maps or "_" not in unit else "mask"
        remedy = "add the label map, or one binary mask per class named by its token"
        return DataError(f"no {kind} for {unit}", file=next(iter(folders), None), unit=unit, remedy=remedy)
