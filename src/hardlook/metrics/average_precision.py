"""Average precision and recall as COCO defines them, from a table of matches: hard, or soft under a similarity.

For each class with ground truth, in descending score: a detection matched to an object of the class is a true positive
with the similarity of its label as weight; a detection of this label is a false positive with weight 1 - similarity
if it is matched to another class, and with weight 1 if unmatched. Recall is over all objects of the class; precision
is interpolated at 101 levels of recall.

The table holds the matches of many images, sorted once by score. A resample of images changes only how often an image
counts, so it costs one pass over the table and no sorting.

>>> from hardlook.metrics.detection import Detections, Objects
>>> from hardlook.metrics.detection_matching import match_image
>>> image = match_image(Objects([0], area=[9]), Detections([1], [0.9], area=[9]), overlap=[[0.52]])
>>> table = build_match_table([image], classes=2)
>>> soft = soft_precision(table, np.array([[1, 0.5], [0.5, 1]]))
>>> round(soft.summary()["AP50"], 6), round(soft.summary()["AP"], 6)
(0.50495, 0.050495)
>>> table.objects()[0].tolist(), table.resampled([0, 0, 0]).objects()[0].tolist(), table.label_counts()[0].tolist()
([1, 0], [3, 0], [0, 1])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardlook.metrics.arrays import Values, checked_similarity
from hardlook.metrics.detection_matching import AREA_RANGES, IOU_THRESHOLDS, ImageMatches

RECALL_LEVELS = np.linspace(0.0, 1.0, 101)
N_SETTINGS = len(AREA_RANGES) * len(IOU_THRESHOLDS)
_AT_50, _AT_75 = 0, 5  # the indices of the thresholds .5 and .75 among the ten
_SHAPE = (len(AREA_RANGES), len(IOU_THRESHOLDS))


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
        """(K, K) matched objects by class and predicted label, by row `setting` of `pooled` (0: IoU .5, all areas)."""
        found = self.pooled[setting]
        hit = found >= 0
        pairs = found[hit].astype(np.int64) * self.classes + self.labels[hit]
        counts = np.bincount(pairs, self.multiplicity[self.image[hit]], minlength=self.classes**2)
        return counts.astype(np.int64).reshape(self.classes, self.classes)


def build_match_table(images: Sequence[ImageMatches], classes: int) -> MatchTable:
    """One table of the images' matches; equal scores are ordered by image, class and place in the file."""
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
        # np.take, unlike indexing, keeps each row contiguous in memory.
        np.take(_classes_found([(m.by_class, m.object_classes) for m in images]), order, axis=1),
        np.take(_classes_found([(m.pooled, m.object_classes) for m in images]), order, axis=1),
        object_classes, object_image,
        np.concatenate([m.counted for m in images] or [np.zeros((len(AREA_RANGES), 0), bool)], axis=1),
        np.ones(len(images), np.int64),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class ApTable:
    """AP and recall of every area range, IoU threshold and class.

    `precision` and `recall` (4 area ranges, 10 thresholds, K), NaN for a class without objects in the range;
    `recall_at` maps the number of detections allowed per image and class to recall (10, K).
    """

    precision: NDArray[np.float64]
    recall: NDArray[np.float64]
    recall_at: Mapping[int, NDArray[np.float64]] = field(default_factory=dict)

    def per_class(self) -> NDArray[np.float64]:
        """(K,) AP of each class over the ten thresholds, all areas; NaN for a class without objects."""
        return np.asarray(self.precision[0].mean(0))

    def summary(self, classes: Sequence[int] | NDArray[np.int64] | None = None) -> dict[str, float]:
        """COCO's figures, averaged over all classes with objects or over those of them listed; NaN if there is none."""
        chosen = slice(None) if classes is None else np.asarray(classes, np.int64)
        precision, recall = self.precision[..., chosen], self.recall[..., chosen]
        figures = {"AP": precision[0], "AP50": precision[0, _AT_50], "AP75": precision[0, _AT_75]}
        figures |= {f"AP{name[0]}": precision[i] for i, name in enumerate(AREA_RANGES) if i}
        figures |= {f"AR{limit}": values[..., chosen] for limit, values in sorted(self.recall_at.items())}
        figures |= {"AR": recall[0]} | {f"AR{name[0]}": recall[i] for i, name in enumerate(AREA_RANGES) if i}
        return {name: _mean(values) for name, values in figures.items()}


def vanilla_precision(table: MatchTable) -> ApTable:
    """COCO's AP, as pycocotools: matched within classes; other labels get no credit."""
    recall_at = {limit: _compute_recall_at(table, limit) for limit in (1, 10)}
    precision, recall = _accumulated(table, table.by_class, np.eye(table.classes))
    return ApTable(precision, recall, recall_at)


def soft_precision(table: MatchTable, similarity: Values | None = None) -> ApTable:
    """Open AP under a similarity (K, K), rows true and columns predicted; AP-dagger without one. Both pool classes."""
    alike = np.eye(table.classes) if similarity is None else checked_similarity(similarity, table.classes)
    return ApTable(*_accumulated(table, table.pooled, alike))


def _accumulated(
    table: MatchTable, matched: NDArray[np.int16], similarity: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    from hardlook.metrics.kernels.precision import accumulate

    objects = np.repeat(table.objects(), len(IOU_THRESHOLDS), axis=0).astype(np.float64)
    precision, recall = np.full(objects.shape, np.nan), np.full(objects.shape, np.nan)
    weights = table.multiplicity[table.image].astype(np.float64)
    alike = np.ascontiguousarray(similarity)
    accumulate(matched, table.labels, weights, objects, alike, RECALL_LEVELS, precision, recall)
    return precision.reshape(*_SHAPE, -1), recall.reshape(*_SHAPE, -1)


def _compute_recall_at(table: MatchTable, limit: int) -> NDArray[np.float64]:
    """(10, K) recall over all areas when only the best `limit` detections per image and class count."""
    first = table.rank < limit
    labels, found = table.labels[first], table.by_class[: len(IOU_THRESHOLDS), first] >= 0
    weights = found * table.multiplicity[table.image[first]]
    hits = np.array([np.bincount(labels, row, minlength=table.classes) for row in weights])
    objects = table.objects()[0].astype(np.float64)
    return np.asarray(np.divide(hits, objects, out=np.full(hits.shape, np.nan), where=objects > 0))


def _mean(values: NDArray[np.float64]) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else float("nan")


def _classes_found(images: Sequence[tuple[NDArray[np.int16], NDArray[np.int16]]]) -> NDArray[np.int16]:
    # The last two entries of the lookup stand for UNMATCHED = -1 and IGNORED = -2, which index from the end.
    codes = np.array([-2, -1], np.int16)
    found = [np.concatenate([classes, codes])[matches].reshape(N_SETTINGS, -1) for matches, classes in images]
    return np.concatenate(found or [np.zeros((N_SETTINGS, 0), np.int16)], axis=1)


def _ranks(labels: NDArray[np.int16], image: NDArray[np.int32], scores: NDArray[np.float64]) -> NDArray[np.int32]:
    order = np.lexsort((-scores, labels, image))
    group = image[order].astype(np.int64) * (int(labels.max(initial=0)) + 1) + labels[order]
    ranks = np.empty(len(order), np.int32)
    ranks[order] = np.arange(len(order)) - np.searchsorted(group, group)
    return ranks


def _joined(parts: Sequence[NDArray[Any]], dtype: type) -> NDArray[Any]:
    return np.concatenate(parts) if parts else np.zeros(0, dtype)
