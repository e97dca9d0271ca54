"""Panoptic quality from sums that add up over images, with part of the credit for a similar label.

Four sums a class, in this order: IoU of matches, true positives, false positives, false negatives. A match between
classes that are both things or both stuff counts for S of a true positive of the true class; the rest, 1 - S, is
missed by the true class and falsely claimed by the other. With the identity for S this is the closed metric.

>>> import numpy as np
>>> sums = np.array([[0.9, 0.4], [1, 0.5], [1.5, 0], [0, 0.5]])
>>> class_quality(sums).round(3)
array([[0.514, 0.533],
       [0.9  , 0.8  ],
       [0.571, 0.667]])
>>> mean_quality(sums).round(3)
array([0.524, 0.85 , 0.619])
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardlook.metrics.array_input import Values, as_numpy
from hardlook.metrics.panoptic_matching import SegmentMatches
from hardlook.metrics.similarity_matrix import checked_similarity


def quality_sums_by_image(matches: SegmentMatches, similarity: Values, things: Values) -> NDArray[np.float64]:
    """(images, 4, K) sums of each image and class, which is what a bootstrap over images resamples.

    `similarity` is (K, K), row = true; `things` is a (K,) mask, the others are stuff. Similarity between a thing and
    stuff is not used: such a match is no match.

    >>> from hardlook.metrics.panoptic_matching import Segments, match_segments
    >>> image = np.array([[1, 2]])
    >>> same = match_segments(image, Segments([1, 2], [0, 1]), image, Segments([1, 2], [0, 0]))
    >>> quality_sums_by_image(same, [[1, 0.25], [0.25, 1]], [True, True]).tolist()
    [[[1.0, 0.25], [1.0, 0.25], [0.75, 0.0], [0.0, 0.75]]]
    """
    return _sums(matches, similarity, things, matches.image, matches.images)


def quality_sums(matches: SegmentMatches, similarity: Values, things: Values) -> NDArray[np.float64]:
    """(4, K) sums of each class over all images, the same to the last bit in whatever order the images came.

    >>> from hardlook.metrics.panoptic_matching import join_matches
    >>> quality_sums(join_matches([]), [[1]], [True]).tolist()
    [[0.0], [0.0], [0.0], [0.0]]
    """
    keys = (matches.excused, matches.union, matches.intersection, matches.called, matches.true)
    order = np.lexsort(keys)
    sorted_matches = SegmentMatches(
        matches.image[order],
        matches.true[order],
        matches.called[order],
        matches.intersection[order],
        matches.union[order],
        matches.excused[order],
        matches.images,
    )
    return np.asarray(_sums(sorted_matches, similarity, things, np.zeros(len(matches), np.int64), 1)[0])


def class_quality(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """(..., 3, K) PQ, SQ and RQ of each class from (..., 4, K) sums; NaN for a class that does not occur.

    SQ is 0 for a class that occurs and has no true positive.

    >>> class_quality(np.array([[0.0, 0.0], [0, 0], [2, 0], [0, 0]]))
    array([[ 0., nan],
           [ 0., nan],
           [ 0., nan]])
    """
    iou, tp, fp, fn = np.moveaxis(np.asarray(sums, np.float64), -2, 0)
    weight = tp + fp / 2 + fn / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        quality = np.stack([iou / weight, np.where(tp > 0, iou / tp, 0.0), tp / weight], axis=-2)
    return np.where((weight > 0)[..., None, :], quality, np.nan)


def mean_quality(sums: NDArray[np.float64], within: ArrayLike | None = None) -> NDArray[np.float64]:
    """(..., 3) mean PQ, SQ and RQ over the classes that occur, NaN where none does, from (..., 4, K) sums.

    `within` is a (K,) mask of classes to take.

    >>> mean_quality(np.array([[0.8, 0.0], [1, 0], [0, 2], [0, 0]]), within=[True, False])
    array([0.8, 0.8, 1. ])
    """
    taken = sums if within is None else np.asarray(sums)[..., np.asarray(within, np.bool_)]
    quality = class_quality(taken)
    occurs = ~np.isnan(quality)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(occurs, quality, 0.0).sum(-1) / occurs.sum(-1))


def _sums(
    matches: SegmentMatches, similarity: Values, things: Values, group: NDArray[np.int64], groups: int
) -> NDArray[np.float64]:
    is_thing = as_numpy(things).astype(np.bool_)
    classes = len(is_thing)
    shared = checked_similarity(similarity, classes)
    largest = max(matches.true.max(initial=-1), matches.called.max(initial=-1))
    if largest >= classes:
        raise ValueError(f"matches: expected classes from 0 to {classes - 1}, got {largest}")
    # One more row and column of zeros for "nobody", which -1 indexes.
    credit = np.zeros((classes + 1, classes + 1))
    credit[:classes, :classes] = np.where(is_thing[:, None] == is_thing, shared, 0.0)
    share = credit[matches.true, matches.called]
    iou = share * matches.intersection / np.maximum(matches.union, 1)
    slots = classes + 1
    true, called = group * slots + matches.true % slots, group * slots + matches.called % slots
    sums = [
        np.bincount(true, iou, groups * slots),
        np.bincount(true, share, groups * slots),
        np.bincount(called, np.where(matches.excused, 0.0, 1 - share), groups * slots),
        np.bincount(true, 1 - share, groups * slots),
    ]
    # Of nothing at all bincount makes integers, whatever the weights.
    stack = np.stack(sums).astype(np.float64, copy=False)
    return np.moveaxis(stack.reshape(4, groups, slots), 0, 1)[..., :classes]
