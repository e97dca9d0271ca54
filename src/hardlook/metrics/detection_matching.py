"""Which detection found which object: COCO's greedy matching of one image, per class and with classes pooled.

The result needs no similarity, so one matching serves every similarity matrix.

>>> truth = Objects([0, 1], boxes=[[0, 0, 10, 10], [20, 0, 10, 10]])
>>> found = Detections([1, 0], [0.9, 0.8], boxes=[[0, 0, 10, 10], [0, 0, 10, 9]])
>>> matched = match_image(truth, found, iou_type="bbox")
>>> matched.by_class[0, 0].tolist(), matched.pooled[0, 0].tolist()
([-1, 0], [0, -1])
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hardlook.metrics.arrays import ROUNDING, Values, as_numpy
from hardlook.metrics.detection import IGNORED, Detections, IouType, Objects, compute_areas, compute_overlaps

IOU_THRESHOLDS = np.linspace(0.5, 0.95, 10)
AREA_RANGES = {"all": (0.0, 1e10), "small": (0.0, 32.0**2), "medium": (32.0**2, 96.0**2), "large": (96.0**2, 1e10)}
AREA_LOW, AREA_HIGH = np.array(list(AREA_RANGES.values())).T[:, :, None]


@dataclass(frozen=True, eq=False)
class ImageMatches:
    """What one image adds to the scores: D detections and G objects in the given order.

    `labels` (D,) and `scores` (D,) of the detections; `by_class` and `pooled` (4 area ranges, 10 thresholds, D) hold
    the index of the object found, UNMATCHED, or IGNORED (found a crowd or an object outside the area range, is itself
    unmatched and outside, or is beyond the number of detections that count); `object_classes` (G,); `counted`
    (4, G) says whether an object counts in an area range.

    Of a federated image only the detections that count are there. `rank` (D,) is their rank from 0 among all of the
    image, and `excused` (D,) marks those that are not false positives of their class, because it is not annotated
    exhaustively; both are None for other images.
    """

    labels: NDArray[np.int16]
    scores: NDArray[np.float64]
    by_class: NDArray[np.int16]
    pooled: NDArray[np.int16]
    object_classes: NDArray[np.int16]
    counted: NDArray[np.bool_]
    rank: NDArray[np.int64] | None = None
    excused: NDArray[np.bool_] | None = None


def match_image(
    truth: Objects,
    found: Detections,
    *,
    iou_type: IouType = "segm",
    overlap: Values | None = None,
    max_detections: int = 100,
    released: bool = False,
    category_zero: int | None = 0,
) -> ImageMatches:
    """Match the detections of one image, at ten IoU thresholds and in four area ranges.

    `overlap` is (D, G), computed from boxes or masks when it is not given. At most `max_detections` count: per class
    in `by_class`, over all classes in `pooled`. Detections are matched in descending score, equal ones by class, then
    in the given order; of equally good objects the last one is taken, by class and then in the given order.

    Where `truth.negative` is given, LVIS's rules hold: at most `max_detections` of the whole image count, equal scores
    in the given order; of these only detections of classes that have objects or are negative; and one of a class that
    is not exhaustively annotated is ignored when unmatched.

    `released` reads as unmatched what the released code does: a match with the annotation whose id is 0 and, pooled,
    with any object of the class whose category id is 0, which is class `category_zero` (None where there is none).

    >>> truth, found = Objects([0], boxes=[[0, 0, 9, 9]]), Detections([0], [0.9], boxes=[[0, 0, 9, 9]])
    >>> match_image(truth, found, iou_type="bbox", released=True).pooled[0, 0].tolist()
    [-1]
    """
    from hardlook.metrics.kernels.matching import match_greedily

    given = (len(found.classes), len(truth.classes))
    overlap = compute_overlaps(found, truth, iou_type) if overlap is None else check_overlap(overlap, *given)
    object_area, area = compute_areas(truth, iou_type), compute_areas(found, iou_type)
    rank = excused = None
    if truth.negative is not None and truth.not_exhaustive is not None:
        rank, kept = _rank_verified(truth.classes, truth.negative, found, max_detections)
        found, overlap, area = Detections(found.classes[kept], found.scores[kept]), overlap[kept], area[kept]
        excused = np.isin(found.classes, truth.not_exhaustive)
    detections, objects = len(found.classes), len(truth.classes)
    check_sizes(max(found.classes.max(initial=0), truth.classes.max(initial=0)) + 1, objects)
    ignored = truth.ignore | (object_area < AREA_LOW) | (object_area > AREA_HIGH)
    outside = (area < AREA_LOW) | (area > AREA_HIGH) | (False if excused is None else excused)
    no_trap = np.zeros(objects, bool)
    id_trap = truth.ids == 0 if released and truth.ids is not None else no_trap
    class_trap = truth.classes == category_zero if released and category_zero is not None else no_trap
    columns = np.argsort(truth.classes, kind="stable")
    shape = (len(AREA_RANGES), len(IOU_THRESHOLDS), detections)
    by_class, pooled = np.full(shape, IGNORED, np.int16), np.full(shape, IGNORED, np.int16)
    for matches, order, found_group, truth_group, trapped in (
        (by_class, _by_class(found, max_detections), found.classes.copy(), truth.classes.copy(), id_trap),
        (
            pooled, np.lexsort((found.classes, -found.scores))[:max_detections],
            np.zeros(detections, np.int64), np.zeros(objects, np.int64), id_trap | class_trap,
        ),
    ):  # fmt: skip
        # Copies, because numba compiles anew for arrays that are read-only or strided.
        match_greedily(
            overlap, order, columns, found_group, truth_group, truth.crowd.copy(),
            ignored, outside, trapped, IOU_THRESHOLDS, np.arange(len(truth.classes), dtype=np.int16), matches,
        )  # fmt: skip
    return ImageMatches(
        found.classes.astype(np.int16), found.scores, by_class, pooled, truth.classes.astype(np.int16), ~ignored,
        rank, excused,
    )  # fmt: skip


def check_sizes(classes: int, objects: int = 0) -> None:
    """Raise an error for more classes, or objects in an image, than matches can number."""
    most = int(np.iinfo(np.int16).max)
    for what, count in (("classes", classes), ("objects of one image", objects)):
        if count > most:
            raise ValueError(f"{what}: expected at most {most}, got {count}")


def select_classes(
    truth: Objects, found: Detections, overlap: NDArray[np.float64], kept: NDArray[np.bool_]
) -> tuple[Objects, Detections, NDArray[np.float64]]:
    """The image with only the classes for which `kept` (K,) is true: objects, detections and their overlap.

    Regions are left behind; their areas must have been given.

    >>> truth, found = Objects([0, 1], area=[9, 9]), Detections([1], [0.5], area=[9])
    >>> few, none, overlap = select_classes(truth, found, np.ones((1, 2)), np.array([True, False]))
    >>> len(few.classes), len(none.classes), overlap.shape
    (1, 0, (0, 1))
    """
    rows, columns = kept[found.classes], kept[truth.classes]
    if truth.area is None or found.area is None:
        raise ValueError("select_classes: expected area of objects and of detections, got none")
    few = Objects(
        truth.classes[columns], area=truth.area[columns], crowd=truth.crowd[columns], ignore=truth.ignore[columns],
        ids=None if truth.ids is None else truth.ids[columns],
        negative=truth.negative, not_exhaustive=truth.not_exhaustive,
    )  # fmt: skip
    return (
        few,
        Detections(found.classes[rows], found.scores[rows], area=found.area[rows]),
        overlap[np.ix_(rows, columns)],
    )


def _rank_verified(
    present: NDArray[np.int64], negative: NDArray[np.int64], found: Detections, most: int
) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """The detections that count in a federated image, by index, and their rank: of the best `most`, the verified."""
    rank = np.empty(len(found.classes), np.int64)
    rank[np.argsort(-found.scores, kind="stable")] = np.arange(len(rank))
    kept = np.flatnonzero((rank < most) & np.isin(found.classes, np.concatenate([present, negative])))
    return rank[kept], kept


def _by_class(found: Detections, most: int) -> NDArray[np.intp]:
    order = np.lexsort((-found.scores, found.classes))
    if len(order) <= most:
        return order
    classes = found.classes[order]
    rank = np.arange(len(order)) - np.searchsorted(classes, classes)
    return order[rank < most]


def check_overlap(overlap: Values, detections: int, objects: int) -> NDArray[np.float64]:
    """A copy of an overlap that was given, (detections, objects) numbers from 0 on; else an error."""
    given = np.array(as_numpy(overlap), np.float64, order="C")
    given = given.reshape(detections, objects) if given.size == detections * objects == 0 else given
    if given.shape != (detections, objects):
        raise ValueError(f"overlap: expected shape ({detections}, {objects}), got {given.shape}")
    # A NaN would pass every comparison of the matching and match.
    if not ((given >= 0) & (given <= 1 + ROUNDING)).all():
        raise ValueError("overlap: expected numbers in [0, 1], got NaN, one above 1 or a negative one")
    return given
