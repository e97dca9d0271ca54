"""Rigid transforms: rotated, mirrored and shifted, never scaled. Level L1 of tier 2 uses them.

A transform rotates by up to `MAX_DEGREES` either way, mirrors left and right half of the time, and shifts by up to
`FARTHEST` of the sides. Pixels from outside are black and belong to no class. A draw that would push more than
half of the object out of the picture is drawn again, so that there is something left to find.

>>> mask = np.zeros((60, 80), bool)
>>> mask[20:40, 30:50] = True
>>> transform = draw_visible_transform(mask, 0, "1_2007_000032", 33271)
>>> bool(transform_mask(transform, mask).sum() >= KEPT * mask.sum())
True
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.randomness import generator

MAX_DEGREES = 45.0
FARTHEST = 0.15
KEPT = 0.5
DRAWS = 32


@dataclass(frozen=True)
class RigidTransform:
    """Turned by `degrees` about the picture's centre, `mirrored`, and moved by shares of its width and height."""

    degrees: float = 0.0
    mirrored: bool = False
    right: float = 0.0
    down: float = 0.0

    def matrix(self, width: int, height: int) -> NDArray[np.float64]:
        """The (2, 3) matrix that takes pixel centres (x, y) to where they go.

        >>> RigidTransform(mirrored=True).matrix(9, 5) @ [0, 2, 1]
        array([8., 2.])
        """
        turn = np.deg2rad(self.degrees)
        linear = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
        if self.mirrored:
            linear = linear @ np.diag([-1.0, 1.0])
        centre = np.array([(width - 1) / 2, (height - 1) / 2])
        moved = centre - linear @ centre + [self.right * width, self.down * height]
        return np.concatenate([linear, moved[:, None]], axis=1)


def draw_transform(seed: int, token: str, number: int, draw: int = 0) -> RigidTransform:
    """The transform that belongs to a token and its number; `draw` counts the attempts."""
    rng = generator(seed, "rigid transform", token, number, draw)
    return RigidTransform(
        float(rng.uniform(-MAX_DEGREES, MAX_DEGREES)),
        bool(rng.random() < 0.5),
        float(rng.uniform(-FARTHEST, FARTHEST)),
        float(rng.uniform(-FARTHEST, FARTHEST)),
    )


def draw_visible_transform(mask: NDArray[np.bool_], seed: int, token: str, number: int) -> RigidTransform:
    """The first draw that keeps half of the mask (H, W) in the picture; a mirror image if none of them does."""
    least = KEPT * int(mask.sum())
    for draw in range(DRAWS):
        transform = draw_transform(seed, token, number, draw)
        if int(transform_mask(transform, mask).sum()) >= least:
            return transform
    return RigidTransform(mirrored=True)


def transform_image(transform: RigidTransform, image: NDArray[np.uint8], *, exact: bool = False) -> NDArray[np.uint8]:
    """The image (H, W, 3) moved; `exact` takes the nearest pixel instead of a mixture of four."""
    flags = cv2.INTER_NEAREST if exact else cv2.INTER_LINEAR
    return np.asarray(_warp(transform, image, flags), np.uint8)


def transform_mask(transform: RigidTransform, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The mask (H, W) moved by nearest pixels; pixels from outside are False."""
    return _warp(transform, mask.astype(np.uint8), cv2.INTER_NEAREST).astype(bool)


def _warp(transform: RigidTransform, array: NDArray[np.uint8], flags: int) -> NDArray[np.generic]:
    height, width = array.shape[:2]
    return np.asarray(cv2.warpAffine(array, transform.matrix(width, height), (width, height), flags=flags))
