"""Matches of many images in one table, sorted once by score: what every AP, and every resample of it, is read from.

A resample of images changes how often an image counts and nothing else, so it costs one pass over the table and no
sorting. Copies of an image stand side by side in the order of scores.

>>> from hardlook.metrics.detection_inputs import Detections, Objects
>>> from hardlook.metrics.detection_matching import match_image
>>> image = match_image(Objects([0], area=[9]), Detections([1], [0.9], area=[9]), overlap=[[0.8]])
>>> table = match_table([image, image], classes=2)
>>> table.objects()[0].tolist(), table.resampled([0, 0, 0]).objects()[0].tolist(), table.label_counts()[0].tolist()
([2, 0], [3, 0], [0, 2])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardlook.metrics.detection_matching import AREA_RANGES, IOU_THRESHOLDS, ImageMatches

SETTINGS = len(AREA_RANGES) * len(IOU_THRESHOLDS)


@dataclass(frozen=True, eq=False)
class MatchTable:
    """N detections in descending score and M objects of all images.

    `labels`, `image`, `rank` (N,): class, image, place among the detections of its image and class. `by_class`,
    `pooled` (40, N): class of the object found, UNMATCHED or IGNORED, by area range and then threshold.
    `object_classes`, `object_image` (M,), `counted` (4, M). `multiplicity` (images,) says how often an image counts.
    """

    classes: int
    labels: NDArray[np.int16]
    image: NDArray[np.int32]
    rank: NDArray[np.int32]
    by_class: NDArray[np.int16]
    pooled: NDArray[np.int16]
    object_classes: NDArray[np.int16]
    object_image: NDArray[np.int32]
    counted: NDArray[np.bool_]
    multiplicity: NDArray[np.int64]

    def weighted(self, multiplicity: ArrayLike) -> MatchTable:
        """The table in which image i counts `multiplicity[i]` times, (images,) whole numbers."""
        given = np.asarray(multiplicity)
        if given.shape != self.multiplicity.shape or (given < 0).any():
            raise ValueError(f"multiplicity: expected {self.multiplicity.shape} counts, got {given.shape}")
        return replace(self, multiplicity=given.astype(np.int64))

    def resampled(self, images: ArrayLike) -> MatchTable:
        """The table of these images, given by index and with repetitions, in any order."""
        indices = np.asarray(images, np.int64)
        return self.weighted(np.bincount(indices, minlength=len(self.multiplicity)))

    def objects(self) -> NDArray[np.int64]:
        """(4, K) objects that count, by area range and class."""
        weights = self.multiplicity[self.object_image] * self.counted
        counts = [np.bincount(self.object_classes, row, minlength=self.classes) for row in weights]
        return np.array(counts).astype(np.int64)

    def label_counts(self, setting: int = 0) -> NDArray[np.int64]:
        """(K, K) objects of a class (row) found under a label (column), by one row of `pooled`: IoU .5, all areas."""
        found = self.pooled[setting]
        hit = found >= 0
        pairs = found[hit].astype(np.int64) * self.classes + self.labels[hit]
        counts = np.bincount(pairs, self.multiplicity[self.image[hit]], minlength=self.classes**2)
        return counts.astype(np.int64).reshape(self.classes, self.classes)


def match_table(images: Sequence[ImageMatches], classes: int) -> MatchTable:
    """One table of the images' matches; equal scores stand in the order image, class, file."""
    labels = _joined([image.labels for image in images], np.int16)
    scores = _joined([image.scores for image in images], np.float64)
    object_classes = _joined([image.object_classes for image in images], np.int16)
    largest = max(labels.max(initial=-1), object_classes.max(initial=-1))
    smallest = min(labels.min(initial=0), object_classes.min(initial=0))
    if smallest < 0 or largest >= classes:
        raise ValueError(f"classes: expected 0..{classes - 1}, got {smallest if smallest < 0 else largest}")
    image = np.repeat(np.arange(len(images), dtype=np.int32), [len(m.labels) for m in images])
    object_image = np.repeat(np.arange(len(images), dtype=np.int32), [len(m.object_classes) for m in images])
    order = np.lexsort((labels, image, -scores))
    return MatchTable(
        classes, labels[order], image[order], _ranks(labels, image, scores)[order],
        # take, and not an index, keeps each row in one piece of memory.
        np.take(_classes_found([(m.by_class, m.object_classes) for m in images]), order, axis=1),
        np.take(_classes_found([(m.pooled, m.object_classes) for m in images]), order, axis=1),
        object_classes, object_image,
        np.concatenate([m.counted for m in images] or [np.zeros((len(AREA_RANGES), 0), bool)], axis=1),
        np.ones(len(images), np.int64),
    )  # fmt: skip


def _classes_found(images: Sequence[tuple[NDArray[np.int16], NDArray[np.int16]]]) -> NDArray[np.int16]:
    # The last two entries of the lookup stand for UNMATCHED = -1 and IGNORED = -2, which index from the end.
    codes = np.array([-2, -1], np.int16)
    found = [np.concatenate([classes, codes])[matches].reshape(SETTINGS, -1) for matches, classes in images]
    return np.concatenate(found or [np.zeros((SETTINGS, 0), np.int16)], axis=1)


def _ranks(labels: NDArray[np.int16], image: NDArray[np.int32], scores: NDArray[np.float64]) -> NDArray[np.int32]:
    order = np.lexsort((-scores, labels, image))
    group = image[order].astype(np.int64) * (int(labels.max(initial=0)) + 1) + labels[order]
    ranks = np.empty(len(order), np.int32)
    ranks[order] = np.arange(len(order)) - np.searchsorted(group, group)
    return ranks


def _joined(parts: Sequence[NDArray[Any]], dtype: type) -> NDArray[Any]:
    return np.concatenate(parts) if parts else np.zeros(0, dtype)
