"""Average precision per image, for many images at once: used for units' qualities and captions, never for scores.

Each detection is matched to the object that it overlaps most, to a crowd only if it overlaps nothing else. Of several
detections of one object the one with the highest score is kept. COCO's matching gives the same result wherever no
detection overlaps two objects with IoU .5 or more. An unmatched detection on a crowd is ignored. By LVIS's rules so are
detections of classes that are not verified in the image and, where unmatched, of classes that are not exhaustive.

>>> images = FlatImages.from_records([{"object_labels": [0], "object_crowd": [0], "labels": [1, 0, 0],
...                                    "scores": [0.5, 0.9, 0.4], "pairs": [1, 2], "overlaps": [0.6, 0.8]}])
>>> match_objects(images).tolist()
[-1, 0, -1]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
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
_MAX_LABELS = 2**20
_LVIS_COLUMNS = ("negative_labels", "partial_labels")


@dataclass(frozen=True, eq=False)
class FlatImages:
    """Objects, detections and overlapping pairs of all images, one after another.

    `images` is their number. `object_image`, `object_labels` and `crowd` (G,) describe the objects; `image`, `labels`
    and `scores` (D,) the detections. `pair_detection` and `pair_object` (P,) are indices into these, `overlaps` (P,)
    the pairs' IoUs. By LVIS's rules `unverified` (D,) detections are ignored, and their pairs are not listed; `excused`
    (D,) ones are ignored where they are unmatched.
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
    unverified: NDArray[np.bool_]
    excused: NDArray[np.bool_]

    @classmethod
    def from_records(cls, records: pl.DataFrame | Sequence[Record], *, federated: bool = False) -> FlatImages:
        """The arrays of records, given as a data frame or a list; with `federated` by LVIS's rules."""
        import polars as pl

        if not isinstance(records, pl.DataFrame):
            columns = (*_COLUMNS, *_LVIS_COLUMNS) if federated else _COLUMNS
            records = pl.DataFrame([{name: record[name] for name in columns} for record in records])
        objects, detections, pair_counts = (
            records[name].list.len().to_numpy().astype(np.int64) for name in ("object_labels", "labels", "pairs")
        )
        numbers = np.arange(len(records))
        pair_image = np.repeat(numbers, pair_counts)
        first_object, first_detection = np.cumsum(objects) - objects, np.cumsum(detections) - detections
        # A pair is detection * objects + object; an image with a pair has an object.
        detection, object_index = np.divmod(flatten_column(records["pairs"]), np.maximum(objects, 1)[pair_image])
        made = cls(
            len(records),
            np.repeat(numbers, objects),
            flatten_column(records["object_labels"]),
            flatten_column(records["object_crowd"]) > 0,
            np.repeat(numbers, detections),
            flatten_column(records["labels"]),
            flatten_column(records["scores"], np.float64),
            first_detection[pair_image] + detection,
            first_object[pair_image] + object_index,
            flatten_column(records["overlaps"], np.float64),
            *np.zeros((2, int(detections.sum())), bool),
        )
        return made._apply_lvis_rules(records) if federated else made

    def _apply_lvis_rules(self, records: pl.DataFrame) -> FlatImages:
        """With the detections marked whose class is not verified or not exhaustive in its image."""

        def number(image: Integers, labels: Integers) -> Integers:
            return image * _MAX_LABELS + labels

        negative, partial = (
            number(
                np.repeat(np.arange(len(records)), records[name].list.len().to_numpy()), flatten_column(records[name])
            )
            for name in _LVIS_COLUMNS
        )
        called = number(self.image, self.labels)
        verified = np.isin(called, np.concatenate([number(self.object_image, self.object_labels), negative]))
        kept = verified[self.pair_detection]
        return replace(
            self,
            pair_detection=self.pair_detection[kept],
            pair_object=self.pair_object[kept],
            overlaps=self.overlaps[kept],
            unverified=~verified,
            excused=verified & np.isin(called, partial),
        )


def match_objects(images: FlatImages) -> Integers:
    """(D,) the object that each detection is matched to at IoU .5, UNMATCHED, or IGNORED."""
    crowd = images.crowd[images.pair_object]
    found = np.where(images.excused | images.unverified, IGNORED, UNMATCHED)
    found[images.pair_detection[crowd]] = IGNORED
    real = np.flatnonzero(~crowd)
    detection, target = images.pair_detection[real], images.pair_object[real]
    # Sorted so that the best comes last: of several assignments to one element the last one counts.
    order = np.lexsort((-target, images.overlaps[real], detection))
    best = np.full(len(images.labels), UNMATCHED)
    best[detection[order]] = target[order]
    candidates = np.flatnonzero(best >= 0)
    rank = np.lexsort((-candidates, -images.labels[candidates], images.scores[candidates]))
    winner = np.full(len(images.object_labels), UNMATCHED)
    winner[best[candidates[rank]]] = candidates[rank]
    taken = np.flatnonzero(winner >= 0)
    found[winner[taken]] = taken
    return found


def compute_image_precision(
    images: FlatImages, similarity: NDArray[np.float64], max_detections: int
) -> NDArray[np.float64]:
    """(images,) average precision, with credit by similarity, over the `max_detections` highest scores of an image.

    >>> record = {"object_labels": [0, 1], "object_crowd": [0, 0], "labels": [0, 1, 0], "scores": [0.9, 0.8, 0.7],
    ...           "pairs": [0, 5], "overlaps": [0.9, 0.9]}  # a cat, a false positive, a dog called cat
    >>> compute_image_precision(FlatImages.from_records([record]), np.array([[1, 0.4], [0.4, 1]]), 100).round(3)
    array([0.593])
    """
    found = match_objects(images)
    order = np.lexsort((images.labels, -images.scores, images.image))
    order = order[_rank_within_image(images.image[order]) < max_detections]
    order = order[found[order] != IGNORED]
    image, target = images.image[order], found[order]
    hit = target >= 0
    credit = np.zeros(len(order))
    credit[hit] = similarity[images.object_labels[target[hit]], images.labels[order[hit]]]
    objects = np.bincount(images.object_image[~images.crowd], minlength=images.images)
    precision = _compute_running_precision(image, credit, images.images)
    sums = np.bincount(image, credit * precision, minlength=images.images)
    return np.where(objects > 0, sums / np.maximum(objects, 1), np.nan)


def _compute_running_precision(image: Integers, credit: NDArray[np.float64], images: int) -> NDArray[np.float64]:
    """(n,) the mean credit of the entries of the same image up to and including each; `image` (n,) ascending.

    Summed rank by rank, not by one cumulative sum, so that rounding in one image does not depend on the others.
    """
    rank, so_far = _rank_within_image(image), np.zeros(images)
    by_rank = np.argsort(rank, kind="stable")
    starts = np.searchsorted(rank[by_rank], np.arange(rank.max(initial=-1) + 2))
    precision = np.zeros(len(image))
    for count, (start, end) in enumerate(pairwise(starts.tolist()), 1):
        rows = by_rank[start:end]
        so_far[image[rows]] += credit[rows]
        precision[rows] = so_far[image[rows]] / count
    return precision


def _rank_within_image(image: Integers) -> Integers:
    """(n,) the rank, from 0, of each entry among those of its image; `image` (n,) ascending."""
    return np.asarray(np.arange(len(image)) - np.searchsorted(image, image))
