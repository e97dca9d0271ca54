"""The objects that an interactive network is trained on: masks of objects where a dataset has them, else components.

A VOC devkit without object masks gives the connected parts of its class masks, of which two that touch are one object
only where they are of one class. Objects below the least area, those that smaller ones cover, and copies of images of a
test set are left out and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import PIL.Image
from numpy.typing import NDArray

from hardlook.data.label_maps import read_label_map
from hardlook.data.object_instances import ObjectInstance, list_instances
from hardlook.data.untrained_images import find_copies, is_held_back, read_excluded
from hardlook.data.voc import VocImage, open_devkit
from hardlook.errors import DataError
from hardlook.fingerprints import hash_array, hash_value

if TYPE_CHECKING:
    from hardlook.training.interactive.recipes import InteractiveRecipe
    from hardlook.training.interactive.trainee import InteractiveData

IGNORED, MOST_OBJECTS = 255, 254
AREA_SIDE = 500  # the longer side for which the least area counts pixels
FINEST = 2.5  # times the network's input: the longer side that images are kept at, as crops show 2/5 of it
SHOWN = 5  # of what is left out, so many are named
COMPONENTS, OBJECTS = "connected components of class masks", "masks of objects"
StartProgress = Callable[[int, int], Callable[[int, int], None]]
ObjectMap = NDArray[np.uint8]


@dataclass(frozen=True)
class ObjectDataOptions:
    """Which images: those of `paths`, of the list `split` of a devkit, without those of `exclude`.

    `held_back` is the share of images that validate.
    """

    paths: Mapping[str, Path]
    split: str | None = None
    exclude: Path | None = None
    held_back: float = 0.1


@dataclass(frozen=True, eq=False)
class _ObjectImage:
    """An image (H, W, 3) and its objects as a map (H, W).

    Not in the map are the objects beyond those that a byte can number, counted, and the `covered` ones, by name.
    """

    image: NDArray[np.uint8]
    map: ObjectMap
    beyond: int
    covered: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Source:
    """An image: its id, its file if it has one, and how image and objects are read."""

    name: str
    path: Path | None
    read: Callable[[], _ObjectImage]


def split_components(classes: NDArray[np.integer]) -> tuple[ObjectMap, int]:
    """The connected parts of each class, numbered from 1 by size, and how many do not fit into a byte.

    `classes` (H, W) has 0 for none and 255 for no label, which stays; pixels that touch at a corner are connected.

    >>> split_components(np.array([[1, 0, 1], [2, 0, 1]]))[0].tolist()
    [[2, 0, 1], [3, 0, 1]]
    """
    parts = []
    for number in np.unique(classes[(classes > 0) & (classes != IGNORED)]):
        count, labels = cv2.connectedComponents((classes == number).astype(np.uint8), connectivity=8)
        parts += [labels == part for part in range(1, count)]
    found, _ = _number(parts, classes == IGNORED)
    return found, _count_beyond(parts)


def _number(parts: Sequence[NDArray[np.bool_]], ignored: NDArray[np.bool_]) -> tuple[ObjectMap, list[int]]:
    """Masks (H, W) of objects as one map, and the places of those that are not seen in it.

    The largest comes first, so that a smaller one lies on a larger one, which smaller ones may cover wholly.
    """
    ordered = sorted(range(len(parts)), key=lambda place: -int(np.count_nonzero(parts[place])))[:MOST_OBJECTS]
    found = np.zeros(ignored.shape, np.uint8)
    for number, place in enumerate(ordered, start=1):
        found[parts[place]] = number
    found[ignored] = IGNORED
    seen = set(np.unique(found).tolist())
    return found, [place for number, place in enumerate(ordered, start=1) if number not in seen]


def _count_beyond(parts: Sequence[object]) -> int:
    """How many objects of an image a byte cannot number."""
    return max(0, len(parts) - MOST_OBJECTS)


def prepare_objects(
    options: ObjectDataOptions, recipe: InteractiveRecipe, start: StartProgress | None = None
) -> InteractiveData:
    """Images and maps of objects, decoded, no larger than the recipe's crops can use."""
    from hardlook.training.images.segmentation_images import pack_images
    from hardlook.training.interactive.trainee import InteractiveData

    sources, kind = _list_sources(options)
    kept, counts = _leave_out(sources, options)
    advance = start(len(kept), 0) if start is not None else None
    images: list[NDArray[np.uint8]] = []
    maps, names, hashes = [], [], []
    objects: list[tuple[int, int, bool]] = []
    covered: list[str] = []
    small = beyond = 0
    for source in kept:
        read = source.read()
        image, map_ = _reduce(read.image, read.map, round(FINEST * recipe.size))
        numbers, areas = np.unique(map_[(map_ > 0) & (map_ != IGNORED)], return_counts=True)
        least = max(1.0, recipe.least_area * (max(map_.shape) / AREA_SIDE) ** 2)
        large = numbers[areas >= least]
        # Of those in the map as it was read: of some, nothing is left in a smaller one.
        small += len(np.setdiff1d(read.map, (0, IGNORED))) - len(large)
        beyond += read.beyond
        covered += read.covered
        if advance is not None:
            advance(1, 0)
        if not len(large):
            continue
        held = is_held_back(source.name, options.held_back)
        objects += [(len(images), int(number), held) for number in large]
        hashes.append([source.name, hash_array(image), hash_array(map_)])
        images.append(image)
        maps.append(map_)
        names.append(source.name)
    if not objects:
        what = f"no object is left to train on ({small} are smaller than {recipe.least_area} pixels)"
        raise DataError(what, remedy="check --data, --split and --exclude, or --set least_area=0")
    table = np.array(objects, np.int64)
    if table[:, 2].all():
        table[:, 2] = 0
    held = table[:, 2] == 1
    rows: dict[bool, NDArray[np.int64]] = {flag: table[held == flag, :2] for flag in (False, True)}
    facts = {
        "fingerprint": hash_value(hashes),
        "objects": kind,
        **counts,
        "too_small_objects": small,
        "covered_objects": len(covered),
        **({"covered": covered[:SHOWN]} if covered else {}),
        "objects_beyond_254_of_an_image": beyond,
        "images_without_an_object": len(kept) - len(images),
        "trained_on": {"objects": len(rows[False]), "images": len(np.unique(rows[False][:, 0]))},
        "validation": {
            "objects": len(rows[True]),
            "images": len(np.unique(rows[True][:, 0])),
            **({} if held.any() else {"why": "no image was held back"}),
        },
    }
    return InteractiveData(pack_images(images, maps), rows[False], rows[True], tuple(names), facts)


def _list_sources(options: ObjectDataOptions) -> tuple[list[_Source], str]:
    """All images, and what their objects are."""
    if set(options.paths) == {"voc"}:
        devkit = open_devkit(options.paths["voc"])
        splits = [options.split] if options.split else devkit.splits()
        voc = [devkit.image(name) for name in dict.fromkeys(name for split in splits for name in devkit.ids(split))]
        whole = all(one.object_path is not None for one in voc)
        return [_Source(one.id, one.path, _ReadLabels(one, whole)) for one in voc], OBJECTS if whole else COMPONENTS
    listed = list_instances(options.paths, split=options.split).instances
    grouped: dict[str, list[ObjectInstance]] = {}
    for one in listed:
        grouped.setdefault(one.image_key, []).append(one)
    return [
        _Source(each[0].image_stem, each[0].stored.path if each[0].image is None else None, _ReadObjects(tuple(each)))
        for each in grouped.values()
    ], OBJECTS


@dataclass(frozen=True)
class _ReadLabels:
    image: VocImage
    whole: bool

    def __call__(self) -> _ObjectImage:
        pixels, file = self.image.read(), self.image.object_path if self.whole else self.image.class_path
        assert file is not None
        labels = read_label_map(file)
        if pixels.shape[:2] != labels.shape:
            sizes = (f"{width} x {height}" for height, width in (labels.shape, pixels.shape[:2]))
            what = "the mask has {} pixels, the image {}".format(*sizes)
            raise DataError(what, file=file, unit=self.image.id, remedy="give the mask of this image")
        if not self.whole:
            return _ObjectImage(pixels, *split_components(labels))
        parts = [labels == number for number in np.unique(labels[(labels > 0) & (labels != IGNORED)])]
        found, _ = _number(parts, labels == IGNORED)
        return _ObjectImage(pixels, found, _count_beyond(parts))


@dataclass(frozen=True)
class _ReadObjects:
    instances: tuple[ObjectInstance, ...]

    def __call__(self) -> _ObjectImage:
        targets = [one.read_target() for one in self.instances]
        masks = [one.mask for one in targets]
        # Copies of an image have masks of their own: what one ignores may be the object of another.
        ignored = np.any([one.ignore for one in targets], axis=0) & ~np.any(masks, axis=0)
        found, hidden = _number(masks, ignored)
        covered = [self.instances[place] for place in hidden]
        names = tuple(f"{one.dataset}/{one.full_stem}" for one in covered)
        return _ObjectImage(self.instances[0].read(), found, _count_beyond(masks), names)


def _leave_out(sources: Sequence[_Source], options: ObjectDataOptions) -> tuple[list[_Source], dict[str, Any]]:
    """The images that are neither excluded nor show a picture that is, and counts."""
    excluded = read_excluded(options.exclude)
    present = [one for one in sources if one.name not in excluded]
    # By place: images of two datasets may have one name.
    paths = {str(place): one.path for place, one in enumerate(present) if one.path is not None}
    copies = find_copies(paths, options.exclude)
    kept = [one for place, one in enumerate(present) if str(place) not in copies]
    leaks: dict[str, Any] = {"excluded_by_name": len(sources) - len(present), "copies_of_excluded": len(copies)}
    if copies:
        shown = sorted((present[int(place)].name, other) for place, other in copies.items())
        leaks["copies"] = [f"{name} shows {other}" for name, other in shown[:SHOWN]]
    if not kept:
        raise DataError(f"all {len(sources)} images are excluded", remedy="check --data and --exclude")
    return kept, {"images": len(sources), "leak_check": leaks}


def _reduce(image: NDArray[np.uint8], map_: ObjectMap, longest: int) -> tuple[NDArray[np.uint8], ObjectMap]:
    """Image and map, made smaller where their longer side exceeds `longest`."""
    longer = max(map_.shape)
    if longer <= longest:
        return np.ascontiguousarray(image), map_
    height, width = (max(1, round(side * longest / longer)) for side in map_.shape)
    smaller = PIL.Image.fromarray(np.ascontiguousarray(image)).resize((width, height), PIL.Image.Resampling.BILINEAR)
    reduced = PIL.Image.fromarray(map_).resize((width, height), PIL.Image.Resampling.NEAREST)
    return np.asarray(smaller), np.asarray(reduced)
