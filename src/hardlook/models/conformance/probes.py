"""Pictures to try models with: small ones of the planted world, of many sizes, signed so that planted models work.

>>> {name: picture.shape for name, picture in pictures().items()}["tiny image"]
(8, 8, 3)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from hardlook.models.roles import Clicks, Image, Mask
from hardlook.world.planted import PlantedWorld
from hardlook.world.render import Rendered
from hardlook.world.signature import read, sign

SIZES = ((96, 72), (64, 80), (112, 64))  # width, height


@dataclass(frozen=True)
class Probe:
    """One input and the name of what is tried with it; probes of one name are tried together."""

    check: str
    value: Any


def pictures() -> Mapping[str, Image]:
    """Fresh copies of the pictures by what they try; a model may spoil them and harm no later check."""
    scenes = [scene(index) for index in range(len(SIZES))]
    first = scenes[0].image
    made: dict[str, Callable[[], Image]] = {
        "ordinary image": lambda: first.copy(),
        "tall image": lambda: scenes[1].image.copy(),
        "wide image": lambda: scenes[2].image.copy(),
        "tiny image": lambda: _around_subject(scenes[1], 8, 8),
        "one-row image": lambda: _around_subject(scenes[2], 1, 40),
        "grey image": lambda: _greyed(first),
        "black image": lambda: np.zeros((48, 40, 3), np.uint8),
        # What a benchmark passes when it flips a picture: same kind of array, steps backwards in memory.
        "mirrored view": lambda: first.copy()[:, ::-1],
    }
    return {name: make() for name, make in made.items()}


@cache
def scene(index: int) -> Rendered:
    """A picture and its truth; sizes take turns, and the subject is salient."""
    return PlantedWorld(seed=7, count=24, size=SIZES[index % len(SIZES)], salient=True)[index]


def subject_of(image: Image) -> Mask:
    """The mask (H, W) of the class that covers most of the salient pixels; empty where nothing is salient."""
    truth = read(image)
    codes = truth.classes[truth.salient]
    return truth.classes == np.bincount(codes).argmax() if codes.size else np.zeros(truth.salient.shape, bool)


def clicks(*points: tuple[float, float, bool], state: Any = None) -> Clicks:
    """A prompt of (x, y, positive) clicks."""
    rows = np.array(points, np.float32).reshape(-1, 3)
    return Clicks(np.ascontiguousarray(rows[:, :2]), rows[:, 2] > 0, state)


def inside(mask: Mask, share: float) -> tuple[float, float]:
    """The (x, y) of a pixel of the mask: the first in reading order at 0, the last at 1; the corner if empty."""
    rows, columns = np.nonzero(mask)
    if not rows.size:
        return 0.0, 0.0
    position = round(share * (rows.size - 1))
    return float(columns[position]), float(rows[position])


def _around_subject(rendered: Rendered, height: int, width: int) -> Image:
    x, y = (int(value) for value in inside(rendered.target_mask, 0.5))
    rows, columns = rendered.target_mask.shape
    top, left = min(max(y - height // 2, 0), rows - height), min(max(x - width // 2, 0), columns - width)
    return np.ascontiguousarray(rendered.image[top : top + height, left : left + width])


def _greyed(image: Image) -> Image:
    truth = read(image)
    grey = image.mean(axis=2, keepdims=True).astype(np.uint8).repeat(3, axis=2)
    return sign(grey, truth.classes, truth.instances, truth.salient)
