"""Products of the local descriptors of two images, summarised once for each pair: tasks of one table share them.

DN4 and CovaMNet compare every cell of a query with every cell of every support. What a class's score needs of that is
little for each pair of images, and pairs recur: 3,000 tasks of 75 queries and 25 supports on 1,120 images ask for each
pair four times. A pair is computed when a task first asks for it, by a product of its own, so that its bits do not
depend on the tasks that come with it.

>>> from hardlook.models.few_shot.stacking import descriptors
>>> maps = np.array([[[[1.0, 2.0]]], [[[3.0, 0.0]]]], np.float32)
>>> def total(products):
...     return products.sum(axis=(1, 2), dtype=np.float32)[:, None]
>>> pairs = ImagePairs(len(maps), 1, np.float32, prepare_query=descriptors, prepare_support=descriptors, reduce=total)
>>> pairs.look_up(maps, np.array([0, 1]), np.array([0, 1]))[..., 0].tolist()
[[9.0, 9.0], [9.0, 9.0]]
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.models.few_shot.on_device import DeviceLearner
from hardlook.models.few_shot.stacking import ClassLayout, TaskGroup

MAX_PAIR_BYTES = 1 << 30
"""Tables whose pairs would take more are not kept: 1,350 images of 7 x 7 cells in DN4, 1,630 in CovaMNet."""

Maps = NDArray[np.float32]
Summaries = NDArray[np.floating[Any]]


class ImagePairs:
    """Summaries (width,) of all pairs of a query image and a support image of a table, filled as they are asked for.

    `prepare_query` and `prepare_support` make descriptors (n, cells, C) of maps (n, C, h, w). `reduce` makes the
    summaries (m, width) of the products (m, query cells, support cells) of one query with m supports.
    """

    def __init__(
        self,
        images: int,
        width: int,
        dtype: type,
        *,
        prepare_query: Callable[[Maps], Maps],
        prepare_support: Callable[[Maps], Maps],
        reduce: Callable[[Maps], Summaries],
    ) -> None:
        # Memory is taken by the system when it is first written to.
        self._values: Summaries = np.empty((images, images, width), dtype)
        self._known = np.zeros((images, images), np.bool_)
        self._prepare_query, self._prepare_support, self._reduce = prepare_query, prepare_support, reduce

    def look_up(self, table: Maps, queries: NDArray[np.integer[Any]], supports: NDArray[np.integer[Any]]) -> Summaries:
        """The summaries (q, n, width) of queries and supports, rows of the table."""
        missing = ~self._known[queries[:, None], supports]
        if missing.any():
            self._compute(table, queries, supports, missing)
        return np.asarray(self._values[queries[:, None], supports])

    def _compute(
        self,
        table: Maps,
        queries: NDArray[np.integer[Any]],
        supports: NDArray[np.integer[Any]],
        missing: NDArray[np.bool_],
    ) -> None:
        shown = self._prepare_support(np.asarray(table[supports], np.float32))
        products = np.empty((len(supports), shown.shape[1], shown.shape[1]), np.float32)
        for place in np.flatnonzero(missing.any(axis=1)):
            row = queries[place]
            [query] = self._prepare_query(np.asarray(table[row : row + 1], np.float32))
            columns = np.flatnonzero(missing[place])
            for slot, column in enumerate(columns):
                np.matmul(query, shown[column].T, out=products[slot])
            self._values[row, supports[columns]] = self._reduce(products[: len(columns)])
            self._known[row, supports[columns]] = True


class PairLearner(DeviceLearner):
    """A learner on maps that needs only a summary of each pair of images, where tasks come from one table.

    `summary_type` is the type of the summaries. Whether pairs are kept depends on the table alone, so that a task's
    scores do not depend on the tasks that come with it.
    """

    accepts = "maps"
    summary_type: type = np.float32
    _last: tuple[Maps, ImagePairs] | None = None

    @abstractmethod
    def summary_width(self, cells: int) -> int:
        """How many numbers summarise a pair of maps of so many cells."""

    @abstractmethod
    def make_pairs(self, table: Maps) -> ImagePairs:
        """The pairs of a table, none of them computed yet."""

    @abstractmethod
    def score_pairs(self, values: Summaries, layout: ClassLayout, cells: int) -> Summaries:
        """(q, ways) scores of one task from the summaries (q, n, width); up to rounding those of `score_maps`."""

    @abstractmethod
    def score_maps(self, group: TaskGroup) -> NDArray[np.float32]:
        """(T, q, ways) float32 scores from the maps of each task."""

    def can_keep_pairs(self, table: Maps) -> bool:
        """Whether the table stays as it is and the summaries of all its pairs fit into `MAX_PAIR_BYTES`."""
        width = self.summary_width(int(np.prod(table.shape[2:])))
        return (
            not table.flags.writeable
            and len(table) ** 2 * width * np.dtype(self.summary_type).itemsize <= MAX_PAIR_BYTES
        )

    def score_group(self, group: TaskGroup) -> NDArray[np.float32]:
        """(T, q, ways) float32 scores of `score_pairs` or `score_maps`."""
        source = group.source
        if source is None or not self.can_keep_pairs(source.table):
            return self.score_maps(group)
        table = source.table
        if self._last is None or self._last[0] is not table:
            self._last = None  # frees the last ones first
            self._last = table, self.make_pairs(table)
        scores, cells = group.empty_scores(), int(np.prod(table.shape[2:]))
        order = np.argsort(source.labels, kind="stable")
        for place in range(len(group)):
            values = self._last[1].look_up(table, source.query[place], source.support[place, order])
            scores[place] = self.score_pairs(values, group, cells)
        return scores
