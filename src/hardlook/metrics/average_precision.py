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

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardlook.metrics.arrays import Values, checked_similarity
from hardlook.metrics.detection_matching import AREA_RANGES, IOU_THRESHOLDS, ImageMatches

RECALL_LEVELS = np.linspace(0.0, 1.0, 101)
RECALL_LIMITS = (1, 10)  # detections, for recall of few
N_SETTINGS = len(AREA_RANGES) * len(IOU_THRESHOLDS)
_AT_50, _AT_75 = 0, 5  # the indices of the thresholds .5 and .75 among the ten
_SHAPE = (len(AREA_RANGES), len(IOU_THRESHOLDS))


@dataclass(frozen=True, eq=False)
class MatchTable:
    """N detections in descending score and M objects of all images.

    `labels`, `image` (N,): class and image. `rank`, `pooled_rank` (N,): rank from 0 among the detections of its image
    and class, and of its image; both are the latter where the image is federated. `by_class`, `pooled` (40, N): class
    of the object found, UNMATCHED or IGNORED, by area range and then threshold. `excused` (N,): no false positive of
    its class. `object_classes`, `object_image` (M,), `counted` (4, M). `multiplicity` (images,) says how often an image
    counts.
    """

    classes: int
    labels: NDArray[np.int16]
    image: NDArray[np.int32]
    rank: NDArray[np.int32]
    pooled_rank: NDArray[np.int32]
    by_class: NDArray[np.int16]
    pooled: NDArray[np.int16]
    excused: NDArray[np.bool_]
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

    def separate_excused(self, similarity: NDArray[np.float64]) -> tuple[NDArray[np.int16], NDArray[np.float64]]:
        """Labels (N,) and similarity (K, K + E) in which excused detections have labels of their own, as similar.

        The E further labels stand for the classes that excused detections have. No object has them, so that a false
        positive of theirs lowers no precision, and a hit counts for the class of its object as before.
        """
        doubled, place = np.unique(self.labels[self.excused], return_inverse=True)
        if self.classes + len(doubled) > np.iinfo(np.int16).max:
            raise ValueError(f"classes: expected at most {np.iinfo(np.int16).max}, with those that are not exhaustive")
        labels = self.labels.copy()
        labels[self.excused] = self.classes + place
        return labels, np.ascontiguousarray(np.concatenate([similarity, similarity[:, doubled]], axis=1))


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
    order, _, (rank, pooled_rank) = rank_detections(labels, image, scores)
    federated = np.repeat([m.rank is not None for m in images], [len(m.labels) for m in images]).astype(bool)
    rank[federated] = pooled_rank[federated] = _joined([m.rank for m in images if m.rank is not None], np.int64)
    excused = [np.zeros(len(m.labels), bool) if m.excused is None else m.excused for m in images]
    return MatchTable(
        classes, labels[order], image[order], rank[order], pooled_rank[order],
        # np.take, unlike indexing, keeps each row contiguous in memory.
        np.take(_classes_found([(m.by_class, m.object_classes) for m in images]), order, axis=1),
        np.take(_classes_found([(m.pooled, m.object_classes) for m in images]), order, axis=1),
        _joined(excused, np.bool_)[order], object_classes, object_image,
        np.concatenate([m.counted for m in images] or [np.zeros((len(AREA_RANGES), 0), bool)], axis=1),
        np.ones(len(images), np.int64),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class ApTable:
    """AP and recall of every area range, IoU threshold and class.

    `precision` and `recall` (4 area ranges, 10 thresholds, K), NaN for a class without objects in the range;
    `recall_at` maps the number of detections allowed to recall (10, K): per image and class where these are matched
    by class, else per image.
    """

    precision: NDArray[np.float64]
    recall: NDArray[np.float64]
    recall_at: Mapping[int, NDArray[np.float64]] = field(default_factory=dict)

    def per_class(self, figure: Literal["AP", "AP50", "AR"] = "AP") -> NDArray[np.float64]:
        """(K,) AP or AR of each class over the ten thresholds, or AP at .5, all areas; NaN for one without objects."""
        if figure == "AP50":
            return np.asarray(self.precision[0, _AT_50])
        return np.asarray((self.precision if figure == "AP" else self.recall)[0].mean(0))

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
    """COCO's AP, as pycocotools, or LVIS's: matched within classes; other labels get no credit."""
    return _compute_precision(table, table.by_class, table.rank, np.eye(table.classes))


def soft_precision(table: MatchTable, similarity: Values | None = None) -> ApTable:
    """Open AP under a similarity (K, K), rows true and columns predicted; AP-dagger without one. Both pool classes."""
    alike = np.eye(table.classes) if similarity is None else checked_similarity(similarity, table.classes)
    return _compute_precision(table, table.pooled, table.pooled_rank, alike)


def _compute_precision(
    table: MatchTable, matched: NDArray[np.int16], rank: NDArray[np.int32], similarity: NDArray[np.float64]
) -> ApTable:
    from hardlook.metrics.kernels.precision import accumulate, count_early_hits

    labels, alike = table.separate_excused(similarity)
    counts = table.objects()
    objects = repeat_objects(counts, alike.shape[1])
    precision, recall = np.full(objects.shape, np.nan), np.full(objects.shape, np.nan)
    weights = table.multiplicity[table.image].astype(np.float64)
    accumulate(matched, labels, weights, objects, alike, RECALL_LEVELS, precision, recall)
    hits = np.zeros((len(RECALL_LIMITS), len(IOU_THRESHOLDS), table.classes))
    over_all = matched[: len(IOU_THRESHOLDS)]
    count_early_hits(over_all, table.labels, rank, weights, similarity, np.array(RECALL_LIMITS), hits)
    recall_at = {limit: _divide_by_objects(found, counts) for limit, found in zip(RECALL_LIMITS, hits, strict=True)}
    return make_ap_table(precision, recall, recall_at)


def repeat_objects(counts: NDArray[np.int64], labels: int) -> NDArray[np.float64]:
    """(40, labels) objects by setting, from `counts` (4, K) by area range; labels beyond the classes have none."""
    further = np.zeros((len(counts), labels - counts.shape[1]), np.int64)
    return np.repeat(np.concatenate([counts, further], axis=1), len(IOU_THRESHOLDS), axis=0).astype(np.float64)


def make_ap_table(
    precision: NDArray[np.float64], recall: NDArray[np.float64], recall_at: Mapping[int, NDArray[np.float64]]
) -> ApTable:
    """The table of `precision` and `recall` (40, labels) by setting, of as many classes as `recall_at` has."""
    classes = next(iter(recall_at.values())).shape[1]
    by_setting = [values.reshape(*_SHAPE, -1)[..., :classes] for values in (precision, recall)]
    return ApTable(by_setting[0], by_setting[1], recall_at)


class FewDetections:
    """Recall over all areas when only the detections of a `rank` (N,) below `limit` count, for any weighting of images.

    `matched` (40, N) is as in the table; a match counts as found by `similarity` (K, K).
    """

    def __init__(
        self, table: MatchTable, matched: NDArray[np.int16], rank: NDArray[np.int32],
        similarity: NDArray[np.float64], limit: int,
    ) -> None:  # fmt: skip
        first = np.flatnonzero(rank < limit)
        found = matched[: len(IOU_THRESHOLDS), first]
        setting, column = np.nonzero(found >= 0)
        true, detection = found[setting, column].astype(np.int64), first[column]
        self._cell = setting * table.classes + true
        self._credit = similarity[true, table.labels[detection]]
        self._image = table.image[detection]

    def compute_recall(self, multiplicity: NDArray[np.int64], objects: NDArray[np.int64]) -> NDArray[np.float64]:
        """(10, K) recall where image i counts `multiplicity[i]` times; `objects` (4, K) are counted with it."""
        shape = len(IOU_THRESHOLDS), objects.shape[1]
        weights = self._credit * multiplicity[self._image]
        hits = np.bincount(self._cell, weights, minlength=shape[0] * shape[1]).reshape(shape)
        return _divide_by_objects(hits.astype(np.float64, copy=False), objects)


def _divide_by_objects(hits: NDArray[np.float64], objects: NDArray[np.int64]) -> NDArray[np.float64]:
    """(10, K) recall over all areas, NaN for a class without objects; `objects` (4, K) by area range."""
    present = objects[0].astype(np.float64)
    return np.asarray(np.divide(hits, present, out=np.full(hits.shape, np.nan), where=present > 0))


def _mean(values: NDArray[np.float64]) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else float("nan")


def _classes_found(images: Sequence[tuple[NDArray[np.int16], NDArray[np.int16]]]) -> NDArray[np.int16]:
    # The last two entries of the lookup stand for UNMATCHED = -1 and IGNORED = -2, which index from the end.
    codes = np.array([-2, -1], np.int16)
    found = [np.concatenate([classes, codes])[matches].reshape(N_SETTINGS, -1) for matches, classes in images]
    return np.concatenate(found or [np.zeros((N_SETTINGS, 0), np.int16)], axis=1)


def rank_detections(
    labels: NDArray[np.integer], image: NDArray[np.int32], scores: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    """The order (N,) of all detections by descending score, equal ones by image and class; (2, N) orders; (2, N) ranks.

    The latter two are by score within image and class, and within the image, where equal scores are ordered by class.
    Both have the detections of one image after those of the image before.
    """
    by_score = np.unique(-scores, return_inverse=True)[1].reshape(-1)
    orders = np.stack([_sort_by(image, labels, by_score), _sort_by(image, by_score, labels)])
    classes = image.astype(np.int64) * (int(labels.max(initial=0)) + 1) + labels
    ranks = np.stack([_rank_within(classes, orders[0]), _rank_within(image, orders[1])])
    return _sort_by(by_score, image, labels), orders, ranks


def _sort_by(*keys: NDArray[np.integer]) -> NDArray[np.int64]:
    """The order (N,) that sorts by the first of the keys (N,), all from 0 on, then by the next; equal ones stay."""
    sizes = [int(key.max(initial=0)) + 1 for key in keys]
    if math.prod([*sizes, len(keys[0])]) >= 2**63:
        return np.asarray(np.lexsort(keys[::-1]), np.int64)
    # One sort of whole numbers that all differ takes a tenth of the time.
    joined = np.zeros(len(keys[0]), np.int64)
    for key, size in zip(keys, sizes, strict=True):
        joined = joined * size + key
    return np.asarray(np.argsort(joined * len(joined) + np.arange(len(joined))), np.int64)


def _rank_within(groups: NDArray[Any], order: NDArray[np.intp]) -> NDArray[np.int32]:
    """(N,) the rank, from 0, within its group, where `order` (N,) sorts by `groups` (N,) first."""
    ranks = np.empty(len(order), np.int32)
    ranks[order] = np.arange(len(order)) - np.searchsorted(groups[order], groups[order])
    return ranks


def _joined(parts: Sequence[NDArray[Any]], dtype: type) -> NDArray[Any]:
    return np.concatenate(parts) if parts else np.zeros(0, dtype)
