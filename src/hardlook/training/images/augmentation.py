"""Images as one array of bytes on the device, cropped, mirrored and changed in colour there, a batch at a time.

MetaCoCo's protocol: a random crop of 84 out of 96 pixels, brightness, contrast and saturation each multiplied by a
number in [.6, 1.4] in a random order, half of the images mirrored; in tests the crop of the centre. Every image of a
batch has draws of its own, which follow from the keys of the batch.

>>> store = ImageStore(torch.zeros(2, 8, 8, 3, dtype=torch.uint8), size=4)
>>> store.crop_centre(torch.tensor([0, 1])).shape
torch.Size([2, 3, 4, 4])
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hardlook.training.images.colours import jitter_colours, scale_colours
from hardlook.training.images.fused_augmentation import augment_at_once

JITTER = 0.4
_ORDERS = ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))


@dataclass(frozen=True)
class Draws:
    """What was drawn for n images.

    `corner` (n, 2) int64 y, x of the crop; `mirrored` (n,) bool; `factors` (n, 3) float32 of brightness, contrast and
    saturation; `order` (n, 3) int64 in which these are applied.
    """

    corner: Tensor
    mirrored: Tensor
    factors: Tensor
    order: Tensor

    def part(self, rows: slice | NDArray[np.integer]) -> Draws:
        """The draws of some of the images."""
        return Draws(self.corner[rows], self.mirrored[rows], self.factors[rows], self.order[rows])

    def to(self, device: torch.device) -> Draws:
        """The same on a device."""
        parts = (self.corner, self.mirrored, self.factors, self.order)
        return Draws(*(part.to(device, non_blocking=True) for part in parts))


def draw_augmentations(rng: np.random.Generator, count: int, room: int) -> Draws:
    """Draws of `count` images whose crops can move by `room` pixels."""
    numbers = rng.random((count, 7))
    corner = np.minimum((numbers[:, :2] * (room + 1)).astype(np.int64), room)
    factors = (1 - JITTER + 2 * JITTER * numbers[:, 2:5]).astype(np.float32)
    order = np.array(_ORDERS)[(numbers[:, 5] * len(_ORDERS)).astype(np.int64)]
    mirrored = numbers[:, 6] < 0.5
    return Draws(*(torch.from_numpy(np.ascontiguousarray(part)) for part in (corner, mirrored, factors, order)))


@dataclass(frozen=True, eq=False)
class ImageStore:
    """All images (N, S, S, 3) uint8 on one device; crops have `size` pixels."""

    images: Tensor
    size: int

    @property
    def room(self) -> int:
        """By how many pixels a crop can move."""
        return int(self.images.shape[1]) - self.size

    def crop_centre(self, rows: Tensor) -> Tensor:
        """(..., 3, size, size) float32, scaled, of the rows' images, cut out of the centre."""
        margin = self.room // 2
        cut = self.images[rows, margin : margin + self.size, margin : margin + self.size]
        return scale_colours(cut.movedim(-1, -3).float())

    def augment(self, rows: Tensor, draws: Draws) -> Tensor:
        """(n, 3, size, size) float32, scaled, of the images of rows (n,), each changed by its own draws."""
        at_once = augment_at_once(
            self.images, self.size, rows, draws.corner, draws.mirrored, draws.factors, draws.order
        )
        if at_once is not None:
            return at_once
        span = torch.arange(self.size, device=rows.device)
        ys = draws.corner[:, :1] + span
        xs = draws.corner[:, 1:] + torch.where(draws.mirrored[:, None], self.size - 1 - span, span)
        cut = self.images[rows[:, None, None], ys[:, :, None], xs[:, None, :]]
        return scale_colours(jitter_colours(cut.movedim(-1, -3).float(), draws.factors, draws.order))
