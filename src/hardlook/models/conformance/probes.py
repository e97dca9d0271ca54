"""Pictures to check models with: small ones of the planted world, of many sizes, signed so that planted models work.

>>> {name: picture.shape for name, picture in pictures().items()}["tiny image"]
(8, 8, 3)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.models.roles import Clicks, Image, Mask
from hardlook.world.planted import PlantedWorld
from hardlook.world.render import RenderedScene
from hardlook.world.signature import read_signature, write_signature

SIZES = ((96, 72), (64, 80), (112, 64))  # width, height
SCENES = 60


@dataclass(frozen=True)
class Probe:
    """One input and the name of the check it belongs to; probes of one check are tried together."""

    check: str
    value: Any


def pictures() -> dict[str, Image]:
    """Fresh copies of the pictures by the name of their check; a model may change them and harm no later check."""
    fresh = {name: image.copy() for name, image in _make_originals().items()}
    # What a benchmark passes when it flips a picture: same kind of array, steps backwards in memory.
    fresh["mirrored view"] = fresh["mirrored view"][:, ::-1]
    return fresh


@cache
def _make_originals() -> dict[str, Image]:
    ordinary, tall, wide = (scene(index) for index in range(len(SIZES)))
    return {
        "ordinary image": ordinary.image,
        "tall image": tall.image,
        "wide image": wide.image,
        "tiny image": _around_subject(tall, 8, 8),
        "one-row image": _around_subject(wide, 1, 40),
        "grey image": _to_grey(ordinary.image),
        "black image": np.zeros((48, 40, 3), np.uint8),
        "mirrored view": ordinary.image,
    }


@cache
def scene(index: int) -> RenderedScene:
    """A picture and its truth; sizes take turns, and the subject is salient."""
    return PlantedWorld(seed=7, count=SCENES, size=SIZES[index % len(SIZES)], salient=True)[index]


@cache
def scenes_by_concept() -> tuple[tuple[int, ...], ...]:
    """Indices of scenes, five of each concept."""
    world = PlantedWorld(seed=7, count=SCENES, salient=True)
    found: dict[str, list[int]] = {}
    for index in range(SCENES):
        found.setdefault(world.concept(index), []).append(index)
    return tuple(tuple(indices) for indices in found.values())


def subject_of(image: Image) -> Mask:
    """The mask (H, W) of the class that covers most of the salient pixels; empty where nothing is salient."""
    truth = read_signature(image)
    codes = truth.classes[truth.salient]
    return truth.classes == np.bincount(codes).argmax() if codes.size else np.zeros(truth.salient.shape, bool)


def clicks(*points: tuple[float, float, bool], state: Any = None, box: NDArray[np.float32] | None = None) -> Clicks:
    """A prompt of (x, y, positive) clicks, and perhaps of a box."""
    rows = np.array(points, np.float32).reshape(-1, 3)
    return Clicks(np.ascontiguousarray(rows[:, :2]), rows[:, 2] > 0, state, box)


def inside(mask: Mask, share: float) -> tuple[float, float]:
    """The (x, y) of a pixel of the mask: the first in reading order at 0, the last at 1; the corner if empty."""
    rows, columns = np.nonzero(mask)
    if not rows.size:
        return 0.0, 0.0
    position = round(share * (rows.size - 1))
    return float(columns[position]), float(rows[position])


def _around_subject(rendered: RenderedScene, height: int, width: int) -> Image:
    x, y = (int(value) for value in inside(rendered.target_mask, 0.5))
    rows, columns = rendered.target_mask.shape
    top, left = min(max(y - height // 2, 0), rows - height), min(max(x - width // 2, 0), columns - width)
    return np.ascontiguousarray(rendered.image[top : top + height, left : left + width])


def _to_grey(image: Image) -> Image:
    truth = read_signature(image)
    grey = image.mean(axis=2, keepdims=True).astype(np.uint8).repeat(3, axis=2)
    return write_signature(grey, truth.classes, truth.instances, truth.salient)
