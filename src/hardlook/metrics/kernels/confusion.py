"""Counting pairs of labels at the speed of memory; imported when first called.

With few classes the counts are a table. A block of pixels becomes pair codes in a loop that the compiler turns into
vector instructions. The codes are then read several at a time as one 64-bit word: inside a region they are all alike
and cost one addition together. With many classes the counts are a sorted list of the pairs seen. Runs of equal pairs
are noted one after the other; when the notes are full they are sorted, digit by digit, and merged into the list. All of
that reads and writes memory in order, where a table or a hash table as large would wait for memory at every new pair.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.metrics.arrays import flat_row
from hardlook.metrics.kernels.compiled import compiled

# The codes of a block, 8 or 16 kB, stay in the first cache.
BLOCK = 4096

# Runs that are noted before they are sorted: at least so many, and as many as there are pairs.
NOTES = 2**15

# A note is a cell and, in its last bits, the pixels, so that sorting moves one number: cells below 2^48, which are
# those of 16,777,215 classes, and up to 8,191 pixels, added or taken away; a longer run is several notes.
PIXEL_BITS = 15
MAX_PIXELS = 2 ** (PIXEL_BITS - 2) - 1
ZERO_PIXELS = 2 ** (PIXEL_BITS - 1)

# Most bits of a cell that one pass of sorting looks at: counts of this many digits stay in the first-level cache.
DIGIT = 11


@dataclass(frozen=True, eq=False)
class PairList:
    """Ascending `cells` (n,) and their `pixels` (n,), and `notes` (capacity,): the first `noted` are to be added."""

    cells: NDArray[np.int64]
    pixels: NDArray[np.int64]
    notes: NDArray[np.int64]
    noted: int = 0


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
    pairs: PairList,
    sign: int = 1,
) -> tuple[PairList, int]:
    """The list with the pairs of one image added; arrays of `pairs` are reused.

    Cells are true * (classes + 1) + predicted, as in the table of `count_pairs`, without the rows of ignored and other
    truth; the second value is how many pixels of the latter there are. A `sign` of -1 takes the pixels away again.

    >>> maps = np.array([0, 0, 9]), np.array([0, 5, 5])
    >>> pairs, other = count_pairs_sparsely(*maps, 1, 9, make_pairs())
    >>> pairs = merge_notes(pairs)
    >>> pairs.cells.tolist(), pairs.pixels.tolist(), other
    ([0, 1], [1, 1], 0)
    """
    given: Any = _prepare(truth, prediction, classes, ignore)
    start, size, other = 0, truth.size, 0
    while start < size:
        if pairs.noted == len(pairs.notes):
            pairs = merge_notes(pairs)
        rest: Any = (*given, sign, start, pairs.notes, pairs.noted)
        start, noted, more = _note_runs(*rest)
        pairs, other = replace(pairs, noted=noted), other + more
    return pairs, other


def add_cells(cells: NDArray[np.int64], pixels: NDArray[np.int64], pairs: PairList) -> PairList:
    """The list with `cells` (n,), in any order, and their `pixels` (n,) added."""
    pairs = merge_notes(pairs)
    order = np.argsort(cells, kind="stable")
    given: Any = (cells[order], pixels[order].astype(np.int64), pairs.cells, pairs.pixels)
    joined, sums = _merge(*given)
    return _with_capacity(joined, sums, pairs.notes)


def make_pairs() -> PairList:
    """A list without pairs."""
    return PairList(np.zeros(0, np.int64), np.zeros(0, np.int64), np.empty(NOTES, np.int64))


def merge_notes(pairs: PairList) -> PairList:
    """The list with all that is noted among its cells."""
    if not pairs.noted:
        return pairs
    notes = pairs.notes[: pairs.noted]
    given: Any = (notes, np.empty_like(notes), pairs.cells, pairs.pixels)
    cells, pixels = _merge_notes(*given)
    return _with_capacity(cells, pixels, pairs.notes)


def _with_capacity(cells: NDArray[np.int64], pixels: NDArray[np.int64], notes: NDArray[np.int64]) -> PairList:
    # As many notes as pairs: however the list grows, each run is sorted once and moved a few times.
    capacity = max(NOTES, len(cells))
    return PairList(cells, pixels, notes if capacity <= len(notes) else np.empty(capacity, np.int64))


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
def _note_runs(
    truth: Any, prediction: Any, last_true: Any, last_predicted: Any, ignored: Any, ignored_row: Any, k: Any,
    sign: Any, start: Any, notes: Any, noted: Any,
) -> Any:  # fmt: skip
    classes, other = np.int64(k), 0
    size = truth.size
    true, called = truth[start], prediction[start]
    for i in range(start + 1, size + 1):
        if i < size and truth[i] == true and prediction[i] == called and i - start < MAX_PIXELS:
            continue
        row = np.int64(true) if true <= last_true else classes + 1
        row = np.int64(ignored_row) if true == ignored else row
        if row < classes:
            if noted == notes.size:
                return start, noted, other
            column = np.int64(called) if called <= last_predicted else classes
            notes[noted] = ((row * (classes + 1) + column) << PIXEL_BITS) + (sign * (i - start) + ZERO_PIXELS)
            noted += 1
        elif row > classes:
            other += i - start
        start = i
        if i < size:
            true, called = truth[i], prediction[i]
    return size, noted, other


@compiled
def _merge_notes(notes: Any, spare: Any, cells: Any, pixels: Any) -> Any:
    """Sort the notes by cell, the spare array being as large, and add them to the cells, which are sorted."""
    most = np.int64(0)
    for i in range(notes.size):
        most = max(most, notes[i])
    bits = 1
    while (most >> (PIXEL_BITS + bits)) > 0:
        bits += 1
    passes = (bits + DIGIT - 1) // DIGIT
    digit_bits = (bits + passes - 1) // passes
    counts = np.zeros(1 << digit_bits, np.int64)
    last = np.int64((1 << digit_bits) - 1)
    for one in range(passes):
        shift = PIXEL_BITS + one * digit_bits
        counts[:] = 0
        for i in range(notes.size):
            counts[(notes[i] >> shift) & last] += 1
        place = np.int64(0)
        for digit in range(counts.size):
            place, counts[digit] = place + counts[digit], place
        for i in range(notes.size):
            digit = (notes[i] >> shift) & last
            spare[counts[digit]] = notes[i]
            counts[digit] += 1
        notes, spare = spare, notes
    some, own = np.empty(notes.size, np.int64), np.empty(notes.size, np.int64)
    n = 0
    for i in range(notes.size):
        cell, count = notes[i] >> PIXEL_BITS, (notes[i] & (2 * ZERO_PIXELS - 1)) - ZERO_PIXELS
        if n > 0 and some[n - 1] == cell:
            own[n - 1] += count
        else:
            some[n] = cell
            own[n] = count
            n += 1
    return _merge(some[:n], own[:n], cells, pixels)


@compiled
def _merge(some: Any, own: Any, cells: Any, pixels: Any) -> Any:
    """Two lists of ascending cells as one; cells may come twice in the first."""
    new_cells = np.empty(some.size + cells.size, np.int64)
    new_pixels = np.empty(new_cells.size, np.int64)
    i, j, n = 0, 0, 0
    while i < some.size or j < cells.size:
        if j == cells.size or (i < some.size and some[i] <= cells[j]):
            cell, count = some[i], own[i]
            i += 1
        else:
            cell, count = cells[j], pixels[j]
            j += 1
        if n > 0 and new_cells[n - 1] == cell:
            new_pixels[n - 1] += count
        else:
            new_cells[n] = cell
            new_pixels[n] = count
            n += 1
    return new_cells[:n].copy(), new_pixels[:n].copy()
