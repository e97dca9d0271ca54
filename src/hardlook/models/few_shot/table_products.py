"""Dot products of all images of a small table, computed once: tasks of that table then look theirs up.

Class means, cosines, distances and ridge regression need no more of the features than the products of supports and
queries with the supports. A table of 2,000 images has 4 million products, as many as 1,600 tasks of 25 supports and 75
queries; a run has thousands of tasks.

>>> from hardlook.models.few_shot.table_episodes import TableEpisodes
>>> table = np.array([[3.0, 0.0], [0.0, 4.0], [1.0, 2.0]], np.float32)
>>> table.flags.writeable = False
>>> episodes = TableEpisodes(table, np.array([[0, 1]]), np.array([0, 1]), np.array([[2]]), ways=2, keys=("a task",))
>>> [part] = TableProducts(table).look_up(episodes)
>>> part.crosswise.tolist(), part.within.tolist(), part.query_squares.tolist()
([[[3.0, 8.0]]], [[[9.0, 0.0], [0.0, 16.0]]], [[5.0]])
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.models.few_shot.on_device import DeviceLearner
from hardlook.models.few_shot.stacking import ClassLayout, TaskGroup
from hardlook.models.few_shot.table_episodes import TableEpisodes

MAX_IMAGES = 4096
"""Larger tables would take longer than the tasks of a usual run: the work grows with the square."""

TASKS_AT_ONCE = 64

Products = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class TaskProducts(ClassLayout):
    """Products of T tasks of one shape, supports sorted by class.

    `crosswise` (T, q, n) of queries and supports, `within` (T, n, n) of supports, `query_squares` (T, q) of queries
    with themselves; `labels` (T, n) as in `Stack`.
    """

    crosswise: Products
    within: Products
    query_squares: Products
    labels: NDArray[np.int64]
    ways: int

    def compare_means(self) -> tuple[Products, Products]:
        """Products (T, q, ways) of the queries with the class means, and (T, ways) of the means with themselves."""
        averaging = self.averaging
        return self.crosswise @ averaging.T, ((averaging @ self.within) * averaging).sum(axis=2)


class TableProducts:
    """The products (images, images) of vectors (images, D); `centred` takes the mean vector off before."""

    def __init__(self, vectors: NDArray[np.float32], *, centred: bool = False, dtype: type = np.float32) -> None:
        rows: Products = np.asarray(vectors, dtype)
        rows = rows - rows.mean(axis=0, dtype=np.float64).astype(dtype) if centred else rows
        self.products: Products = rows @ rows.T

    def look_up(self, episodes: TableEpisodes) -> Iterator[TaskProducts]:
        """The products of the episodes, at most `TASKS_AT_ONCE` at a time."""
        order = np.argsort(episodes.labels, kind="stable")
        squares = np.ascontiguousarray(np.diagonal(self.products))
        for start in range(0, len(episodes), TASKS_AT_ONCE):
            support = episodes.support[start : start + TASKS_AT_ONCE, order]
            query = episodes.query[start : start + TASKS_AT_ONCE]
            yield TaskProducts(
                self.products[query[:, :, None], support[:, None, :]],
                self.products[support[:, :, None], support[:, None, :]],
                squares[query],
                np.broadcast_to(np.asarray(episodes.labels, np.int64)[order], support.shape),
                episodes.ways,
            )


class ProductLearner(DeviceLearner):
    """A learner that needs only products: it looks them up where episodes come from a small table that cannot change.

    `centred` and `dtype` are those of `TableProducts`. Whether products are looked up depends on the table alone, so
    that a task's scores do not depend on the tasks that come with it.
    """

    centred: bool = False
    dtype: type = np.float32
    _last: tuple[NDArray[np.float32], TableProducts] | None = None

    def can_multiply(self, table: NDArray[np.float32]) -> bool:
        """Whether the table is small enough for the products of all its images."""
        return len(table) <= MAX_IMAGES

    def make_vectors(self, table: NDArray[np.float32]) -> NDArray[np.float32]:
        """The vectors (images, D) whose products the learner needs."""
        return table

    @abstractmethod
    def score_products(self, tasks: TaskProducts) -> Products:
        """(T, q, ways) scores from products; up to rounding those of `score_features`."""

    @abstractmethod
    def score_features(self, group: TaskGroup) -> NDArray[np.float32]:
        """(T, q, ways) float32 scores from the features of each task."""

    def score_group(self, group: TaskGroup) -> NDArray[np.float32]:
        """(T, q, ways) float32 scores of `score_products` or `score_features`."""
        source = group.source
        if source is None or source.table.flags.writeable or not self.can_multiply(source.table):
            return self.score_features(group)
        if self._last is None or self._last[0] is not source.table:
            vectors = self.make_vectors(source.table)
            self._last = source.table, TableProducts(vectors, centred=self.centred, dtype=self.dtype)
        parts = [self.score_products(tasks) for tasks in self._last[1].look_up(source)]
        return np.concatenate(parts).astype(np.float32, copy=False)
