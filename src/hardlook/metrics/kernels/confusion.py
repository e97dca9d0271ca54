"""Counting pairs of labels at the speed of memory; imported when first called.

With few classes the counts are a table. A block of pixels becomes pair codes in a loop that the compiler turns into
vector instructions. The codes are then read several at a time as one 64-bit word: inside a region they are all alike
and cost one addition together. With many classes the counts are a hash table of the pairs seen, to which every run of
equal pairs is added.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.metrics.arrays import flat_row
from hardlook.metrics.kernels.compiled import compiled

# The codes of a block, 8 or 16 kB, stay in the first cache.
BLOCK = 4096

# A slot of a hash table that holds no cell; the number of slots of a new table, a power of two.
EMPTY = -1
SLOTS = 2**12

Slots = tuple[NDArray[np.int64], NDArray[np.int64], int]


def count_pairs(
    truth: NDArray[np.integer],
    prediction: NDArray[np.integer],
    classes: int,
    ignore: int | None,
    table: NDArray[np.int64],
) -> None:
    """Add to `table` (classes + 2, classes + 1): a row for each true class, one for ignored, one for any other truth.

    The last column holds predictions outside 0..classes-1. Both arrays have the same size and any integer type.

    >>> table = np.zeros((3, 2), np.int64)
    >>> count_pairs(np.array([0, 0, 9]), np.array([0, 5, 0]), 1, 9, table)
    >>> table.tolist()
    [[1, 1], [1, 0], [0, 0]]
    """
    small = (classes + 2) * (classes + 1) <= 2**16
    count = _count_by_fours if small else _count_by_twos
    given: Any = (*_prepare(truth, prediction, classes, ignore), table.reshape(-1))
    count(*given)


def count_pairs_sparsely(
    truth: NDArray[np.integer],
    prediction: NDArray[np.integer],
    classes: int,
    ignore: int | None,
    slots: Slots,
    sign: int = 1,
) -> tuple[Slots, int]:
    """The hash table `slots` with the pairs of one image added, a larger one where it had no room.

    Cells are true * (classes + 1) + predicted, as in the table of `count_pairs`, without the rows of ignored and other
    truth; the second value is how many pixels of the latter there are. A `sign` of -1 takes the pixels away again.

    >>> maps = np.array([0, 0, 9]), np.array([0, 5, 5])
    >>> (cells, pixels, used), other = count_pairs_sparsely(*maps, 1, 9, make_slots())
    >>> sorted(zip(cells[cells != EMPTY].tolist(), pixels[cells != EMPTY].tolist())), used, other
    ([(0, 1), (1, 1)], 2, 0)
    """
    if not truth.size:
        return slots, 0
    given: Any = (*_prepare(truth, prediction, classes, ignore), sign, *slots)
    cells, pixels, used, other = _count_runs(*given)
    return (cells, pixels, used), other


def add_cells(cells: NDArray[np.int64], pixels: NDArray[np.int64], slots: Slots) -> Slots:
    """The hash table `slots` with `cells` (n,) and their `pixels` (n,) added."""
    joined: Slots = _add_cells(cells, pixels, *slots)
    return joined


def make_slots() -> Slots:
    """An empty hash table: cells, their pixels, and how many slots are used."""
    return np.full(SLOTS, EMPTY, np.int64), np.zeros(SLOTS, np.int64), 0


def _prepare(
    truth: NDArray[np.integer], prediction: NDArray[np.integer], classes: int, ignore: int | None
) -> tuple[Any, ...]:
    """Both maps as unsigned rows, then what `_encode` takes after them."""
    limits = _find_limits(truth.dtype, prediction.dtype, classes, ignore)
    return _unsigned(truth), _unsigned(prediction), *limits


@cache
def _find_limits(
    truth: np.dtype[np.integer], prediction: np.dtype[np.integer], classes: int, ignore: int | None
) -> tuple[Any, ...]:
    """The last true and predicted label, the ignored one, its row and the number of classes, in the types needed."""
    range_of, true_type, predicted_type = np.iinfo(truth), f"u{truth.itemsize}", f"u{prediction.itemsize}"
    if ignore is not None and range_of.min <= ignore <= range_of.max:
        ignored, ignored_row = ignore % 2**range_of.bits, classes
    else:  # nothing to ignore: label 0 is sent to its own row
        ignored, ignored_row = 0, 0
    last_true = np.dtype(true_type).type(min(classes - 1, range_of.max))
    last_predicted = np.dtype(predicted_type).type(min(classes - 1, np.iinfo(prediction).max))
    left_out = np.dtype(true_type).type(ignored)
    return last_true, last_predicted, left_out, np.uint32(ignored_row), np.uint32(classes)


def _unsigned(values: NDArray[np.integer]) -> NDArray[np.unsignedinteger]:
    # Negative labels wrap round to the upper half of the type, beyond the last label: one comparison finds both.
    return flat_row(values).view(f"u{values.dtype.itemsize}")


@compiled
def _encode(
    truth: Any, prediction: Any, last_true: Any, last_predicted: Any, ignored: Any, ignored_row: Any, k: Any, codes: Any
) -> None:
    # Selections between numbers of one type, and no branches: what keeps this loop in vector instructions.
    other_row, width = np.uint32(k + 1), np.uint32(k + 1)
    for i in range(truth.size):
        true, called = truth[i], prediction[i]
        row = np.uint32(true) if true <= last_true else other_row
        row = ignored_row if true == ignored else row
        column = np.uint32(called) if called <= last_predicted else k
        codes[i] = row * width + column


@compiled
def _count_by_fours(
    truth: Any, prediction: Any, last_true: Any, last_predicted: Any, ignored: Any, ignored_row: Any, k: Any, table: Any
) -> None:
    codes = np.empty(BLOCK, np.uint16)
    words = codes.view(np.uint64)
    first, alike = np.uint64(0xFFFF), np.uint64(0x0001_0001_0001_0001)
    region, pending = np.uint64(0), np.int64(0)
    for start in range(0, truth.size, BLOCK):
        part = truth[start : start + BLOCK]
        _encode(part, prediction[start : start + BLOCK], last_true, last_predicted, ignored, ignored_row, k, codes)
        whole = part.size // 4
        for i in range(whole):
            word = words[i]
            # Inside a region nothing is written: adding to one cell time after time would wait for it each time.
            if word == region:
                pending += 4
                continue
            code = word & first
            if word == code * alike:
                table[region & first] += pending
                region, pending = word, np.int64(4)
            else:
                table[code] += 1
                table[(word >> np.uint64(16)) & first] += 1
                table[(word >> np.uint64(32)) & first] += 1
                table[word >> np.uint64(48)] += 1
        for i in range(4 * whole, part.size):
            table[np.uint64(codes[i])] += 1
    table[region & first] += pending


@compiled
def _count_by_twos(
    truth: Any, prediction: Any, last_true: Any, last_predicted: Any, ignored: Any, ignored_row: Any, k: Any, table: Any
) -> None:
    codes = np.empty(BLOCK, np.uint32)
    words = codes.view(np.uint64)
    first = np.uint64(0xFFFF_FFFF)
    region, pending = np.uint64(0), np.int64(0)
    for start in range(0, truth.size, BLOCK):
        part = truth[start : start + BLOCK]
        _encode(part, prediction[start : start + BLOCK], last_true, last_predicted, ignored, ignored_row, k, codes)
        whole = part.size // 2
        for i in range(whole):
            word = words[i]
            if word == region:
                pending += 2
                continue
            code, other = word & first, word >> np.uint64(32)
            if code == other:
                table[region & first] += pending
                region, pending = word, np.int64(2)
            else:
                table[code] += 1
                table[other] += 1
        for i in range(2 * whole, part.size):
            table[np.uint64(codes[i])] += 1
    table[region & first] += pending


@compiled
def _count_runs(
    truth: Any, prediction: Any, last_true: Any, last_predicted: Any, ignored: Any, ignored_row: Any, k: Any,
    sign: Any, cells: Any, pixels: Any, used: Any,
) -> Any:  # fmt: skip
    classes, other = np.int64(k), 0
    start = 0
    for i in range(1, truth.size + 1):
        if i < truth.size and truth[i] == truth[start] and prediction[i] == prediction[start]:
            continue
        true, called, count = truth[start], prediction[start], i - start
        start = i
        row = np.int64(true) if true <= last_true else classes + 1
        row = np.int64(ignored_row) if true == ignored else row
        if row >= classes:
            other += count if row > classes else 0
            continue
        column = np.int64(called) if called <= last_predicted else classes
        used += _add(row * (classes + 1) + column, sign * count, cells, pixels)
        if 2 * used > cells.size:
            cells, pixels = _grow(cells, pixels)
    return cells, pixels, used, other


@compiled
def _add_cells(new_cells: Any, new_pixels: Any, cells: Any, pixels: Any, used: Any) -> Any:
    for i in range(new_cells.size):
        used += _add(new_cells[i], new_pixels[i], cells, pixels)
        if 2 * used > cells.size:
            cells, pixels = _grow(cells, pixels)
    return cells, pixels, used


@compiled
def _add(cell: Any, count: Any, cells: Any, pixels: Any) -> Any:
    """Add to the slot of the cell, or to the next free one; 1 where the cell is new, else 0."""
    last = np.uint64(cells.size - 1)
    # Two rounds of multiplying and folding, so that cells in regular distances do not crowd.
    mixed = np.uint64(cell) * np.uint64(0x9E37_79B9_7F4A_7C15)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58_476D_1CE4_E5B9)
    slot = (mixed >> np.uint64(32)) & last
    while cells[slot] != cell:
        if cells[slot] == EMPTY:
            cells[slot] = cell
            pixels[slot] = count
            return 1
        slot = (slot + np.uint64(1)) & last
    pixels[slot] += count
    return 0


@compiled
def _grow(cells: Any, pixels: Any) -> Any:
    more_cells, more_pixels = np.full(2 * cells.size, EMPTY, np.int64), np.zeros(2 * cells.size, np.int64)
    for slot in range(cells.size):
        if cells[slot] != EMPTY:
            _add(cells[slot], pixels[slot], more_cells, more_pixels)
    return more_cells, more_pixels
