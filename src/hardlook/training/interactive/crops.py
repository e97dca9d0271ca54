"""Squares of images around objects, and changes of colour, for the training of interactive networks.

A square always holds the object's anchor, one of its pixels, on the centre of one of its own: however small the
square is made, the object does not vanish from it.

>>> objects = Objects(np.array([[100, 200]]), np.array([[150.0, 40.0, 169.0, 59.0]]), np.array([[160.0, 50.0]]))
>>> whole = fit_objects(objects, 64)
>>> [float(value) for value in whole.matrices[0] @ [32, 32, 1]]  # in the image, of the square's middle
[160.0, 50.0]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hardlook.training.images.segmentation_images import Matrices, Sizes, Transforms

EXPANSION = 1.4  # of the object's box, as in the zoom-in of the evaluation
LEAST_SHARE = 0.4  # of the image's longer side: 200 of 500 pixels in the evaluation
ZOOM = (0.8, 1.5)  # of the expanded box
RESCALE = (0.75, 1.4)  # of the whole image
JITTER = 0.15  # of a crop's side
BRIGHTNESS, CONTRAST, SHIFT = 0.25, (-0.15, 0.4), 10 / 255


@dataclass(frozen=True, eq=False)
class Objects:
    """n objects: `sizes` (n, 2) of their images, `boxes` (n, 4) of x0, y0, x1, y1 inside, `anchors` (n, 2) of x, y."""

    sizes: Sizes
    boxes: NDArray[np.float64]
    anchors: NDArray[np.float64]

    @property
    def middles(self) -> NDArray[np.float64]:
        """(n, 2): x and y of the middle of each box."""
        return np.asarray((self.boxes[:, :2] + self.boxes[:, 2:]) / 2)

    @property
    def sides(self) -> NDArray[np.float64]:
        """(n,): the side of a square around each object, as the evaluation zooms in."""
        longest = (self.boxes[:, 2:] - self.boxes[:, :2]).max(1) + 1
        return np.asarray(np.maximum(EXPANSION * longest, LEAST_SHARE * self.sizes.max(1)))


def fit_objects(objects: Objects, size: int) -> Transforms:
    """Squares around the objects, nothing drawn at random."""
    return _place(objects, objects.sides, objects.middles, size, np.zeros(len(objects.sizes), np.bool_))


def draw_object_crops(rng: np.random.Generator, objects: Objects, size: int, *, zoomed: float) -> Transforms:
    """Squares of `size` pixels: with probability `zoomed` around the object, else about the whole image; mirrored."""
    numbers = rng.random((len(objects.sizes), 5))
    near = numbers[:, 0] < zoomed
    around = objects.sides * (ZOOM[0] + (ZOOM[1] - ZOOM[0]) * numbers[:, 1])
    whole = objects.sizes.max(1) / (RESCALE[0] + (RESCALE[1] - RESCALE[0]) * numbers[:, 1])
    sides = np.where(near, around, whole)
    jittered = objects.middles + (numbers[:, 2:4] * 2 - 1) * JITTER * sides[:, None]
    # A square that is larger than the image holds all of it, a smaller one lies within.
    room = objects.sizes[:, ::-1] - whole[:, None]
    anywhere = numbers[:, 2:4] * room + whole[:, None] / 2
    return _place(objects, sides, np.where(near[:, None], jittered, anywhere), size, numbers[:, 4] < 0.5)


def _place(
    objects: Objects,
    sides: NDArray[np.float64],
    middles: NDArray[np.float64],
    size: int,
    mirrored: NDArray[np.bool_],
) -> Transforms:
    scale = (sides / size)[:, None]
    starts = middles - sides[:, None] / 2
    cells = np.clip(np.rint((objects.anchors + 0.5 - starts) / scale - 0.5), 0, size - 1)
    # Mirrored: cell u becomes size - 1 - u.
    flips = np.stack([mirrored, np.zeros_like(mirrored)], 1)
    matrices: Matrices = np.zeros((len(sides), 2, 3))
    offsets = objects.anchors - scale * cells
    for row in (0, 1):
        matrices[:, row, row] = np.where(flips[:, row], -scale[:, 0], scale[:, 0])
        matrices[:, row, 2] = offsets[:, row] + np.where(flips[:, row], scale[:, 0] * (size - 1), 0)
    return Transforms(matrices, np.zeros(len(sides), np.bool_))


def draw_colours(rng: np.random.Generator, count: int, share: float) -> NDArray[np.float32]:
    """(count, 4): a factor and three summands per image; brightness and contrast, and a shift, each with `share`."""
    numbers = rng.random((count, 7))
    bright, shifted = numbers[:, 0] < share, numbers[:, 1] < share
    factor = np.where(bright, 1 + CONTRAST[0] + (CONTRAST[1] - CONTRAST[0]) * numbers[:, 2], 1.0)
    added = np.where(bright, BRIGHTNESS * (2 * numbers[:, 3] - 1), 0.0)[:, None]
    added = added + np.where(shifted[:, None], SHIFT * (2 * numbers[:, 4:7] - 1), 0.0)
    return np.concatenate([factor[:, None], added], 1).astype(np.float32)


def change_colours(images: Tensor, drawn: NDArray[np.float32]) -> Tensor:
    """Images (n, 3, h, w) in 0..1 with the factors and summands of `draw_colours`."""
    given = torch.from_numpy(drawn).to(images.device)[:, :, None, None]
    return (images * given[:, :1] + given[:, 1:]).clamp(0, 1)
