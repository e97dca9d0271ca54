"""Average precision of single images, of many images at once: for qualities and captions of units, never for scores.

A detection goes to the object that it overlaps most, a crowd only where there is no other; of several detections of
one object the best scored one has it. COCO's matching gives the same wherever no detection overlaps two objects by
half. A detection that has no object and lies on a crowd is ignored.

>>> images = FlatImages.from_records([{"object_labels": [0], "object_crowd": [0], "labels": [1, 0, 0],
...                                    "scores": [0.5, 0.9, 0.4], "pairs": [1, 2], "overlaps": [0.6, 0.8]}])
>>> match_objects(images).tolist()
[-1, 0, -1]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hardlook.harness.records import Record
from hardlook.metrics.detection import IGNORED, UNMATCHED
from hardlook.open_vocabulary.record_columns import flatten_column

if TYPE_CHECKING:
    import polars as pl

Integers = NDArray[np.int64]

_COLUMNS = ("object_labels", "object_crowd", "labels", "scores", "pairs", "overlaps")


@dataclass(frozen=True, eq=False)
class FlatImages:
    """Objects, detections and overlapping pairs of all images, one after another.

    `object_image`, `object_labels` and `crowd` (G,); `image`, `labels` and `scores` (D,); `pair_detection` and
    `pair_object` (P,) are places among these, `overlaps` (P,).
    """

    images: int
    object_image: Integers
    object_labels: Integers
    crowd: NDArray[np.bool_]
    image: Integers
    labels: Integers
    scores: NDArray[np.float64]
    pair_detection: Integers
    pair_object: Integers
    overlaps: NDArray[np.float64]

    @classmethod
    def from_records(cls, records: pl.DataFrame | Sequence[Record]) -> FlatImages:
        """The arrays of a frame of records, or of a list of them."""
        import polars as pl

        if not isinstance(records, pl.DataFrame):
            records = pl.DataFrame([{name: record[name] for name in _COLUMNS} for record in records])
        objects, detections, pair_counts = (
            records[name].list.len().to_numpy().astype(np.int64) for name in ("object_labels", "labels", "pairs")
        )
        numbers = np.arange(len(records))
        pair_image = np.repeat(numbers, pair_counts)
        first_object, first_detection = np.cumsum(objects) - objects, np.cumsum(detections) - detections
        # A pair is detection * objects + object; an image with a pair has an object.
        detection, one = np.divmod(flatten_column(records["pairs"]), np.maximum(objects, 1)[pair_image])
        return cls(
            len(records),
            np.repeat(numbers, objects),
            flatten_column(records["object_labels"]),
            flatten_column(records["object_crowd"]) > 0,
            np.repeat(numbers, detections),
            flatten_column(records["labels"]),
            flatten_column(records["scores"], np.float64),
            first_detection[pair_image] + detection,
            first_object[pair_image] + one,
            flatten_column(records["overlaps"], np.float64),
        )


def match_objects(images: FlatImages) -> Integers:
    """(D,) the object that each detection is matched to at IoU .5, UNMATCHED, or IGNORED."""
    crowd = images.crowd[images.pair_object]
    found = np.full(len(images.labels), UNMATCHED)
    found[images.pair_detection[crowd]] = IGNORED
    real = np.flatnonzero(~crowd)
    detection, thing = images.pair_detection[real], images.pair_object[real]
    # Sorted so that what is wanted comes last: an assignment keeps the last.
    order = np.lexsort((-thing, images.overlaps[real], detection))
    best = np.full(len(images.labels), UNMATCHED)
    best[detection[order]] = thing[order]
    candidates = np.flatnonzero(best >= 0)
    rank = np.lexsort((-candidates, -images.labels[candidates], images.scores[candidates]))
    winner = np.full(len(images.object_labels), UNMATCHED)
    winner[best[candidates[rank]]] = candidates[rank]
    taken = np.flatnonzero(winner >= 0)
    found[winner[taken]] = taken
    return found


def ranked_precision(images: FlatImages, similarity: NDArray[np.float64], most: int) -> NDArray[np.float64]:
    """(images,) average precision with part of the credit for similar labels, over the best `most` detections.

    >>> record = {"object_labels": [0, 1], "object_crowd": [0, 0], "labels": [0, 1, 0], "scores": [0.9, 0.8, 0.7],
    ...           "pairs": [0, 5], "overlaps": [0.9, 0.9]}  # a cat, a false positive, a dog called cat
    >>> ranked_precision(FlatImages.from_records([record]), np.array([[1, 0.4], [0.4, 1]]), 100).round(3)
    array([0.593])
    """
    found = match_objects(images)
    order = np.lexsort((images.labels, -images.scores, images.image))
    order = order[_rank(images.image[order]) < most]
    order = order[found[order] != IGNORED]
    image, thing = images.image[order], found[order]
    hit = thing >= 0
    credit = np.zeros(len(order))
    credit[hit] = similarity[images.object_labels[thing[hit]], images.labels[order[hit]]]
    objects = np.bincount(images.object_image[~images.crowd], minlength=images.images)
    sums = np.bincount(image, credit * _running_precision(image, credit, images.images), minlength=images.images)
    return np.where(objects > 0, sums / np.maximum(objects, 1), np.nan)


def _running_precision(image: Integers, credit: NDArray[np.float64], images: int) -> NDArray[np.float64]:
    """(n,) the mean credit of an image's entries up to each; `image` (n,) ascending.

    Place by place and not by one long sum, so that no image's value depends on another's in the last digit.
    """
    rank, so_far = _rank(image), np.zeros(images)
    by_rank = np.argsort(rank, kind="stable")
    starts = np.searchsorted(rank[by_rank], np.arange(rank.max(initial=-1) + 2))
    precision = np.zeros(len(image))
    for place, (start, end) in enumerate(pairwise(starts.tolist()), 1):
        rows = by_rank[start:end]
        so_far[image[rows]] += credit[rows]
        precision[rows] = so_far[image[rows]] / place
    return precision


def _rank(image: Integers) -> Integers:
    """(n,) the place of each entry among those of its image, `image` (n,) ascending."""
    return np.asarray(np.arange(len(image)) - np.searchsorted(image, image))
