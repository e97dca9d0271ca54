"""Pools of images to draw from: by concept and context, by concept outside a context, and by concept.

A pool holds every content once (of doubles the first row), sorted by content. So a draw without replacement never
gives the same picture twice, and the position of any content in any pool is one search away.

>>> from hardlook.tasks.image_table import image_table
>>> table = image_table(["cat"] * 4, ["grass", "grass", "snow", "snow"], ["a", "b", "b", "c"])
>>> pools = image_pools(table)
>>> [pools.sizes[pool].tolist() for pool in (pools.cell([0], [0]), pools.outside([0], [0]), pools.whole([0]))]
[[2], [1], [3]]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardlook.tasks.image_table import ImageTable, Numbers
from hardlook.tasks.keyed_draws import NOWHERE, Words, distinct_positions


@dataclass(frozen=True, eq=False)
class ImagePools:
    """All pools of a table, one after the other.

    Pool p is `rows[starts[p] : starts[p] + sizes[p]]`. `content` (n,) numbers the contents as they first appear;
    `twinned` (n,) marks rows whose content lies in other cells of the table too.
    """

    concepts: int
    contexts: int
    starts: Numbers
    sizes: Numbers
    rows: Numbers
    keys: Numbers
    content: Numbers
    twinned: NDArray[np.bool_]

    def cell(self, concept: ArrayLike, context: ArrayLike) -> Numbers:
        """Pools of the images of concepts in contexts."""
        return np.asarray(concept, np.int64) * self.contexts + np.asarray(context, np.int64)

    def outside(self, concept: ArrayLike, context: ArrayLike) -> Numbers:
        """Pools of the images of concepts in other contexts than these; contents that lie in both are not in it."""
        return self.cell(concept, context) + self.concepts * self.contexts

    def whole(self, concept: ArrayLike) -> Numbers:
        """Pools of all images of concepts."""
        return np.asarray(concept, np.int64) + 2 * self.concepts * self.contexts

    def cell_sizes(self) -> Numbers:
        """(concepts, contexts) how many different images each cell holds."""
        return self.sizes[: self.concepts * self.contexts].reshape(self.concepts, self.contexts)

    def outside_sizes(self) -> Numbers:
        """(concepts, contexts) how many different images of the concept lie outside the context."""
        cells = self.concepts * self.contexts
        return self.sizes[cells : 2 * cells].reshape(self.concepts, self.contexts)

    def whole_sizes(self) -> Numbers:
        """(concepts,) how many different images each concept has."""
        return self.sizes[2 * self.concepts * self.contexts :]

    def positions(self, pools: Numbers, content: Numbers) -> Numbers:
        """Where contents lie in pools (arrays that broadcast); `NOWHERE` for those that do not."""
        sought = pools * (len(self.content) + 1) + content
        if not len(self.keys):
            return np.full(sought.shape, NOWHERE, np.int64)
        found = np.minimum(np.searchsorted(self.keys, sought), len(self.keys) - 1)
        return np.where(self.keys[found] == sought, found - self.starts[pools], NOWHERE)

    def twins(self, support: Numbers) -> Numbers:
        """(T, W) contents of the tasks' supports (T, N, K) that lie in several cells, with a filler found nowhere."""
        filler = len(self.content)
        flat = support.reshape(len(support), support.shape[1] * support.shape[2])
        twinned = self.twinned[flat]
        most = int(twinned.sum(1).max(initial=0))
        if not most:
            return np.empty((len(support), 0), np.int64)
        return np.sort(np.where(twinned, self.content[flat], filler), axis=1)[:, :most]

    def taken(self, pools: Numbers, support: Numbers) -> Numbers:
        """(T, N, E) positions in the pools (T, N) of contents that the tasks' supports (T, N, K) use, and filler."""
        # A content of one cell can only meet its own class; the few others are looked for in the pools of all.
        own = np.where(self.twinned[support], len(self.content), self.content[support])
        twins = self.twins(support)[:, None, :]
        found = [self.positions(pools[..., None], content) for content in (own, twins)]
        return np.concatenate(found, axis=2)

    def draw(self, pools: Numbers, randoms: Words, taken: Numbers | None = None) -> Numbers:
        """(T, N, count) rows of the table, different contents of each pool (T, N), none at the positions `taken`."""
        flat = pools.reshape(-1)
        count = randoms.shape[-1]
        excluded = None if taken is None else taken.reshape(len(flat), taken.shape[-1])
        drawn = distinct_positions(randoms.reshape(len(flat), count), self.sizes[flat], excluded)
        return np.asarray(self.rows[self.starts[flat][:, None] + drawn].reshape(*pools.shape, count), np.int64)


def image_pools(table: ImageTable) -> ImagePools:
    """The pools of a table; made once, tasks are drawn from them."""
    concepts, contexts = len(table.concepts), len(table.contexts)
    content = _as_first_seen(table.content)
    cell = table.concept * contexts + table.context
    cell_rows = _first_of_each(cell, content)
    whole_rows = _first_of_each(table.concept, content)
    # Every image of a concept beside every context of the concept, less those whose content lies in the context.
    filled = np.unique(cell)
    per_concept = np.bincount(table.concept[whole_rows], minlength=concepts)
    begins = np.cumsum(per_concept) - per_concept
    repeats = per_concept[filled // contexts] if len(filled) else np.empty(0, np.int64)
    ends = np.cumsum(repeats)
    offset = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - repeats, repeats)
    beside = np.repeat(filled, repeats)
    other_rows = whole_rows[begins[beside // contexts if contexts else beside] + offset]
    inside = np.isin(
        beside * (len(content) + 1) + content[other_rows], cell[cell_rows] * (len(content) + 1) + content[cell_rows]
    )
    cells = concepts * contexts
    pool = np.concatenate([cell[cell_rows], cells + beside[~inside], 2 * cells + table.concept[whole_rows]])
    rows = np.concatenate([cell_rows, other_rows[~inside], whole_rows])
    sizes = np.bincount(pool, minlength=2 * cells + concepts).astype(np.int64)
    cells_of_content = np.bincount(content[cell_rows], minlength=len(content))
    return ImagePools(
        concepts,
        contexts,
        starts=np.cumsum(sizes) - sizes,
        sizes=sizes,
        rows=rows,
        keys=pool * (len(content) + 1) + content[rows],
        content=content,
        twinned=cells_of_content[content] > 1,
    )


def _as_first_seen(content: Numbers) -> Numbers:
    _, first, inverse = np.unique(content, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[inverse], np.int64)


def _first_of_each(group: Numbers, content: Numbers) -> Numbers:
    """Rows sorted by group and content, the first of each combination only."""
    order = np.lexsort((np.arange(len(group)), content, group))
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (np.diff(group[order]) != 0) | (np.diff(content[order]) != 0)
    return order[fresh]
