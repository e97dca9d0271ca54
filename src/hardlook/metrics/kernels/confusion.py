"""Counting pairs of labels at the speed of memory; imported when first called.

A block of pixels becomes pair codes in a loop that the compiler turns into vector instructions. The codes are then
read several at a time as one 64-bit word: inside a region they are all alike and cost one addition together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.metrics.arrays import flat_row
from hardlook.metrics.kernels.compiled import compiled

# The codes of a block, 8 or 16 kB, stay in the first cache.
BLOCK = 4096

# A counter has 32 bits, so no more pixels than this go into one table.
MAX_PIXELS_PER_TABLE = 2**31


def count_pairs(
    truth: NDArray[np.integer], prediction: NDArray[np.integer], classes: int, ignore: int | None
) -> NDArray[np.int64]:
    """(classes + 2, classes + 1) counts: a row for each true class, one for ignored, one for any other truth.

    The last column holds predictions outside 0..classes-1. Both arrays have the same size and any integer type.

    >>> count_pairs(np.array([0, 0, 9]), np.array([0, 5, 0]), 1, 9).tolist()
    [[1, 1], [1, 0], [0, 0]]
    """
    true_labels, predicted = _unsigned(truth), _unsigned(prediction)
    small = (classes + 2) * (classes + 1) <= 2**16
    count = _count_by_fours if small else _count_by_twos
    range_of = np.iinfo(truth.dtype)
    if ignore is not None and range_of.min <= ignore <= range_of.max:
        ignored, ignored_row = ignore % 2**range_of.bits, classes
    else:  # nothing to ignore: label 0 is sent to its own row
        ignored, ignored_row = 0, 0
    last_true = true_labels.dtype.type(min(classes - 1, range_of.max))
    last_predicted = predicted.dtype.type(min(classes - 1, np.iinfo(prediction.dtype).max))
    limits = last_true, last_predicted, true_labels.dtype.type(ignored), np.uint32(ignored_row), np.uint32(classes)
    shape = classes + 2, classes + 1
    if true_labels.size <= MAX_PIXELS_PER_TABLE:
        return _table(count, true_labels, predicted, limits, shape)
    parts = [slice(start, start + MAX_PIXELS_PER_TABLE) for start in range(0, true_labels.size, MAX_PIXELS_PER_TABLE)]
    return sum((_table(count, true_labels[p], predicted[p], limits, shape) for p in parts), np.zeros(shape, np.int64))


def _table(
    count: Any, truth: NDArray[np.integer], prediction: NDArray[np.integer], limits: Any, shape: tuple[int, int]
) -> NDArray[np.int64]:
    table = np.zeros(shape[0] * shape[1], np.uint32)
    count(truth, prediction, *limits, table)
    return table.astype(np.int64).reshape(shape)


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
    region, pending = np.uint64(0), np.uint32(0)
    for start in range(0, truth.size, BLOCK):
        part = truth[start : start + BLOCK]
        _encode(part, prediction[start : start + BLOCK], last_true, last_predicted, ignored, ignored_row, k, codes)
        whole = part.size // 4
        for i in range(whole):
            word = words[i]
            # Inside a region nothing is written: adding to one cell time after time would wait for it each time.
            if word == region:
                pending += np.uint32(4)
                continue
            code = word & first
            if word == code * alike:
                table[region & first] += pending
                region, pending = word, np.uint32(4)
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
    for start in range(0, truth.size, BLOCK):
        part = truth[start : start + BLOCK]
        _encode(part, prediction[start : start + BLOCK], last_true, last_predicted, ignored, ignored_row, k, codes)
        whole = part.size // 2
        for i in range(whole):
            word = words[i]
            code, other = word & first, word >> np.uint64(32)
            if code == other:
                table[code] += 2
            else:
                table[code] += 1
                table[other] += 1
        for i in range(2 * whole, part.size):
            table[np.uint64(codes[i])] += 1
