"""Reading a pair: its images, its truth and its supports, each file once while it stays on the shelf."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.benchmarks.one_shot_pairs.pairs import OneShotPair, PairSettings
from hardlook.benchmarks.one_shot_pairs.shelf import Shelf
from hardlook.data.class_masks import ClassMask
from hardlook.data.label_maps import read_label_map
from hardlook.errors import DataError
from hardlook.models.roles import Image, Mask, Support
from hardlook.tiers.rigid_transforms import RigidTransform, moved_image, moved_mask, transform_that_keeps
from hardlook.world.signature import is_signed


def read_pair(pair: OneShotPair, unit: str, shelf: Shelf) -> OneShotPair:
    """The pair with its arrays; a `DataError` names the file that cannot be read."""
    settings = pair.settings
    image, truth = read_image(settings, pair.query, shelf), read_truth(settings, pair.query, shelf)
    if pair.transform:
        # The copy of a class and number is the same wherever it is made, so the shelf may hold it too.
        place = (settings.key, settings.size, settings.seed, pair.query, pair.transform)
        transform = shelf.get((*place, "transform"), lambda: _transform(pair, truth))
        still, still_true = image, truth
        image = shelf.get((*place, "image"), lambda: moved_image(transform, still, exact=is_signed(still)))
        truth = shelf.get(
            (*place, "truth"),
            lambda: ClassMask(moved_mask(transform, still_true.mask), moved_mask(transform, still_true.void)),
        )
    shown = tuple(_support(pair, token, shelf) for token in pair.supports)
    predicted = _stored(settings.predictions, unit, truth) if settings.predictions else None
    return replace(pair, image=image, truth=truth, support=shown, predicted=predicted)


def read_image(settings: PairSettings, token: str, shelf: Shelf) -> Image:
    """The image of a token at the evaluation's size."""
    source, size = settings.source, settings.size

    def make() -> Image:
        image = source.read_image(token)
        if not size:
            return image
        # Planted models read truth from a picture's low bits: such pixels may be moved and not mixed.
        return _scaled(image, size, cv2.INTER_NEAREST if is_signed(image) else cv2.INTER_LINEAR)

    # By image, not by token: two classes of one image share it.
    return shelf.get((settings.key, size, source.image_of(token), "image"), make)


def read_truth(settings: PairSettings, token: str, shelf: Shelf) -> ClassMask:
    """The truth of a token at the evaluation's size."""
    source, size = settings.source, settings.size

    def make() -> ClassMask:
        truth = source.read_mask(token)
        if not size:
            return truth
        return ClassMask(*(_scaled(part.astype(np.uint8), size).astype(bool) for part in (truth.mask, truth.void)))

    return shelf.get((settings.key, size, token, "truth"), make)


def _scaled(array: NDArray[np.uint8], size: int, how: int = cv2.INTER_NEAREST) -> NDArray[np.uint8]:
    return np.asarray(cv2.resize(array, (size, size), interpolation=how), np.uint8)


def _transform(pair: OneShotPair, truth: ClassMask) -> RigidTransform:
    return transform_that_keeps(truth.mask, pair.settings.seed, pair.query, pair.transform)


def _support(pair: OneShotPair, token: str, shelf: Shelf) -> Support:
    settings = pair.settings
    image, truth = read_image(settings, token, shelf), read_truth(settings, token, shelf)
    shape, mask = image.shape, truth.mask
    # One array for all supports of a size: models know by the array what they have described already.
    if pair.shown in ("no image", "nothing"):
        image = shelf.get(("black", shape), lambda: np.zeros(shape, np.uint8))
    if pair.shown in ("no mask", "nothing"):
        mask = shelf.get(("no mask", shape[:2]), lambda: np.zeros(shape[:2], bool))
    return Support(image, mask)


def _stored(folder: Path, unit: str, truth: ClassMask) -> Mask:
    height, width = truth.mask.shape
    path = folder / f"{unit}.png"
    if not path.is_file():
        raise DataError("no stored prediction of this pair", file=path, unit=unit, remedy="masks are called UNIT.png")
    mask: Mask = read_label_map(path, size=(width, height)) != 0
    return mask
