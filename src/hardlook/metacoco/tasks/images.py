"""Pools of images by concept and context, and random draws from them.

A cell is one concept in one context. Duplicate files have the same content number. A pool holds each content once (its
first row), sorted by content. So a draw without replacement never gives the same image twice, and a binary search finds
any content in any pool.

A random number is a hash of a key and counters such as task, class and draw (SplitMix64: Steele, Lea and Flood, "Fast
splittable pseudorandom number generators", OOPSLA 2014). So a task is the same in any order, subset or process, and
thousands are drawn with a few array operations; a generator per task would be too slow.

>>> from hardlook.data.concept_context import build_image_table
>>> pools = build_image_pools(build_image_table(["cat"] * 4, ["grass", "grass", "snow", "snow"], list("abbc")))
>>> indices_of = pools.cell_pools([0], [0]), pools.outside_pools([0], [0]), pools.concept_pools([0])
>>> [pools.sizes[indices].tolist() for indices in indices_of]
[[2], [1], [3]]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardlook.data.concept_context import ImageTable
from hardlook.randomness import seed_sequence

MODES = ("blind", "iid", "ood", "swapped", "shared")  # how the contexts of a task's supports and queries relate
BLIND_SUPPORTS = {
    "ours": "blind ignores context in the queries; its supports are those of the other modes",
    "paper": "blind ignores context in supports and queries",
}
ABSENT = 1 << 62  # a position beyond every pool: an exclusion that excludes nothing
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)

Numbers = NDArray[np.int64]
Words = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class ImagePools:
    """All pools of a table, concatenated.

    Pool p is `rows[starts[p] : starts[p] + sizes[p]]`; `keys` are p * (n + 1) + content of these rows, ascending.
    `content` (n,) numbers the contents as they first appear; `in_several_cells` (n,) marks rows whose content lies in
    other cells of the table too.
    """

    concepts: int
    contexts: int
    starts: Numbers
    sizes: Numbers
    rows: Numbers
    keys: Numbers
    content: Numbers
    in_several_cells: NDArray[np.bool_]

    def cell_pools(self, concept: ArrayLike, context: ArrayLike) -> Numbers:
        """Indices of the pools of each concept in each context."""
        return np.asarray(concept, np.int64) * self.contexts + np.asarray(context, np.int64)

    def outside_pools(self, concept: ArrayLike, context: ArrayLike) -> Numbers:
        """Indices of the pools of each concept in all other contexts, without contents that are in this context too."""
        return self.cell_pools(concept, context) + self.concepts * self.contexts

    def concept_pools(self, concept: ArrayLike) -> Numbers:
        """Indices of the pools of all images of each concept."""
        return np.asarray(concept, np.int64) + 2 * self.concepts * self.contexts

    def cell_sizes(self) -> Numbers:
        """(concepts, contexts) how many different images each cell holds."""
        return self.sizes[: self.concepts * self.contexts].reshape(self.concepts, self.contexts)

    def outside_sizes(self) -> Numbers:
        """(concepts, contexts) how many different images of the concept lie outside the context."""
        cells = self.concepts * self.contexts
        return self.sizes[cells : 2 * cells].reshape(self.concepts, self.contexts)

    def concept_sizes(self) -> Numbers:
        """(concepts,) how many different images each concept has."""
        return self.sizes[2 * self.concepts * self.contexts :]

    def find_positions(self, pools: Numbers, content: Numbers) -> Numbers:
        """Position of each content in its pool (arrays that broadcast); `ABSENT` if the pool does not have it."""
        sought = pools * (len(self.content) + 1) + content
        if not len(self.keys):
            return np.full(sought.shape, ABSENT, np.int64)
        found = np.minimum(np.searchsorted(self.keys, sought), len(self.keys) - 1)
        return np.where(self.keys[found] == sought, found - self.starts[pools], ABSENT)

    def contents_in_several_cells(self, support: Numbers) -> Numbers:
        """(T, W) contents of the tasks' supports (T, N, K) that lie in several cells, padded with len(content)."""
        filler = len(self.content)
        flat = support.reshape(len(support), support.shape[1] * support.shape[2])
        repeated = self.in_several_cells[flat]
        most = int(repeated.sum(1).max(initial=0))
        if not most:
            return np.empty((len(support), 0), np.int64)
        return np.sort(np.where(repeated, self.content[flat], filler), axis=1)[:, :most]

    def find_support_positions(self, pools: Numbers, support: Numbers) -> Numbers:
        """(T, N, E) positions in the pools (T, N) of contents in the supports (T, N, K), padded with `ABSENT`."""
        # A content of one cell can only be in its own class's pool; the few others are searched in every class's pool.
        own = np.where(self.in_several_cells[support], len(self.content), self.content[support])
        repeated = self.contents_in_several_cells(support)[:, None, :]
        found = [self.find_positions(pools[..., None], content) for content in (own, repeated)]
        return np.concatenate(found, axis=2)

    def draw(self, pools: Numbers, randoms: Words, excluded: Numbers | None = None) -> Numbers:
        """(T, N, count) rows drawn without replacement from each pool (T, N), except positions `excluded` (T, N, E)."""
        flat = pools.reshape(-1)
        count = randoms.shape[-1]
        forbidden = None if excluded is None else excluded.reshape(len(flat), excluded.shape[-1])
        drawn = draw_distinct_positions(randoms.reshape(len(flat), count), self.sizes[flat], forbidden)
        return np.asarray(self.rows[self.starts[flat][:, None] + drawn].reshape(*pools.shape, count), np.int64)


def build_image_pools(table: ImageTable) -> ImagePools:
    """The pools of a table: every concept in each context, outside each context, and altogether."""
    concepts, contexts = len(table.concepts), len(table.contexts)
    content = _number_contents(table.content)
    cell = table.concept * contexts + table.context
    cell_rows = _find_first_rows(cell, content)
    concept_rows = _find_first_rows(table.concept, content)
    # Every image of a concept for every context of the concept, less those whose content lies in the context.
    filled = np.unique(cell)
    per_concept = np.bincount(table.concept[concept_rows], minlength=concepts)
    begins = np.cumsum(per_concept) - per_concept
    owner = filled // max(contexts, 1)
    repeats = per_concept[owner]
    offset = np.arange(repeats.sum()) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    other_cell = np.repeat(filled, repeats)
    other_rows = concept_rows[np.repeat(begins[owner], repeats) + offset]
    many = len(content) + 1  # beyond every content, so that pool * many + content is one number per pair
    inside = np.isin(other_cell * many + content[other_rows], cell[cell_rows] * many + content[cell_rows])
    cells = concepts * contexts
    pool = np.concatenate([cell[cell_rows], cells + other_cell[~inside], 2 * cells + table.concept[concept_rows]])
    rows = np.concatenate([cell_rows, other_rows[~inside], concept_rows])
    sizes = np.bincount(pool, minlength=2 * cells + concepts).astype(np.int64)
    cells_of_content = np.bincount(content[cell_rows], minlength=len(content))
    return ImagePools(
        concepts,
        contexts,
        starts=np.cumsum(sizes) - sizes,
        sizes=sizes,
        rows=rows,
        keys=pool * many + content[rows],
        content=content,
        in_several_cells=cells_of_content[content] > 1,
    )


def _number_contents(content: Numbers) -> Numbers:
    _, first, inverse = np.unique(content, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[inverse], np.int64)


def _find_first_rows(group: Numbers, content: Numbers) -> Numbers:
    """Rows sorted by group and content, the first of each combination only."""
    order = np.lexsort((np.arange(len(group)), content, group))
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (np.diff(group[order]) != 0) | (np.diff(content[order]) != 0)
    return order[fresh]


def make_key(seed: int, *words: str | int) -> int:
    """A 64-bit key for a seed and what is drawn; keys of different words are independent."""
    return int(seed_sequence(seed, "tasks", *words).generate_state(1, np.uint64)[0])


def draw_random_numbers(key: int, *counters: ArrayLike) -> Words:
    """Uniform 64-bit numbers, one for each combination of counters (whole numbers, broadcast together)."""
    state = np.array([key], dtype=np.uint64)
    with np.errstate(over="ignore"):
        for counter in counters:
            state = _mix(state + (np.asarray(counter).astype(np.uint64) + np.uint64(1)) * _GOLDEN)
    return state


def reduce_below(randoms: Words, sizes: ArrayLike) -> Numbers:
    """Uniform whole numbers in 0..size-1 from uniform 64-bit numbers; `sizes` are at least 1.

    The remainder's bias is size / 2**64 at most, too small to matter for any number of tasks.
    """
    return (randoms % np.asarray(sizes).astype(np.uint64)).astype(np.int64)


def scale_to_unit_interval(randoms: Words) -> NDArray[np.float64]:
    """Uniform numbers in [0, 1), 53 bits each, from uniform 64-bit numbers."""
    return (randoms >> np.uint64(11)).astype(np.float64) * 2.0**-53


def draw_distinct_positions(randoms: Words, sizes: Numbers, excluded: Numbers | None = None) -> Numbers:
    """Draw without replacement from many pools: (B, count) positions in 0..size-1, distinct within a row.

    `randoms` (B, count) from `draw_random_numbers`; `sizes` (B,); `excluded` (B, E) positions that may not be drawn,
    distinct within a row, `ABSENT` as filler. Every set of allowed positions is equally likely.

    >>> randoms = draw_random_numbers(make_key(0, "an example"), np.arange(1000)[:, None], np.arange(3))
    >>> np.unique(draw_distinct_positions(randoms, np.full(1000, 5), np.full((1000, 1), 2))).tolist()
    [0, 1, 3, 4]
    """
    rows, count = randoms.shape
    forbidden = np.sort(excluded, axis=1).T if excluded is not None else np.empty((0, rows), np.int64)
    present = (forbidden < sizes).sum(0)
    forbidden = forbidden[: present.max(initial=0)]
    free = sizes - present
    if (free < count).any():
        short = int(np.argmin(free - count))
        raise ValueError(f"expected {count} free positions in each pool, pool {short} has {free[short]}")
    taken = np.full((len(forbidden) + count, rows), ABSENT, dtype=np.int64)
    taken[: len(forbidden)] = forbidden
    drawn = np.empty((rows, count), dtype=np.int64)
    for draw in range(count):
        # The n-th free position: step over what is taken, in ascending order.
        position = reduce_below(randoms[:, draw], free - draw)
        for before in taken[: len(forbidden) + draw]:
            position += before <= position
        drawn[:, draw] = position
        # Insert it where it keeps the order.
        carried = position
        for slot in taken[: len(forbidden) + draw + 1]:
            smaller = np.minimum(slot, carried)
            carried = np.maximum(slot, carried)
            slot[:] = smaller
    return drawn


def _mix(words: Words) -> Words:
    words = (words ^ (words >> np.uint64(30))) * _FIRST
    words = (words ^ (words >> np.uint64(27))) * _SECOND
    return words ^ (words >> np.uint64(31))
