"""Episodes whose images are rows of one table of features: made one by one when they are asked for.

A learner that can work on the whole table (on a GPU: brought there once) uses `table` and the numbers of the rows; any
other learner takes it as the sequence of episodes that it is.

>>> table = np.array([[0.0], [4.0], [1.0]], np.float32)
>>> episodes = TableEpisodes(table, np.array([[0, 1]]), np.array([0, 1]), np.array([[2]]), ways=2, keys=("a task",))
>>> len(episodes), episodes[0].support.tolist(), episodes[0].query.tolist(), episodes[0].key
(1, [[0.0], [4.0]], [[1.0]], 'a task')
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

from hardlook.models.roles import Episode

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TableEpisodes(Sequence[Episode]):
    """T tasks of one shape: `table` (images, ...) float32 vectors or maps, read-only or not.

    `support` (T, n) and `query` (T, q) are rows of the table, `labels` (n,) the classes 0..ways-1 of the supports in
    every task, `keys` the keys of the T episodes.
    """

    table: NDArray[np.float32]
    support: Rows
    labels: Rows
    query: Rows
    ways: int
    keys: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.keys)

    @overload
    def __getitem__(self, index: int) -> Episode: ...

    @overload
    def __getitem__(self, index: slice) -> TableEpisodes: ...

    def __getitem__(self, index: int | slice) -> Episode | TableEpisodes:
        if isinstance(index, slice):
            rows = self.support[index], self.query[index]
            return TableEpisodes(self.table, rows[0], self.labels, rows[1], self.ways, self.keys[index])
        support, query = (np.asarray(self.table[rows[index]]) for rows in (self.support, self.query))
        return Episode(support, self.labels, query, self.ways, self.keys[index])
