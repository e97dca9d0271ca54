"""Prompts that can be answered in one forward pass, put together.

>>> one = Clicks(np.array([[3, 4]], np.float32), np.array([True]))
>>> two = Clicks(np.array([[3, 4], [8, 8]], np.float32), np.array([True, False]))
>>> [(group.places, group.points.shape) for group in alike([one, two, one], PromptPolicy(), batch=64)]
[((0, 2), (2, 1, 2)), ((1,), (1, 2, 2))]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.models.interactive.prompt_policy import PromptPolicy
from hardlook.models.roles import Clicks


@dataclass(frozen=True)
class AlikePrompts:
    """Prompts of as many clicks each, all with or all without an answer before.

    `places` are their places among all prompts; `points` (P, n, 2) float32 in pixels of the image; `labels` (P, n)
    int64, 1 for positive and 0 for negative; `states` P answers before, or empty; `several`: three masks are wanted.
    """

    places: tuple[int, ...]
    points: NDArray[np.float32]
    labels: NDArray[np.int64]
    states: tuple[Any, ...]
    several: bool

    def scaled(self, along_x: float, along_y: float) -> NDArray[np.float32]:
        """The points in pixels of the network's input, multiplied in float64 as SAM does."""
        scaled: NDArray[np.float64] = self.points * np.array([along_x, along_y])
        return scaled.astype(np.float32)


def alike(prompts: Sequence[Clicks], policy: PromptPolicy, batch: int) -> list[AlikePrompts]:
    """Groups of at most `batch` prompts, in order of their first prompt; every prompt is in one of them."""
    groups: dict[tuple[int, bool], list[int]] = {}
    for place, prompt in enumerate(prompts):
        given = policy.previous and prompt.state is not None
        groups.setdefault((len(prompt.points), given), []).append(place)
    return [
        _together(prompts, places[start : start + batch], given, policy.several(count))
        for (count, given), places in groups.items()
        for start in range(0, len(places), batch)
    ]


def _together(prompts: Sequence[Clicks], places: Sequence[int], given: bool, several: bool) -> AlikePrompts:
    chosen = [prompts[place] for place in places]
    return AlikePrompts(
        places=tuple(places),
        points=np.stack([np.asarray(prompt.points, np.float32).reshape(-1, 2) for prompt in chosen]),
        labels=np.stack([np.asarray(prompt.positive, np.int64).reshape(-1) for prompt in chosen]),
        states=tuple(prompt.state for prompt in chosen) if given else (),
        several=several,
    )
