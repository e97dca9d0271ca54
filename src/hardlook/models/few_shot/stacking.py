"""Episodes of one shape in groups and as one array, so that a learner runs on hundreds of tasks at a time.

>>> class Nearest(StackedLearner):
...     def score_stack(self, stack):
...         return -squared_distances(stack.query, stack.class_means())
>>> line = np.array([[0.0], [4.0], [1.0]], np.float32)
>>> episodes = [Episode(line[:2], np.array([0, 1]), line[2:], ways=2, key=key) for key in ("a", "b")]
>>> [scores.tolist() for scores in Nearest().classify(episodes)]
[[[-1.0, -9.0]], [[-1.0, -9.0]]]
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import ModelError
from hardlook.models.few_shot.table_episodes import TableEpisodes
from hardlook.models.roles import Episode

MAX_TASKS = 256

MAX_BYTES = 1 << 25
"""Bytes of features in one stack: what is worked on should stay near the processor."""

FORMS = {"features": 2, "maps": 4}
"""Axes of an episode's support by what a learner accepts: (n, D) and (n, C, h, w)."""


class ClassLayout:
    """How the supports of tasks of one shape lie: `labels` (T, n) int64, sorted, the same row for all tasks."""

    labels: NDArray[np.int64]
    ways: int

    @property
    def shots(self) -> NDArray[np.int64]:
        """(ways,) supports of each class, at least 1."""
        return np.bincount(self.labels[0], minlength=self.ways)

    @property
    def membership(self) -> NDArray[np.float32]:
        """(n, ways): 1 where the support is of the class, else 0."""
        return np.asarray(np.eye(self.ways, dtype=np.float32)[self.labels[0]])

    @property
    def averaging(self) -> NDArray[np.float32]:
        """(ways, n): this times the supports (n, D) gives the class means."""
        return np.ascontiguousarray((self.membership / self.shots.astype(np.float32)).T)

    @property
    def starts(self) -> NDArray[np.int64]:
        """(ways,) the place of each class's first support; they follow each other."""
        return np.cumsum(self.shots) - self.shots


@dataclass(frozen=True)
class Stack(ClassLayout):
    """T tasks of one shape as arrays.

    `support` (T, n, D) or (T, n, C, h, w) float32, in each task sorted by class (within a class in their given order);
    `labels` (T, n) int64, the same row for all tasks, since tasks whose classes differ in shots are stacked apart;
    `query` (T, q, ...) float32; `keys` the T episodes' keys.
    """

    support: NDArray[np.float32]
    labels: NDArray[np.int64]
    query: NDArray[np.float32]
    ways: int
    keys: tuple[str, ...]

    def class_means(self) -> NDArray[np.float32]:
        """The mean support of each class, (T, ways, ...)."""
        ends = self.starts + self.shots
        return np.stack([self.support[:, a:b].mean(axis=1) for a, b in zip(self.starts, ends, strict=True)], axis=1)


@dataclass(frozen=True)
class TaskGroup(ClassLayout):
    """T tasks of one shape where they are: the features of a task are read when its turn comes, and not copied.

    `labels` (T, n) as in `Stack`; `queries` of a task. `read(place)` gives supports (n, ...), sorted by class, and
    queries (q, ...) of one task, float32, which may be overwritten by the next call. `source` are the episodes where
    they come from one table.
    """

    labels: NDArray[np.int64]
    queries: int
    ways: int
    keys: tuple[str, ...]
    read: Callable[[int], tuple[NDArray[np.float32], NDArray[np.float32]]]
    source: TableEpisodes | None = None

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[tuple[NDArray[np.float32], NDArray[np.float32]]]:
        return map(self.read, range(len(self)))

    def empty_scores(self) -> NDArray[np.float32]:
        """(T, q, ways) float32 to be filled."""
        return np.empty((len(self), self.queries, self.ways), np.float32)

    def part(self, start: int, stop: int) -> TaskGroup:
        """The tasks from `start` to before `stop`."""
        source = self.source[start:stop] if self.source is not None else None
        labels, keys = self.labels[start:stop], self.keys[start:stop]
        return replace(self, labels=labels, keys=keys, read=lambda place: self.read(start + place), source=source)

    def stack(self) -> Stack:
        """The tasks as arrays."""
        support, query = (np.empty((len(self), *rows.shape), np.float32) for rows in self.read(0))
        for place in range(len(self)):
            support[place], query[place] = self.read(place)
        return Stack(support, self.labels, query, self.ways, self.keys)


class GroupedLearner(ABC):
    """A few-shot learner that scores many tasks of one shape in one call.

    `accepts` is "features" (vectors) or "maps"; `transductive` learners use all queries of a task together; `flags` are
    the letters of `hardlook.models.registry.MARKS` that hold for the method.
    """

    accepts: str = "features"
    transductive: bool = False
    flags: tuple[str, ...] = ("GL",)

    def classify(self, episodes: Sequence[Episode]) -> list[NDArray[np.float32]]:
        """Scores (queries, ways) float32 per episode; see `score_group` for their range."""
        return classify_in_groups(episodes, self.score_group, form=self.accepts)

    @abstractmethod
    def score_group(self, group: TaskGroup) -> NDArray[np.float32]:
        """(T, q, ways) float32 scores of the queries of all tasks, higher is likelier."""


class StackedLearner(GroupedLearner):
    """A few-shot learner that scores tasks stacked into one array; `score_stack` in place of `score_group`."""

    def score_group(self, group: TaskGroup) -> NDArray[np.float32]:
        """The scores of `score_stack` on stacks of at most `MAX_TASKS` tasks and `MAX_BYTES`, or one task."""
        support, query = group.read(0)
        size = max(1, min(MAX_TASKS, MAX_BYTES // max(1, support.nbytes + query.nbytes)))
        parts = [group.part(start, start + size) for start in range(0, len(group), size)]
        return np.concatenate([self.score_stack(part.stack()) for part in parts])

    @abstractmethod
    def score_stack(self, stack: Stack) -> NDArray[np.float32]:
        """(T, q, ways) float32 scores of the queries of all tasks, higher is likelier."""


def classify_in_groups(
    episodes: Sequence[Episode], score_group: Callable[[TaskGroup], NDArray[np.float32]], *, form: str = "features"
) -> list[NDArray[np.float32]]:
    """Scores (queries, ways) float32 of each episode, in the order of the episodes.

    `score_group` gives (T, q, ways) for a `TaskGroup`. `form` is what the learner accepts, "features" or "maps";
    anything else that comes is a `ModelError`.
    """
    scores: list[NDArray[np.float32]] = [np.empty((0, 0), np.float32)] * len(episodes)
    for positions, group in _group_episodes(episodes, form):
        for position, answer in zip(positions, score_group(group), strict=True):
            # A copy: a view would keep the whole group's answers alive as long as one of them.
            scores[position] = np.array(answer, np.float32)
    return scores


def _group_episodes(episodes: Sequence[Episode], form: str) -> Iterator[tuple[Sequence[int], TaskGroup]]:
    """The positions of the episodes of each shape, and the group that they make."""
    if isinstance(episodes, TableEpisodes):
        if episodes:
            check_episode(episodes[0], form)
            yield range(len(episodes)), group_table(episodes)
        return
    groups: dict[tuple[object, ...], list[int]] = {}
    for position, episode in enumerate(episodes):
        groups.setdefault(check_episode(episode, form), []).append(position)
    for positions in groups.values():
        yield positions, group_episodes([episodes[position] for position in positions])


def group_episodes(episodes: Sequence[Episode]) -> TaskGroup:
    """The group of episodes that share the shapes, the ways and the shots of each class."""
    orders = [_find_sorting_order(episode.support_labels) for episode in episodes]
    first = episodes[0]

    def read(place: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        episode, order = episodes[place], orders[place]
        support = np.asarray(episode.support, np.float32)
        return support if order is None else support[order], np.asarray(episode.query, np.float32)

    labels = np.broadcast_to(np.sort(np.asarray(first.support_labels, np.int64)), (len(episodes), len(first.support)))
    return TaskGroup(labels, len(first.query), first.ways, tuple(episode.key for episode in episodes), read)


def group_table(episodes: TableEpisodes) -> TaskGroup:
    """The group of episodes that are rows of one table; features are copied into one buffer, task by task."""
    order = np.argsort(episodes.labels, kind="stable")
    rows, table = episodes.support[:, order], episodes.table
    buffers = [np.empty((count.shape[1], *table.shape[1:]), np.float32) for count in (rows, episodes.query)]

    def read(place: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        for buffer, chosen in zip(buffers, (rows[place], episodes.query[place]), strict=True):
            np.take(table, chosen, axis=0, out=buffer, mode="clip")  # the other modes copy once more
        return buffers[0], buffers[1]

    labels = np.broadcast_to(np.asarray(episodes.labels, np.int64)[order], rows.shape)
    return TaskGroup(labels, episodes.query.shape[1], episodes.ways, episodes.keys, read, episodes)


def _find_sorting_order(labels: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """The order that sorts the labels, None where they are sorted."""
    return None if (labels[1:] >= labels[:-1]).all() else np.argsort(labels, kind="stable")


def check_episode(episode: Episode, form: str) -> tuple[object, ...]:
    """What tasks of one group share: shapes, ways and the shots of each class; a `ModelError` where they do not fit."""
    support, query, labels = episode.support, episode.query, episode.support_labels
    unit = episode.key or None
    for name, rows in (("support", support), ("query", query)):
        if not isinstance(rows, np.ndarray) or rows.ndim != FORMS[form]:
            given = f"an array of shape {rows.shape}" if isinstance(rows, np.ndarray) else "a list of images"
            what = f"the {name} of an episode is {given}; an array of features with {FORMS[form]} axes was expected"
            remedy = "encode the images first: the learner works on an encoder's features"
            raise ModelError(what, unit=unit, remedy=remedy)
    if support.shape[1:] != query.shape[1:]:  # type: ignore[union-attr]
        shapes = f"{support.shape[1:]} and {query.shape[1:]}"  # type: ignore[union-attr]
        raise ModelError(f"supports and queries have features of different shapes, {shapes}", unit=unit)
    shots = np.bincount(labels, minlength=episode.ways) if len(labels) else np.zeros(episode.ways, np.int64)
    if len(labels) != len(support) or len(shots) != episode.ways or not shots.all():
        raise ModelError(
            f"{len(support)} supports have labels with {shots.tolist()} of each class; {episode.ways} classes, "
            "each with a support, and one label per support were expected",
            unit=unit,
        )
    return support.shape, query.shape, tuple(shots.tolist())  # type: ignore[union-attr]


def stack_episodes(episodes: Sequence[Episode]) -> Stack:
    """The stack of episodes that share the shapes, the ways and the shots of each class."""
    return group_episodes(episodes).stack()


Number = TypeVar("Number", bound=np.floating[Any])


def squared_distances(queries: NDArray[np.float32], points: NDArray[np.float32]) -> NDArray[np.float32]:
    """Squared Euclidean distances (T, q, m), at least 0, of queries (T, q, D) to points (T, m, D).

    >>> squared_distances(np.array([[[1.0]]], np.float32), np.array([[[0.0], [4.0]]], np.float32)).tolist()
    [[[1.0, 9.0]]]
    """
    # Distances are small differences of large squares; moved to the points' middle, the squares are small too.
    middle = points.mean(axis=1, keepdims=True)
    queries, points = queries - middle, points - middle
    squares = np.einsum("tqd,tqd->tq", queries, queries)[:, :, None] + np.einsum("tmd,tmd->tm", points, points)[:, None]
    return np.asarray(np.maximum(squares - 2 * (queries @ points.transpose(0, 2, 1)), 0))


SMALL_PRODUCT = 1_000_000
"""Below this number of multiplications OpenBLAS multiplies matrices in place; above, it first copies them to blocks."""


def multiply_rows(rows: NDArray[Number], points: NDArray[Number], out: NDArray[Number]) -> NDArray[Number]:
    """Dot products (m, n), written to `out`, of the rows (m, D) and the points (n, D).

    >>> multiply_rows(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0], [0.0, 1.0]]), np.empty((1, 2))).tolist()
    [[11.0, 2.0]]
    """
    size = (SMALL_PRODUCT - 1) // max(1, points.size)
    if size < 8:
        return np.matmul(rows, points.T, out=out)
    # Blocks of equal length: the last of unequal ones would be slow.
    size = -(-len(rows) // -(-len(rows) // size)) if len(rows) else 1
    for start in range(0, len(rows), size):
        np.matmul(rows[start : start + size], points.T, out=out[start : start + size])
    return out


def squared_lengths(rows: NDArray[Number]) -> NDArray[Number]:
    """Sums of squares along the last axis.

    >>> squared_lengths(np.array([[3.0, 4.0]])).tolist()
    [25.0]
    """
    if hasattr(np, "vecdot"):  # since numpy 2, three times as fast
        return np.asarray(np.vecdot(rows, rows))
    return np.asarray(np.einsum("...d,...d->...", rows, rows))


def divide_lengths(products: NDArray[Number], rows: NDArray[Number], points: NDArray[Number]) -> NDArray[Number]:
    """Cosines (..., m, n) from products and the squared lengths (..., m) and (..., n); 0 for a vector of length 0.

    >>> divide_lengths(np.array([[6.0, 0.0]]), np.array([9.0]), np.array([4.0, 0.0])).tolist()
    [[1.0, 0.0]]
    """
    inverse = [np.divide(1, np.sqrt(part), out=np.zeros_like(part), where=part > 0) for part in (rows, points)]
    return np.asarray(products * inverse[0][..., :, None] * inverse[1][..., None, :])


def cosines(rows: NDArray[Number], points: NDArray[Number]) -> NDArray[Number]:
    """Cosines (T, m, n) of rows (T, m, D) and points (T, n, D); 0 for a vector of length 0."""
    return divide_lengths(rows @ points.transpose(0, 2, 1), squared_lengths(rows), squared_lengths(points))


def softmax(logits: NDArray[Number]) -> NDArray[Number]:
    """Exponentials along the last axis that sum to 1.

    >>> softmax(np.array([0.0, 0.0])).tolist()
    [0.5, 0.5]
    """
    raised = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True))


BLOCK_BYTES = 1 << 23
"""Bytes of products of query and support descriptors held at a time: they should stay in the processor's cache."""


def descriptors(maps: NDArray[np.float32]) -> NDArray[np.float32]:
    """Maps (..., C, h, w) as local descriptors (..., h * w, C): one vector per cell, cells row by row.

    >>> descriptors(np.arange(8, dtype=np.float32).reshape(1, 2, 2, 2))[0].tolist()
    [[0.0, 4.0], [1.0, 5.0], [2.0, 6.0], [3.0, 7.0]]
    """
    *leading, channels, height, width = maps.shape
    return np.ascontiguousarray(np.moveaxis(maps.reshape(*leading, channels, height * width), -2, -1))


def class_cells(layout: ClassLayout, cells: int) -> list[slice]:
    """Where each class's descriptors lie among a task's (n * cells, C), since supports are sorted by class."""
    shots = layout.shots
    ends = np.cumsum(shots) * cells
    return [slice(int(end - count * cells), int(end)) for end, count in zip(ends, shots, strict=True)]


def query_blocks(queries: int, floats_each: int) -> Iterator[slice]:
    """Slices over the queries of a task such that `floats_each` floats per query stay within `BLOCK_BYTES`.

    >>> [(block.start, block.stop) for block in query_blocks(5, BLOCK_BYTES // 8)]
    [(0, 2), (2, 4), (4, 5)]
    """
    size = max(1, BLOCK_BYTES // (4 * max(1, floats_each)))
    for start in range(0, queries, size):
        yield slice(start, min(start + size, queries))
