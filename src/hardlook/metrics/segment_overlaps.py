"""How many pixels each true segment shares with each predicted one."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from hardlook.metrics.array_input import Values, integer_array

Ids = NDArray[np.int64]
CountOverlaps = Callable[[NDArray[np.integer], NDArray[np.integer], Ids, Ids], NDArray[np.int64]]


def segment_overlaps(truth: Values, prediction: Values, truth_ids: Ids, predicted_ids: Ids) -> NDArray[np.int64]:
    """(T + 1, P + 1) shared pixels; row and column 0 are void, the others follow `truth_ids` and `predicted_ids`.

    The maps are (H, W) segment ids of any integer type, 0 = void. Every other id in a map must be listed, and every
    listed id must be in its map: an error names those that are not.

    >>> segment_overlaps([[0, 7, 7]], [[5, 5, 0]], np.array([7]), np.array([5]))
    array([[0, 1],
           [1, 1]])
    """
    true_map, predicted_map = integer_array(truth, "true map"), integer_array(prediction, "predicted map")
    if true_map.shape != predicted_map.shape:
        raise ValueError(f"true map has shape {true_map.shape}, predicted map {predicted_map.shape}")
    _check_ids(truth_ids, "true")
    _check_ids(predicted_ids, "predicted")
    void = np.zeros(1, np.int64)
    with_void = np.concatenate([void, truth_ids]), np.concatenate([void, predicted_ids])
    counted = _fastest_count()(true_map, predicted_map, *with_void)
    for name, there, ids, unlisted in (
        ("true", true_map, truth_ids, counted[-1]),
        ("predicted", predicted_map, predicted_ids, counted[:, -1]),
    ):
        if unlisted.any():
            found = np.setdiff1d(there, np.append(0, ids))
            raise ValueError(f"{name} map holds segment {_first(found)}, which its table does not list")
    table = counted[:-1, :-1]
    for name, ids, held in (("true", truth_ids, table[1:].any(1)), ("predicted", predicted_ids, table[:, 1:].any(0))):
        if not held.all():
            raise ValueError(f"table of {name} segments lists {_first(ids[~held])}, which its map does not hold")
    return table


def count_overlaps_plainly(
    truth: NDArray[np.integer], prediction: NDArray[np.integer], truth_ids: Ids, predicted_ids: Ids
) -> NDArray[np.int64]:
    """(T + 1, P + 1) shared pixels by numpy alone, for where numba is absent, and to check its kernel by.

    The ids come in any order; the last row and column hold ids that are not listed.

    >>> count_overlaps_plainly(np.array([0, 7, 7]), np.array([5, 5, 9]), np.array([0, 7]), np.array([0, 5])).tolist()
    [[0, 1, 0], [0, 1, 1], [0, 0, 0]]
    """
    true, called = truth.ravel(), prediction.ravel()
    changes = (true[1:] != true[:-1]) | (called[1:] != called[:-1])
    ends = np.append(np.flatnonzero(changes), true.size - 1)[: true.size]
    table = np.zeros((len(truth_ids) + 1, len(predicted_ids) + 1), np.int64)
    places = _places(true[ends], truth_ids), _places(called[ends], predicted_ids)
    np.add.at(table, places, np.diff(ends, prepend=-1))
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


@cache
def _fastest_count() -> CountOverlaps:
    try:
        from hardlook.metrics.segment_overlap_kernel import count_overlaps
    except ImportError:
        return count_overlaps_plainly
    return count_overlaps
