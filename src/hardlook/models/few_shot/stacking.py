"""Episodes of one shape as one array, so that a learner runs on hundreds of tasks at a time.

>>> line = np.array([[0.0], [4.0], [1.0]], np.float32)
>>> episodes = [Episode(line[:2], np.array([0, 1]), line[2:], ways=2, key=key) for key in ("a", "b")]
>>> def distances(stack):
...     return -np.abs(stack.query - stack.support.transpose(0, 2, 1))
>>> [scores.tolist() for scores in in_stacks(episodes, distances)]
[[[-1.0, -3.0]], [[-1.0, -3.0]]]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import ModelError
from hardlook.models.roles import Episode

MOST_TASKS = 256
MOST_BYTES = 1 << 25
"""Bytes of features in one stack: what is worked on should stay near the processor."""
FORMS = {"features": 2, "maps": 4}
"""Axes of an episode's support by what a learner accepts: (n, D) and (n, C, h, w)."""


@dataclass(frozen=True)
class Stack:
    """T tasks of one shape.

    `support` (T, n, D) or (T, n, C, h, w) float32, in each task sorted by class (within a class as they came);
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
        member: NDArray[np.float32] = np.eye(self.ways, dtype=np.float32)[self.labels[0]]
        return member

    @property
    def starts(self) -> NDArray[np.int64]:
        """(ways,) the place of each class's first support; they follow each other."""
        return np.cumsum(self.shots) - self.shots

    def class_means(self) -> NDArray[np.float32]:
        """The mean support of each class, (T, ways, ...)."""
        ends = self.starts + self.shots
        means = [self.support[:, a:b].mean(axis=1) for a, b in zip(self.starts, ends, strict=True)]
        return np.stack(means, axis=1)


def in_stacks(
    episodes: Sequence[Episode],
    classify_stack: Callable[[Stack], NDArray[np.float32]],
    *,
    form: str | None = None,
    most_tasks: int = MOST_TASKS,
    most_bytes: int = MOST_BYTES,
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
            together = places[start : start + size]
            answers = classify_stack(stack_of([episodes[place] for place in together]))
            for place, answer in zip(together, answers, strict=True):
                # A copy: a view would keep the whole stack's answers alive as long as one of them.
                scores[place] = np.array(answer, np.float32)
    return scores


def _shape(episode: Episode, form: str | None) -> tuple[object, ...]:
    """What tasks of one stack share: shapes, ways and the shots of each class."""
    support, query, labels = episode.support, episode.query, episode.support_labels
    unit = episode.key or None
    wanted = tuple(FORMS.values()) if form is None else (FORMS[form],)
    for name, rows in (("support", support), ("query", query)):
        if not isinstance(rows, np.ndarray) or rows.ndim not in wanted:
            came = f"an array of shape {rows.shape}" if isinstance(rows, np.ndarray) else "a list of images"
            expected = " or ".join(f"{axes} axes" for axes in wanted)
            raise ModelError(
                f"the {name} of an episode is {came}; an array of features with {expected} was expected",
                unit=unit,
                remedy="encode the images first: the learner works on an encoder's features",
            )
    if support.shape[1:] != query.shape[1:]:  # type: ignore[union-attr]
        shapes = f"{support.shape[1:]} and {query.shape[1:]}"  # type: ignore[union-attr]
        raise ModelError(f"supports and queries have features of different shapes, {shapes}", unit=unit)
    shots = np.bincount(labels, minlength=episode.ways) if len(labels) else np.zeros(episode.ways, np.int64)
    if len(labels) != len(support) or len(shots) != episode.ways or not shots.all():
        raise ModelError(
            f"{len(support)} supports have labels with {shots.tolist()} of each class; {episode.ways} classes, "
            "each with a support, and one label a support were expected",
            unit=unit,
        )
    return support.shape, query.shape, tuple(shots.tolist())  # type: ignore[union-attr]


def stack_of(episodes: Sequence[Episode]) -> Stack:
    """The stack of episodes that share the shapes, the ways and the shots of each class."""
    orders = [np.argsort(episode.support_labels, kind="stable") for episode in episodes]
    pairs = list(zip(episodes, orders, strict=True))
    return Stack(
        support=np.stack([np.asarray(episode.support, np.float32)[order] for episode, order in pairs]),
        labels=np.stack([np.asarray(episode.support_labels, np.int64)[order] for episode, order in pairs]),
        query=np.stack([np.asarray(episode.query, np.float32) for episode in episodes]),
        ways=episodes[0].ways,
        keys=tuple(episode.key for episode in episodes),
    )
