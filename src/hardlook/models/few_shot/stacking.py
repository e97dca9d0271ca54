"""Episodes of one shape as one array, so that a learner runs on hundreds of tasks at a time, and maths on such arrays.

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
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import ModelError
from hardlook.models.roles import Episode

MAX_TASKS = 256

MAX_BYTES = 1 << 25
"""Bytes of features in one stack: what is worked on should stay near the processor."""

FORMS = {"features": 2, "maps": 4}
"""Axes of an episode's support by what a learner accepts: (n, D) and (n, C, h, w)."""


@dataclass(frozen=True)
class Stack:
    """T tasks of one shape.

    `support` (T, n, D) or (T, n, C, h, w) float32, in each task sorted by class (within a class in their given order);
    `labels` (T, n) int64, the same row for all tasks, since tasks whose classes differ in shots are stacked apart;
    `query` (T, q, ...) float32; `keys` the T episodes' keys.
    """

    support: NDArray[np.float32]
    labels: NDArray[np.int64]
    query: NDArray[np.float32]
    ways: int
    keys: tuple[str, ...]

    @property
    def shots(self) -> NDArray[np.int64]:
        """(ways,) supports of each class, at least 1."""
        return np.bincount(self.labels[0], minlength=self.ways)

    @property
    def membership(self) -> NDArray[np.float32]:
        """(n, ways): 1 where the support is of the class, else 0."""
        return np.asarray(np.eye(self.ways, dtype=np.float32)[self.labels[0]])

    @property
    def starts(self) -> NDArray[np.int64]:
        """(ways,) the place of each class's first support; they follow each other."""
        return np.cumsum(self.shots) - self.shots

    def class_means(self) -> NDArray[np.float32]:
        """The mean support of each class, (T, ways, ...)."""
        ends = self.starts + self.shots
        return np.stack([self.support[:, a:b].mean(axis=1) for a, b in zip(self.starts, ends, strict=True)], axis=1)


class StackedLearner(ABC):
    """A few-shot learner that scores a whole stack of tasks at once.

    `accepts` is "features" (vectors) or "maps"; `transductive` learners use all queries of a task together; `flags` are
    the letters of `hardlook.models.registry.MARKS` that hold for the method.
    """

    accepts: str = "features"
    transductive: bool = False
    flags: tuple[str, ...] = ("GL",)

    def classify(self, episodes: Sequence[Episode]) -> list[NDArray[np.float32]]:
        """(queries, ways) float32 scores per episode; see `score_stack` for their range."""
        return classify_in_stacks(episodes, self.score_stack, form=self.accepts)

    @abstractmethod
    def score_stack(self, stack: Stack) -> NDArray[np.float32]:
        """(T, q, ways) float32 scores of the queries of all tasks, higher is likelier."""


def classify_in_stacks(
    episodes: Sequence[Episode],
    classify_stack: Callable[[Stack], NDArray[np.float32]],
    *,
    form: str = "features",
    most_tasks: int = MAX_TASKS,
    most_bytes: int = MAX_BYTES,
) -> list[NDArray[np.float32]]:
    """Scores (queries, ways) float32 of each episode, in the order of the episodes.

    `classify_stack` gives (T, q, ways) for a `Stack`. `form` is what the learner accepts, "features" or "maps";
    anything else that comes is a `ModelError`. A stack holds at most `most_tasks` tasks and `most_bytes` of features,
    and at least one task.
    """
    groups: dict[tuple[object, ...], list[int]] = {}
    for place, episode in enumerate(episodes):
        groups.setdefault(_shape(episode, form), []).append(place)
    scores: list[NDArray[np.float32]] = [np.empty((0, 0), np.float32)] * len(episodes)
    for places in groups.values():
        first = episodes[places[0]]
        bytes_each = 4 * (np.size(first.support) + np.size(first.query))
        size = max(1, min(most_tasks, most_bytes // max(1, bytes_each)))
        for start in range(0, len(places), size):
            chosen = places[start : start + size]
            answers = classify_stack(stack_episodes([episodes[place] for place in chosen]))
            for place, answer in zip(chosen, answers, strict=True):
                # A copy: a view would keep the whole stack's answers alive as long as one of them.
                scores[place] = np.array(answer, np.float32)
    return scores


def _shape(episode: Episode, form: str) -> tuple[object, ...]:
    """What tasks of one stack share: shapes, ways and the shots of each class."""
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
    pairs = [(episode, np.argsort(episode.support_labels, kind="stable")) for episode in episodes]
    return Stack(
        support=np.stack([np.asarray(episode.support, np.float32)[order] for episode, order in pairs]),
        labels=np.stack([np.asarray(episode.support_labels, np.int64)[order] for episode, order in pairs]),
        query=np.stack([np.asarray(episode.query, np.float32) for episode in episodes]),
        ways=episodes[0].ways,
        keys=tuple(episode.key for episode in episodes),
    )


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


def class_cells(stack: Stack) -> list[slice]:
    """Where each class's descriptors lie among a task's (n * h * w, C), since supports are sorted by class."""
    cells = int(np.prod(stack.support.shape[3:]))
    ends = np.cumsum(stack.shots) * cells
    return [slice(int(end - shots * cells), int(end)) for end, shots in zip(ends, stack.shots, strict=True)]


def query_blocks(queries: int, floats_each: int) -> Iterator[slice]:
    """Slices over the queries of a task such that `floats_each` floats per query stay within `BLOCK_BYTES`.

    >>> [(block.start, block.stop) for block in query_blocks(5, BLOCK_BYTES // 8)]
    [(0, 2), (2, 4), (4, 5)]
    """
    size = max(1, BLOCK_BYTES // (4 * max(1, floats_each)))
    for start in range(0, queries, size):
        yield slice(start, min(start + size, queries))
