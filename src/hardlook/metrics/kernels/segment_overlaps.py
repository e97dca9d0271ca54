"""Counting which segments share pixels, run by run; imported when first called.

Neighbouring pixels mostly belong to the same two segments. So each pixel is compared with the next, many at a time,
and ids are looked up only at the end of a run. They may be any numbers: no table is as long as the largest of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.metrics.arrays import flat_row
from hardlook.metrics.kernels.compiled import compiled

BLOCK = 4096

# 2**64 over the golden ratio: its multiples spread consecutive ids over the whole table.
SCATTER = np.uint64(0x9E37_79B9_7F4A_7C15)


def count_overlaps(
    truth: NDArray[np.integer],
    prediction: NDArray[np.integer],
    truth_ids: NDArray[np.int64],
    predicted_ids: NDArray[np.int64],
) -> NDArray[np.int64]:
    """(T + 1, P + 1) pixels that each true id shares with each predicted id; the last of each is "not listed".

    The ids, (T,) and (P,), come in any order. Both maps have the same size and any integer type.

    >>> count_overlaps(np.array([0, 7, 7]), np.array([5, 5, 9]), np.array([0, 7]), np.array([0, 5])).tolist()
    [[0, 1, 0], [0, 1, 1], [0, 0, 0]]
    """
    table = np.zeros((len(truth_ids) + 1, len(predicted_ids) + 1), np.int64)
    if truth.size:
        bits = max(len(truth_ids), len(predicted_ids), 1).bit_length() + 5
        ids = flat_row(truth_ids), flat_row(predicted_ids)
        slots, work = np.full((2, 1 << bits), -1, np.int64), np.empty((5, BLOCK + 1), np.int64)
        _count_runs(flat_row(truth), flat_row(prediction), *ids, bits, slots, work, table)
    return table


@compiled
def _fill_hash_table(ids: Any, bits: Any, slots: Any) -> None:
    # Places of the ids, nearly empty, so that a search ends at its first step and is guessed right; -1 is free.
    for place in range(ids.size):
        slot = (np.uint64(ids[place]) * SCATTER) >> np.uint64(64 - bits)
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & np.uint64(slots.size - 1)
        slots[slot] = place


@compiled
def _look_up(values: Any, at: Any, ids: Any, slots: Any, bits: Any, places: Any) -> None:
    for k in range(at.size):
        sought = np.int64(values[at[k]])
        slot = (np.uint64(sought) * SCATTER) >> np.uint64(64 - bits)
        while slots[slot] >= 0 and ids[slots[slot]] != sought:
            slot = (slot + np.uint64(1)) & np.uint64(slots.size - 1)
        places[k] = slots[slot] if slots[slot] >= 0 else ids.size


@compiled
def _ends_of_runs(truth: Any, prediction: Any, changes: Any, dirty: Any, ends: Any) -> Any:
    # None of these loops has a branch: one that depends on the picture would be guessed wrong at every boundary.
    following, called_next = truth[1:], prediction[1:]
    for i in range(following.size):
        changes[i] = (truth[i] != following[i]) | (prediction[i] != called_next[i])
    for i in range(following.size, changes.size):
        changes[i] = 0
    words = changes.view(np.uint64)
    some = np.uint64(0)
    for w in range(words.size):  # written always, kept where a pixel of the eight differs from the next
        dirty[some] = w
        some += np.uint64(words[w] != 0)
    found = np.uint64(0)
    for k in range(some):
        start = 8 * dirty[k]
        for i in range(start, start + 8):
            ends[found] = i
            found += np.uint64(changes[i])
    return found


@compiled
def _count_runs(
    truth: Any, prediction: Any, truth_ids: Any, predicted_ids: Any, bits: Any, slots: Any, work: Any, table: Any
) -> None:
    # Memory comes from the caller: allocating it here doubles the time that compiling takes.
    truth_slots, predicted_slots = slots[0], slots[1]
    _fill_hash_table(truth_ids, bits, truth_slots)
    _fill_hash_table(predicted_ids, bits, predicted_slots)
    ends, rows, columns, dirty, changes = work[0], work[1], work[2], work[3], work[4].view(np.uint8)[:BLOCK]
    start = 0
    for block in range(0, truth.size, BLOCK):
        # A pixel more than the block, so that a change at its edge is seen.
        some_true, some_called = truth[block : block + BLOCK + 1], prediction[block : block + BLOCK + 1]
        found = _ends_of_runs(some_true, some_called, changes, dirty, ends)
        if block + BLOCK >= truth.size:
            ends[found] = truth.size - 1 - block
            found += np.uint64(1)
        _look_up(some_true, ends[:found], truth_ids, truth_slots, bits, rows)
        _look_up(some_called, ends[:found], predicted_ids, predicted_slots, bits, columns)
        for k in range(found):
            end = block + ends[k] + 1
            table[rows[k], columns[k]] += end - start
            start = end
