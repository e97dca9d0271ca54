"""Users' first clicks on one instance, all in one batch.

>>> frame = np.zeros((4, 6), bool)
>>> frame[1:3, 2:5] = True
>>> instance = Instance("mine", "cat", np.zeros((4, 6, 3), np.uint8), frame, frame & False)
>>> trying = first_clicks(instance, [(2, 1), (0, 0)])
>>> [prompt.points.tolist() for prompt in next(trying)]
[[[2.0, 1.0]], [[0.0, 0.0]]]
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardlook.clicks.asking import ask
from hardlook.clicks.error_regions import Truth, compare
from hardlook.clicks.instance import Instance
from hardlook.models.roles import Clicks, Mask, Prompted


@dataclass(frozen=True)
class FirstClicks:
    """What one positive click each gave: counts (n,) int64 in pixels, and the mean mask (H, W) float32 in [0, 1]."""

    intersection: NDArray[np.int64]
    union: NDArray[np.int64]
    mean_mask: NDArray[np.float32] = field(repr=False)


def first_clicks(instance: Instance, points: ArrayLike) -> Generator[list[Clicks], list[Prompted], FirstClicks]:
    """Try each of the `points` (n, 2), (x, y) in pixels, as the only click; without points the mean mask is 0."""
    truth = Truth.of(instance.target, instance.ignore)
    placed = np.array(points, np.float32).reshape(-1, 2)
    answers = yield from ask([Clicks(point[None].copy(), np.ones(1, bool)) for point in placed], instance)
    found = [compare(truth, answer.mask) for answer in answers]
    return FirstClicks(
        np.array([one.intersection for one in found], np.int64),
        np.array([one.union for one in found], np.int64),
        mean_mask([answer.mask for answer in answers], instance.shape),
    )


def mean_mask(masks: list[Mask], shape: tuple[int, int]) -> NDArray[np.float32]:
    """(H, W) float32: the share of the masks that hold each pixel; 0 where there are no masks.

    >>> mean_mask([np.array([[True, False]]), np.array([[True, True]])], (1, 2)).tolist()
    [[1.0, 0.5]]
    """
    counts = np.zeros(shape, np.float32)
    for mask in masks:
        counts += mask
    return counts / np.float32(max(len(masks), 1))
