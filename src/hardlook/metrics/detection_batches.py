"""Matching the detections of many images in one compiled call: the table of `match_image` and `build_match_table`.

>>> truth, found = Objects([0], boxes=[[0, 0, 9, 9]]), Detections([1], [0.9], boxes=[[0, 0, 9, 9]])
>>> table = match_at_once([keep_image(truth, found, "bbox")], classes=2)
>>> table.by_class[0].tolist(), table.pooled[0].tolist()
([-1], [0])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.metrics.arrays import Values
from hardlook.metrics.average_precision import N_SETTINGS, MatchTable, rank_detections
from hardlook.metrics.detection import IGNORED, Detections, IouType, Objects, compute_areas, compute_overlaps
from hardlook.metrics.detection_matching import (
    AREA_HIGH,
    AREA_LOW,
    AREA_RANGES,
    IOU_THRESHOLDS,
    check_overlap,
    check_sizes,
)


@dataclass(frozen=True, eq=False)
class ImageArrays:
    """What matching needs of one image, copied: D detections, G objects.

    `overlap` (D, G) is None where it comes from `boxes` (D, 4) and `object_boxes` (G, 4). `truth` has the objects
    without boxes and masks.
    """

    labels: NDArray[np.int64]
    scores: NDArray[np.float64]
    area: NDArray[np.float64]
    boxes: NDArray[np.float64]
    object_boxes: NDArray[np.float64]
    overlap: NDArray[np.float64] | None
    truth: Objects

    def detections(self) -> Detections:
        """The detections without boxes and masks."""
        return Detections(self.labels, self.scores, area=self.area)

    def compute_overlap(self) -> NDArray[np.float64]:
        """(D, G) overlaps."""
        if self.overlap is not None:
            return self.overlap
        found = Detections(self.labels, self.scores, boxes=self.boxes)
        truth = Objects(self.truth.classes, boxes=self.object_boxes, crowd=self.truth.crowd)
        return compute_overlaps(found, truth, "bbox")


def keep_image(truth: Objects, found: Detections, iou_type: IouType, overlap: Values | None = None) -> ImageArrays:
    """The arrays of one image; overlaps of masks are computed now, those of boxes when all images are matched."""
    n, objects = len(found.classes), len(truth.classes)
    boxes = object_boxes = _NO_BOXES
    shared: NDArray[np.float64] | None = None
    if overlap is not None:
        shared = check_overlap(overlap, n, objects)
    elif iou_type == "bbox" and found.boxes is not None and truth.boxes is not None:
        boxes, object_boxes = found.boxes.copy(), truth.boxes.copy()
    else:
        shared = compute_overlaps(found, truth, iou_type)
    area, object_area = compute_areas(found, iou_type), compute_areas(truth, iou_type)
    return ImageArrays(
        found.classes.copy(), found.scores.copy(), area.copy(), boxes, object_boxes, shared,
        truth.without_regions(object_area.copy()),
    )  # fmt: skip


_NO_BOXES = np.zeros((0, 4))


def match_at_once(
    images: Sequence[ImageArrays],
    classes: int,
    *,
    max_detections: int = 100,
    released: bool = False,
    category_zero: int | None = 0,
) -> MatchTable:
    """The table of the matches of all images, none of them federated; the options are those of `match_image`."""
    from hardlook.metrics.kernels.matching import match_many

    check_sizes(classes)
    labels, scores = _join([i.labels for i in images], np.int64), _join([i.scores for i in images], np.float64)
    object_classes = _join([i.truth.classes for i in images], np.int64)
    crowd, ignore = (_join([getattr(i.truth, name) for i in images], np.bool_) for name in ("crowd", "ignore"))
    area, object_area = (
        _join(parts, np.float64) for parts in ([i.area for i in images], [i.truth.area for i in images])
    )
    counts, object_counts = [len(i.labels) for i in images], [len(i.truth.classes) for i in images]
    image, object_image = (np.repeat(np.arange(len(images), dtype=np.int32), n) for n in (counts, object_counts))
    if all(i.overlap is None for i in images):
        overlaps = np.zeros(0)
        boxes, object_boxes = (
            np.concatenate([i.boxes for i in images]),
            np.concatenate([i.object_boxes for i in images]),
        )
    else:
        overlaps = np.concatenate([i.compute_overlap().reshape(-1) for i in images])
        boxes, object_boxes = np.zeros((len(labels), 4)), np.zeros((len(object_classes), 4))
    ignored = ignore | (object_area < AREA_LOW) | (object_area > AREA_HIGH)
    order, orders, ranks = rank_detections(labels, image, scores)
    trapped = np.zeros((2, len(object_classes)), bool)
    if released:
        ids = [np.ones(len(i.truth.classes), np.int64) if i.truth.ids is None else i.truth.ids for i in images]
        trapped[:] = _join(ids, np.int64) == 0
        trapped[1] |= object_classes == (-1 if category_zero is None else category_zero)
    matches = np.full((2, len(AREA_RANGES), len(IOU_THRESHOLDS), len(labels)), IGNORED, np.int16)
    match_many(
        np.cumsum([0, *counts]), np.cumsum([0, *object_counts]), boxes, object_boxes, overlaps, labels, object_classes,
        crowd, ignored, (area < AREA_LOW) | (area > AREA_HIGH), orders, ranks,
        np.lexsort((object_classes, object_image)), trapped, max_detections, IOU_THRESHOLDS, matches,
    )  # fmt: skip
    by_class, pooled = (np.take(kind.reshape(N_SETTINGS, len(order)), order, axis=1) for kind in matches)
    return MatchTable(
        classes, labels[order].astype(np.int16), image[order], ranks[0][order], ranks[1][order],
        by_class, pooled, np.zeros(len(order), bool),
        object_classes.astype(np.int16), object_image, ~ignored, np.ones(len(images), np.int64),
    )  # fmt: skip


def _join(parts: Sequence[Any], dtype: type) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype), *parts])
