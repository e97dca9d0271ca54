"""Matching of true and predicted segments: all that panoptic quality needs from an image.

A pair matches where intersection over union is above one half, whatever the classes: segments do not overlap, so
there is at most one match each. Void pixels are taken out of the union, crowd segments match nothing. The result is a
few integers per image, to which any similarity of labels can be applied later.

>>> import numpy as np
>>> truth = np.array([[1, 1, 1, 1], [2, 2, 0, 0]])
>>> prediction = np.array([[8, 8, 8, 0], [0, 9, 9, 9]])
>>> matches = match_segments(truth, Segments([1, 2], [0, 1]), prediction, Segments([8, 9], [0, 0]))
>>> matches.true.tolist(), matches.called.tolist(), matches.intersection.tolist(), matches.union.tolist()
([0, 1, -1], [0, -1, 0], [3, 0, 0], [4, 0, 0])
>>> matches.excused.tolist()  # segment 9 lies mostly on void
[False, False, True]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hardlook.metrics.arrays import (
    Values,
    as_bools,
    as_numpy,
    check_choice,
    integer_array,
    integer_tensor,
    is_on_device,
)
from hardlook.metrics.kernels import load_kernels

Ids = NDArray[np.int64]
Crowds = Literal["last", "all"]
NO_PARTNER = -1  # in place of the class of a partner, where a segment has none


@dataclass(frozen=True)
class Segments:
    """The segments of one map: their ids in it, their classes 0..K-1, and which of them are crowds."""

    ids: Values
    classes: Values
    crowd: Values | None = None


@dataclass(frozen=True)
class SegmentMatches:
    """Six parallel arrays, one entry for a matched pair, a missed true segment or an unmatched predicted one.

    `image` is 0..images-1. `true` and `called` are classes, NO_PARTNER where there is no partner; `intersection` and
    `union` are pixels, 0 without a partner. `excused` predictions lie mostly on void, or on crowd of their class, and
    are never false positives.
    """

    image: NDArray[np.int64]
    true: NDArray[np.int64]
    called: NDArray[np.int64]
    intersection: NDArray[np.int64]
    union: NDArray[np.int64]
    excused: NDArray[np.bool_]
    images: int = 1

    def __len__(self) -> int:
        return len(self.image)


def match_segments(
    truth: Values,
    truth_segments: Segments,
    prediction: Values,
    predicted_segments: Segments,
    *,
    classes: int | None = None,
    crowds: Crowds = "last",
) -> SegmentMatches:
    """The matches of one image.

    `truth` and `prediction` are (H, W) segment ids, 0 = void, each id listed in its table. A table that does not fit
    its map is an error, as is a class from `classes` up. `crowds` says which crowds of its class excuse a prediction
    where an image has several: the `last` of the table, as in panopticapi, or `all` of them together.

    >>> ground = np.array([[3, 3, 0]])
    >>> len(match_segments(ground, Segments([3], [0]), ground, Segments([3], [1])))
    1
    """
    check_choice(crowds, Crowds, "crowds")
    true_ids, true_classes, crowd = _columns(truth_segments, "true segments", classes)
    predicted_ids, predicted_classes, _ = _columns(predicted_segments, "predicted segments", classes)
    overlaps = segment_overlaps(truth, prediction, true_ids, predicted_ids)
    void, true_area, predicted_area = overlaps[0, 1:], overlaps[1:].sum(1), overlaps[:, 1:].sum(0)
    true, predicted = np.nonzero(overlaps[1:, 1:])
    shared = overlaps[1:, 1:][true, predicted]
    union = true_area[true] + (predicted_area - void)[predicted] - shared
    matched = 2 * shared > union
    excusable = void
    if crowd.any():
        matched &= ~crowd[true]
        excusable = void + _on_own_crowd(overlaps[1:, 1:], crowd, true_classes, predicted_classes, crowds)
    excused = 2 * excusable > predicted_area
    true, predicted, shared, union = true[matched], predicted[matched], shared[matched], union[matched]
    missed, unmatched = ~crowd, np.ones(len(predicted_ids), np.bool_)
    missed[true] = False
    unmatched[predicted] = False
    missed_classes, unmatched_classes = true_classes[missed], predicted_classes[unmatched]
    no_partner = np.full(len(missed_classes) + len(unmatched_classes), NO_PARTNER)
    no_pixels = np.zeros(len(no_partner), np.int64)
    return SegmentMatches(
        image=np.zeros(len(true) + len(no_partner), np.int64),
        true=np.concatenate([true_classes[true], missed_classes, no_partner[: len(unmatched_classes)]]),
        called=np.concatenate([predicted_classes[predicted], no_partner[: len(missed_classes)], unmatched_classes]),
        intersection=np.concatenate([shared, no_pixels]),
        union=np.concatenate([union, no_pixels]),
        excused=np.concatenate([excused[predicted], np.zeros(len(missed_classes), np.bool_), excused[unmatched]]),
    )


def join_matches(parts: Sequence[SegmentMatches]) -> SegmentMatches:
    """The matches of several sets of images as one, in order.

    >>> join_matches([]).images
    0
    """
    starts = np.cumsum([0, *(part.images for part in parts)])
    empty = np.zeros(0, np.int64)
    return SegmentMatches(
        image=np.concatenate([empty, *(part.image + start for part, start in zip(parts, starts, strict=False))]),
        true=np.concatenate([empty, *(part.true for part in parts)]),
        called=np.concatenate([empty, *(part.called for part in parts)]),
        intersection=np.concatenate([empty, *(part.intersection for part in parts)]),
        union=np.concatenate([empty, *(part.union for part in parts)]),
        excused=np.concatenate([np.zeros(0, np.bool_), *(part.excused for part in parts)]),
        images=int(starts[-1]),
    )


def _on_own_crowd(
    shared: NDArray[np.int64],
    crowd: NDArray[np.bool_],
    true_classes: NDArray[np.int64],
    predicted_classes: NDArray[np.int64],
    crowds: Crowds,
) -> NDArray[np.int64]:
    """(P,) pixels of each prediction on crowd of its class."""
    places = np.flatnonzero(crowd).tolist()
    if crowds == "last":
        places = list({int(true_classes[place]): place for place in places}.values())
    return np.asarray((shared[places] * (true_classes[places, None] == predicted_classes)).sum(0))


def _columns(
    segments: Segments, name: str, end: int | None
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    ids, classes = integer_array(segments.ids, f"{name}, ids"), integer_array(segments.classes, f"{name}, classes")
    given = np.zeros(ids.shape, np.bool_) if segments.crowd is None else as_numpy(segments.crowd)
    crowd = as_bools(given, f"{name}, crowd")
    if ids.ndim != 1 or not ids.shape == classes.shape == crowd.shape:
        raise ValueError(
            f"{name}: expected as many classes and crowd marks as ids, got ids {ids.shape}, classes {classes.shape}, "
            f"crowd {crowd.shape}"
        )
    low, high = classes.min(initial=0), classes.max(initial=0)
    if low < 0 or (end is not None and high >= end):
        allowed = "from 0" if end is None else f"from 0 to {end - 1}"
        raise ValueError(f"{name}: expected classes {allowed}, got {low if low < 0 else high}")
    return ids.astype(np.int64), classes.astype(np.int64), crowd


def segment_overlaps(truth: Values, prediction: Values, truth_ids: Ids, predicted_ids: Ids) -> NDArray[np.int64]:
    """(T + 1, P + 1) shared pixels; row and column 0 are void, the others follow `truth_ids` and `predicted_ids`.

    The maps are (H, W) segment ids of any integer type, 0 = void. Every other id in a map must be listed, and every
    listed id must be in its map: an error names those that are not. Maps on a GPU are counted there.

    >>> segment_overlaps([[0, 7, 7]], [[5, 5, 0]], np.array([7]), np.array([5]))
    array([[0, 1],
           [1, 1]])
    """
    as_integers = integer_tensor if is_on_device(truth, prediction) else integer_array
    true_map, predicted_map = as_integers(truth, "true map"), as_integers(prediction, "predicted map")
    if true_map.shape != predicted_map.shape:
        shapes = tuple(true_map.shape), tuple(predicted_map.shape)
        raise ValueError(f"true map has shape {shapes[0]}, predicted map {shapes[1]}")
    _check_ids(truth_ids, "true")
    _check_ids(predicted_ids, "predicted")
    void = np.zeros(1, np.int64)
    with_void = np.concatenate([void, truth_ids]), np.concatenate([void, predicted_ids])
    kernels = load_kernels("segment_overlaps")
    count = kernels.count_overlaps if kernels else count_overlaps_numpy
    if as_integers is integer_tensor:
        count = count_overlaps_on_device
    counted: NDArray[np.int64] = count(true_map, predicted_map, *with_void)
    for name, there, ids, unlisted in (
        ("true", true_map, truth_ids, counted[-1]),
        ("predicted", predicted_map, predicted_ids, counted[:, -1]),
    ):
        if unlisted.any():
            found = np.setdiff1d(as_numpy(there), np.append(0, ids))
            raise ValueError(f"{name} map holds segment {_first(found)}, which its table does not list")
    table = counted[:-1, :-1]
    for name, ids, held in (("true", truth_ids, table[1:].any(1)), ("predicted", predicted_ids, table[:, 1:].any(0))):
        if not held.all():
            raise ValueError(f"table of {name} segments lists {_first(ids[~held])}, which its map does not hold")
    return table


def count_overlaps_numpy(
    truth: NDArray[np.integer], prediction: NDArray[np.integer], truth_ids: Ids, predicted_ids: Ids
) -> NDArray[np.int64]:
    """(T + 1, P + 1) shared pixels by numpy alone, used where numba is not installed and to test the kernel.

    The ids come in any order; the last row and column hold ids that are not listed.

    >>> count_overlaps_numpy(np.array([0, 7, 7]), np.array([5, 5, 9]), np.array([0, 7]), np.array([0, 5])).tolist()
    [[0, 1, 0], [0, 1, 1], [0, 0, 0]]
    """
    true, called = truth.ravel(), prediction.ravel()
    changes = (true[1:] != true[:-1]) | (called[1:] != called[:-1])
    ends = np.append(np.flatnonzero(changes), true.size - 1)[: true.size]
    table = np.zeros((len(truth_ids) + 1, len(predicted_ids) + 1), np.int64)
    places = _places(true[ends], truth_ids), _places(called[ends], predicted_ids)
    np.add.at(table, places, np.diff(ends, prepend=-1))
    return table


def count_overlaps_on_device(truth: Any, prediction: Any, truth_ids: Ids, predicted_ids: Ids) -> NDArray[np.int64]:
    """The table of `count_overlaps_numpy`, of integer tensors that are counted on their device."""
    true_values, true_index = truth.unique(return_inverse=True)
    called_values, called_index = prediction.unique(return_inverse=True)
    shape = len(true_values), len(called_values)
    pairs = (true_index * shape[1] + called_index).flatten().bincount(minlength=shape[0] * shape[1])
    table = np.zeros((len(truth_ids) + 1, len(predicted_ids) + 1), np.int64)
    rows, columns = _places(as_numpy(true_values), truth_ids), _places(as_numpy(called_values), predicted_ids)
    np.add.at(table, np.ix_(rows, columns), as_numpy(pairs).reshape(shape))
    return table


def _places(values: NDArray[np.integer], ids: Ids) -> NDArray[np.intp]:
    order = np.argsort(ids)
    ascending = ids[order]
    place = np.searchsorted(ascending, values.astype(np.int64)).clip(max=len(ids) - 1)
    return np.where(ascending[place] == values.astype(np.int64), order[place], len(ids))


def _check_ids(ids: Ids, name: str) -> None:
    # A set of sixty is ten times faster than np.unique of sixty, and this runs for each image.
    distinct = set(ids.tolist())
    if len(distinct) < len(ids):
        values, times = np.unique(ids, return_counts=True)
        raise ValueError(f"table of {name} segments lists id {_first(values[times > 1])} more than once")
    if 0 in distinct:
        raise ValueError(f"table of {name} segments lists id 0, which is void")


def _first(ids: NDArray[np.integer]) -> str:
    return str(ids[0]) if len(ids) == 1 else f"{ids[0]} (and {len(ids) - 1} more)"
