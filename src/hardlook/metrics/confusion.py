"""Confusion of labels: pixel counts of (true, predicted) pairs, and which confusions cost the most.

>>> import numpy as np
>>> confusion_counts(np.array([0, 0, 1, 255]), np.array([0, 1, -1, 0]), classes=2, ignore=255)
array([[1, 1, 0],
       [0, 0, 1]])
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hardlook.metrics.arrays import (
    PairSimilarity,
    Values,
    as_numpy,
    checked_similarity,
    integer_array,
    integer_tensor,
    is_on_device,
    look_up_pairs,
    pixel_counts,
)
from hardlook.metrics.kernels import load_kernels

Ignored = int | Literal["auto"] | None

# Up to this many classes the counts are a table (268 MB, of which the system gives what is used), above it pairs seen.
MAX_TABLE_CLASSES = 5792
# A pair and its pixels are then one number of 64 bits while they are sorted.
MAX_CLASSES = 2**24 - 1
USUAL_IGNORED = 255


def choose_ignored(ignore: Ignored, classes: int) -> int | None:
    """The true label that is left out: `auto` is 255 where that is not a class, else none; a class is an error.

    >>> choose_ignored("auto", 150), choose_ignored("auto", 256), choose_ignored(None, 150)
    (255, None, None)
    >>> choose_ignored(255, 256)
    Traceback (most recent call last):
    ...
    ValueError: ignore: 255 is one of the 256 classes, 0..255; give a number that is not a class, or None
    """
    if ignore == "auto":
        return USUAL_IGNORED if classes <= USUAL_IGNORED else None
    if ignore is None:
        return None
    if 0 <= ignore < classes:
        what = f"{ignore} is one of the {classes} classes, 0..{classes - 1}"
        raise ValueError(f"ignore: {what}; give a number that is not a class, or None")
    return int(ignore)


def confusion_counts(truth: Values, prediction: Values, *, classes: int, ignore: Ignored = "auto") -> NDArray[np.int64]:
    """(classes, classes + 1) counts of (true, predicted) pairs; the last column is "no such label".

    `truth` and `prediction` are arrays or tensors of one shape and any integer types. `truth` holds 0..classes-1 or
    `ignore`, which drops the pixel: by default 255, unless that is a class. Any prediction outside 0..classes-1 falls
    into the last column. A truth outside its range is an error: it would vanish from every score.

    >>> confusion_counts([[0, 1]], [[1, 1]], classes=2).tolist()
    [[0, 1, 0], [0, 1, 0]]
    """
    counts = PairCounts(classes, ignore)
    counts.add(truth, prediction)
    return counts.table()


class PairCounts:
    """Pixels of (true, predicted) pairs of `classes` labels, added up over images.

    Up to 5,792 classes they are a table (`is_table`); above it memory grows with the pairs seen, not with the classes.
    `most_in_table` is another limit, lower where the counts of single images are wanted.

    >>> counts = PairCounts(22_000)
    >>> counts.add([[7, 7, 21_999]], [[7, 30_000, 5]])
    >>> [values.tolist() for values in counts.pairs()]
    [[7, 7, 21999], [7, 22000, 5], [1, 1, 1]]
    """

    def __init__(self, classes: int, ignore: Ignored = "auto", *, most_in_table: int | None = None) -> None:
        self.classes, self.ignore = classes, choose_ignored(ignore, classes)
        if classes > MAX_CLASSES:
            raise ValueError(f"classes: expected at most {MAX_CLASSES}, got {classes}")
        self.is_table = classes <= (MAX_TABLE_CLASSES if most_in_table is None else most_in_table)
        self.reset()

    def reset(self) -> None:
        """Delete all counts."""
        self._table: NDArray[np.int64] | None = None
        if self.is_table:
            self._table = np.zeros((self.classes + 2, self.classes + 1), np.int64)
        else:
            self._sparse = _SparseCounts()

    def add(self, truth: Values, prediction: Values) -> None:
        """Add the pixels of one image or batch; what is an error leaves the counts as they were.

        Tensors on a GPU are counted there, and only the counts are copied.
        """
        if is_on_device(truth, prediction):
            self.add_cells(*count_pairs_on_device(truth, prediction, self.classes, self.ignore))
            return
        maps = _check_maps(truth, prediction)
        limits = self.classes, self.ignore
        if self._table is None:
            wrong = self._sparse.add_maps(*maps, *limits)
        else:
            kernels = load_kernels("confusion")
            count = kernels.count_pairs if kernels else count_pairs_numpy
            count(*maps, *limits, self._table)
            wrong = bool(self._table[-1].any())
            if wrong:
                added = np.zeros_like(self._table)
                count(*maps, *limits, added)
                self._table -= added
        if wrong:
            kept = maps[0] if self.ignore is None else maps[0][maps[0] != self.ignore]
            label = int(kept[(kept < 0) | (kept >= self.classes)].flat[0])
            raise _wrong_label(label, self.classes)

    def add_cells(self, cells: NDArray[np.int64], pixels: NDArray[np.int64]) -> None:
        """Add `pixels` (n,) to `cells` (n,), true * (classes + 1) + predicted."""
        if self._table is not None:
            np.add.at(self._table.reshape(-1), cells, pixels)
        else:
            self._sparse.add_cells(cells, pixels)

    def merge(self, other: PairCounts) -> None:
        """Add another's counts of the same classes."""
        self.add_cells(*other.cells())

    def cells(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Ascending cells (n,), true * (classes + 1) + predicted, where there are pixels; and their pixels (n,)."""
        end = self.classes * (self.classes + 1)
        if self._table is not None:
            flat = self._table.reshape(-1)[:end]
            cells = np.flatnonzero(flat)
            return cells, flat[cells]
        return self._sparse.cells()

    def pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """True labels, predicted ones (`classes` for "no such label") and pixels of the pairs seen, (n,) each."""
        cells, pixels = self.cells()
        true = cells // (self.classes + 1)
        return true, cells - true * (self.classes + 1), pixels

    def table(self) -> NDArray[np.int64]:
        """(classes, classes + 1) counts; for very many classes they may not fit into memory."""
        if self._table is not None:
            return self._table[: self.classes]
        cells, pixels = self.cells()
        table = np.zeros(self.classes * (self.classes + 1), np.int64)
        table[cells] = pixels
        return table.reshape(self.classes, self.classes + 1)


def _check_maps(truth: Values, prediction: Values) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
    true_labels, predicted = integer_array(truth, "truth"), integer_array(prediction, "prediction")
    _check_shapes(true_labels.shape, predicted.shape)
    return true_labels, predicted


def _check_shapes(truth: Iterable[int], prediction: Iterable[int]) -> None:
    if tuple(truth) != tuple(prediction):
        raise ValueError(f"truth has shape {tuple(truth)}, prediction {tuple(prediction)}")


def _wrong_label(label: int, classes: int) -> ValueError:
    return ValueError(f"truth holds label {label}, outside 0..{classes - 1} and not ignored")


def count_pairs_on_device(
    truth: Any, prediction: Any, classes: int, ignore: int | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Cells (n,), true * (classes + 1) + predicted, that have pixels, and their pixels (n,), counted on the device.

    `truth` and `prediction` are tensors on one device. Errors are those of `PairCounts.add`.
    """
    rows, columns = integer_tensor(truth, "truth"), integer_tensor(prediction, "prediction")
    _check_shapes(rows.shape, columns.shape)
    ignored, outside = classes, classes + 1
    codes = rows.masked_fill((rows < 0) | (rows >= classes), outside)
    if ignore is not None:
        codes = codes.masked_fill(rows == ignore, ignored)
    columns = columns.masked_fill((columns < 0) | (columns >= classes), classes)
    codes = (codes * (classes + 1) + columns).flatten()
    size = (classes + 2) * (classes + 1)
    if size <= codes.numel():
        table = as_numpy(codes.bincount(minlength=size))
        cells = np.flatnonzero(table)
        pixels = table[cells]
    else:  # fewer numbers to copy than the table has
        cells, pixels = (as_numpy(values) for values in codes.unique(return_counts=True))
    if cells.size and cells[-1] >= outside * (classes + 1):
        wrong = (rows < 0) | (rows >= classes)
        wrong = wrong if ignore is None else wrong & (rows != ignore)
        raise _wrong_label(int(rows[wrong][0]), classes)
    kept = cells < ignored * (classes + 1)
    return cells[kept], pixels[kept]


class _SparseCounts:
    """Cells and their pixels, without zeros: sorted, and by compiled functions where numba is installed."""

    def __init__(self) -> None:
        self._kernels = load_kernels("confusion")
        self._pairs = self._kernels.make_pairs() if self._kernels else None
        self._cells = self._pixels = np.zeros(0, np.int64)

    def __getstate__(self) -> dict[str, Any]:
        return {"cells": self.cells()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__()  # type: ignore[misc]
        self.add_cells(*state["cells"])

    def add_maps(
        self, truth: NDArray[np.integer], prediction: NDArray[np.integer], classes: int, ignore: int | None
    ) -> bool:
        """Add the pixels of an image; or add nothing and return True where a true label is none of the classes."""
        if self._kernels:
            maps = truth, prediction, classes, ignore
            self._pairs, other = self._kernels.count_pairs_sparsely(*maps, self._pairs)
            if other:
                self._pairs, _ = self._kernels.count_pairs_sparsely(*maps, self._pairs, -1)
            return bool(other)
        cells, pixels = np.unique(encode_pairs_numpy(truth, prediction, classes, ignore), return_counts=True)
        kept = cells < classes * (classes + 1)
        if (cells >= (classes + 1) ** 2).any():
            return True
        self.add_cells(cells[kept], pixels[kept])
        return False

    def add_cells(self, cells: NDArray[np.int64], pixels: NDArray[np.int64]) -> None:
        """Add pixels (n,) to cells (n,)."""
        if self._kernels:
            self._pairs = self._kernels.add_cells(cells, pixels, self._pairs)
            return
        joined, place = np.unique(np.concatenate([self._cells, cells]), return_inverse=True)
        sums = np.zeros(len(joined), np.int64)
        np.add.at(sums, place, np.concatenate([self._pixels, pixels]))
        self._cells, self._pixels = joined, sums

    def cells(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Ascending cells (n,) that have pixels, and their pixels (n,)."""
        cells, pixels = self._cells, self._pixels
        if self._kernels:
            self._pairs = self._kernels.merge_notes(self._pairs)
            cells, pixels = self._pairs.cells, self._pairs.pixels
        kept = pixels > 0
        return cells[kept], pixels[kept]


def count_pairs_numpy(
    truth: NDArray[np.integer],
    prediction: NDArray[np.integer],
    classes: int,
    ignore: int | None,
    table: NDArray[np.int64],
) -> None:
    """Add to `table` (classes + 2, classes + 1) by numpy alone, where numba is not installed and to test the kernel.

    Rows are the true classes, then ignored, then any other truth; the last column is "no such label".

    >>> table = np.zeros((3, 2), np.int64)
    >>> count_pairs_numpy(np.array([0, 0, 9]), np.array([0, 5, 0]), 1, 9, table)
    >>> table.tolist()
    [[1, 1], [1, 0], [0, 0]]
    """
    cells = encode_pairs_numpy(truth, prediction, classes, ignore)
    table += np.bincount(cells, minlength=table.size).reshape(table.shape)


def encode_pairs_numpy(
    truth: NDArray[np.integer], prediction: NDArray[np.integer], classes: int, ignore: int | None
) -> NDArray[np.int64]:
    """(n,) the cell of each pixel in a table as `count_pairs_numpy` fills it."""
    rows, columns = truth.astype(np.int64), prediction.astype(np.int64)
    ignored = np.zeros(rows.shape, np.bool_) if ignore is None else rows == ignore
    rows[(rows < 0) | (rows >= classes)] = classes + 1
    rows[ignored] = classes
    columns[(columns < 0) | (columns >= classes)] = classes
    return (rows * (classes + 1) + columns).ravel()


@dataclass(frozen=True)
class ConfusionCosts:
    """One entry per confused pair, highest cost first: class `true` predicted as `called`, K for "no such label".

    `hard` counts the confused pixels, `soft` the share 1 - S of them.
    """

    true: NDArray[np.int64]
    called: NDArray[np.int64]
    hard: NDArray[np.int64]
    soft: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.true)


def confusion_costs(
    confusion: Values | PairCounts,
    similarity: Values | PairSimilarity,
    *,
    by: Literal["soft", "hard"] = "soft",
    most: int | None = None,
) -> ConfusionCosts:
    """The confusions of (K, K + 1) or (K, K) counts, or of pairs seen, highest cost first; at most `most` of them.

    `similarity` is (K, K) or a function of two arrays of labels. Pairs without a pixel are left out. Equal costs are
    ordered by the other cost, then by label.

    >>> costs = confusion_costs([[9, 4, 0], [3, 9, 1]], [[1, 0.75], [0.75, 1]])
    >>> list(zip(costs.true.tolist(), costs.called.tolist(), costs.hard.tolist(), costs.soft.tolist()))
    [(0, 1, 4, 1.0), (1, 2, 1, 1.0), (1, 0, 3, 0.75)]
    """
    if isinstance(confusion, PairCounts):
        classes = confusion.classes
        true, called, hard = confusion.pairs()
    else:
        counts = pixel_counts(confusion, "confusion").astype(np.int64)
        classes = len(counts)
        if counts.shape not in ((classes, classes), (classes, classes + 1)):
            raise ValueError(f"confusion: expected shape (K, K + 1) or (K, K), got {counts.shape}")
        true, called = np.nonzero(counts)
        hard = counts[true, called]
    wrong = true != called
    true, called, hard = true[wrong], called[wrong], hard[wrong]
    shared = similarity if callable(similarity) else checked_similarity(similarity, classes)
    soft = hard * (1.0 - look_up_pairs(shared, true, called, classes))
    first, second = (soft, hard) if by == "soft" else (hard, soft)
    order = np.lexsort((called, true, -second, -first))[:most]
    return ConfusionCosts(true[order], called[order], hard[order], soft[order])
