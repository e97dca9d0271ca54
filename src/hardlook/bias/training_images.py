"""The training images of a one-shot split: which classes each holds, and how much of its salience is labelled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hardlook.bias.class_folds import ClassSplit
from hardlook.bias.salient_masks import SalientMasks
from hardlook.bias.selection import Coverage, coverage_counts
from hardlook.data.class_masks import ClassMasks
from hardlook.errors import DataError

BATCH = 8


@dataclass(frozen=True)
class LabelledImage:
    """An image and its tokens: one a class that has pixels in it. `classes` are the names, in the tokens' order."""

    image: str
    tokens: tuple[str, ...]
    classes: tuple[str, ...]


@dataclass(frozen=True)
class Unread:
    """An image that could not be read, and why."""

    image: str
    reason: str


def labelled_images(source: ClassMasks, images: Iterable[str] | None = None) -> list[LabelledImage]:
    """All images of a source with their classes, sorted by id; only those named where `images` is given.

    An image that is named and has no class at all stands in the list without tokens; one that cannot be read does not
    stand in it (`unreadable_images`).
    """
    found: dict[str, list[str]] = {}
    for token in source.tokens():
        found.setdefault(source.image_of(token), []).append(token)
    chosen = sorted(set(found) if images is None else set(images) - set(source.unreadable()))
    return [
        LabelledImage(image, tuple(tokens), tuple(source.class_of(token) for token in tokens))
        for image in chosen
        for tokens in [found.get(image, [])]
    ]


def unreadable_images(source: ClassMasks, images: Iterable[str] | None = None) -> tuple[Unread, ...]:
    """The images of a source that cannot be read, sorted by id; only those named where `images` is given."""
    named = None if images is None else set(images)
    broken = sorted(source.unreadable().items())
    return tuple(Unread(image, why) for image, why in broken if named is None or image in named)


def training_images(images: Sequence[LabelledImage], split: ClassSplit) -> list[LabelledImage]:
    """The images that hold at least one training class.

    >>> images = [LabelledImage("a", ("1_a",), ("cat",)), LabelledImage("b", ("2_b",), ("car",))]
    >>> [one.image for one in training_images(images, ClassSplit(("cat",), ("car",), ""))]
    ['a']
    """
    training = set(split.training)
    return [one for one in images if training & set(one.classes)]


def read_training_mask(source: ClassMasks, image: LabelledImage, split: ClassSplit) -> NDArray[np.bool_]:
    """The union (H, W) of the masks of all training classes of an image."""
    training = [token for token, name in zip(image.tokens, image.classes, strict=True) if name in split.training]
    masks = [source.read_mask(token).mask for token in training]
    return np.asarray(np.logical_or.reduce(masks), dtype=np.bool_)


def measure_coverage(
    source: ClassMasks,
    images: Sequence[LabelledImage],
    split: ClassSplit,
    salient: SalientMasks,
    advance: Callable[[int, int], None],
) -> tuple[list[Coverage], list[Unread]]:
    """Salient and covered pixels of every training image, a few at a time.

    An image that cannot be read is returned with its reason and stops nothing. `advance(done, failed)` is told of
    every batch.
    """
    rows: list[Coverage] = []
    unread: list[Unread] = []
    for start in range(0, len(images), BATCH):
        batch, failed = images[start : start + BATCH], 0
        read: list[tuple[LabelledImage, NDArray[np.uint8], NDArray[np.bool_]]] = []
        for one in batch:
            try:
                read.append((one, source.read_image(one.tokens[0]), read_training_mask(source, one, split)))
            except DataError as error:
                unread.append(Unread(one.image, error.what))
                failed += 1
        masks = salient.masks([image for _, image, _ in read])
        for (one, _, training), mask in zip(read, masks, strict=True):
            rows.append(Coverage(one.image, *coverage_counts(training, mask), one.classes))
        advance(len(batch), failed)
    return rows, unread
