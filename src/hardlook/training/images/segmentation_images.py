"""Images with class maps as arrays on the device, resized, turned, mirrored and cropped there, a batch at a time.

Every change of place is one affine map from pixels of the result to pixels of the stored image, so that an image is
interpolated once whatever is done to it. What lies outside of an image gets a colour of its own and the label 255.

>>> frame = fit_whole(np.array([[50, 100]]), 33, "squash")
>>> [float(value) for value in (frame[0] @ [32, 32, 1]).round(2)]
[97.98, 48.74]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from hardlook.errors import OptionError

Matrices = NDArray[np.float64]
"""(n, 2, 3): x and y in the stored image of a pixel (x, y, 1) of the result; pixel centres are whole numbers."""

Sizes = NDArray[np.int64]
"""(n, 2): height and width."""

IGNORED = 255
MULTIPLE = 8  # sides of letterboxed images are whole numbers of cells
FITS = ("letterbox", "squash")
AUGMENTATIONS = ("none", "crop", "resized-crop", "flips")
TRIES, KEPT_SHARE = 31, 0.85  # crops that are drawn until so much of the object is in one
CROP_TRIES = 10  # draws of area and aspect until a crop fits into the image
BLUR = (0.0625, 0.25, 0.375, 0.25, 0.0625)  # OpenCV's Gaussian of five pixels


@dataclass(frozen=True, eq=False)
class Transforms:
    """Of n images: where their pixels come from, and which are blurred."""

    matrices: Matrices
    blurred: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.matrices)


@dataclass(frozen=True, eq=False)
class LabelledImages:
    """N images on one device, each in the upper left corner of its canvas.

    `images` (N, S, S, 3) uint8, `classes` (N, S, S) uint8 with 255 where there is no label or no image, `sizes` (N, 2)
    heights and widths, on the processor.
    """

    images: Tensor
    classes: Tensor
    sizes: Sizes

    def __len__(self) -> int:
        return len(self.sizes)

    def take(
        self, rows: NDArray[np.int64], transforms: Transforms, size: int, *, outside: Sequence[float]
    ) -> tuple[Tensor, Tensor]:
        """Images (n, 3, size, size) float32 from 0 to 255 and class maps (n, size, size) uint8 of the rows.

        `outside` is the colour of what lies outside of an image.
        """
        device = self.images.device
        x, y = self._locate(transforms.matrices, size)
        heights, widths = (
            torch.from_numpy(self.sizes[rows, axis].astype(np.float32)).to(device)[:, None, None] for axis in (0, 1)
        )
        inside = (x >= -0.5) & (x <= widths - 0.5) & (y >= -0.5) & (y <= heights - 0.5)
        x, y = (torch.minimum(axis.clamp(min=0), end - 1) for axis, end in ((x, widths), (y, heights)))
        where = torch.from_numpy(rows).to(device)
        canvas = self.images.shape[1]
        grid = torch.stack([(2 * x + 1) / canvas - 1, (2 * y + 1) / canvas - 1], dim=-1)
        chosen = self.images[where].movedim(-1, 1).float()
        sampled = functional.grid_sample(chosen, grid, mode="bilinear", padding_mode="border", align_corners=False)
        colour = sampled.new_tensor(list(outside)).view(1, 3, 1, 1)
        sampled = torch.where(inside[:, None], sampled, colour)
        if transforms.blurred.any():
            marked = torch.from_numpy(transforms.blurred).to(device)[:, None, None, None]
            sampled = torch.where(marked, blur(sampled), sampled)
        nearest = self.classes[where[:, None, None], y.round().long(), x.round().long()]
        return sampled, torch.where(inside, nearest, torch.full_like(nearest, IGNORED))

    def _locate(self, matrices: Matrices, size: int) -> tuple[Tensor, Tensor]:
        """Columns and rows (n, size, size) in the stored images of the pixels of the result."""
        given = torch.from_numpy(matrices.astype(np.float32)).to(self.images.device)
        span = torch.arange(size, device=self.images.device, dtype=torch.float32)
        ys, xs = torch.meshgrid(span, span, indexing="ij")
        return tuple(  # type: ignore[return-value]
            row[:, 0, None, None] * xs + row[:, 1, None, None] * ys + row[:, 2, None, None]
            for row in (given[:, 0], given[:, 1])
        )


def blur(images: Tensor) -> Tensor:
    """Images (n, 3, h, w) under a Gaussian of five by five pixels, mirrored at the border."""
    line = images.new_tensor(BLUR)
    wide = functional.pad(images, (2, 2, 2, 2), mode="reflect")
    across = functional.conv2d(wide, line.view(1, 1, 1, 5).expand(3, 1, 1, 5), groups=3)
    return functional.conv2d(across, line.view(1, 1, 5, 1).expand(3, 1, 5, 1), groups=3)


def fit_sizes(sizes: Sizes, size: int, fit: str) -> Sizes:
    """(n, 2): height and width of the images inside the frame of `size` pixels.

    `squash` fills the frame and changes proportions; `letterbox` keeps them: the longer side becomes `size`, both are
    rounded down to whole cells of eight pixels.

    >>> fit_sizes(np.array([[375, 500]]), 473, "letterbox").tolist()
    [[352, 472]]
    """
    if fit == "squash":
        return np.full_like(sizes, size)
    if fit != "letterbox":
        raise OptionError(f"there is no way {fit!r} to fit an image", remedy=f"one of {', '.join(FITS)}")
    scaled = np.where(sizes == sizes.max(1, keepdims=True), size, sizes * size // sizes.max(1, keepdims=True))
    fitted: Sizes = np.maximum(MULTIPLE, scaled // MULTIPLE * MULTIPLE)
    return fitted


def fit_whole(sizes: Sizes, size: int, fit: str) -> Matrices:
    """(n, 2, 3): the whole image in the frame; OpenCV's rule, by which the outer edges of the pixels meet."""
    scale = sizes / fit_sizes(sizes, size, fit)
    matrices = np.zeros((len(sizes), 2, 3))
    for row, axis in ((0, 1), (1, 0)):
        matrices[:, row, row] = scale[:, axis]
        matrices[:, row, 2] = 0.5 * scale[:, axis] - 0.5
    return matrices


def draw_transforms(
    rng: np.random.Generator,
    kind: str,
    sizes: Sizes,
    size: int,
    fit: str,
    *,
    objects: Sequence[NDArray[np.float64]] | None = None,
) -> Transforms:
    """Augmentations of n images of `sizes` for a frame of `size` pixels.

    `none` is the whole image as `fit` says. `crop`, as PFENet's: scaled by .9 to 1.1, turned by up to 10 degrees and
    blurred each with probability .5, mirrored, and a crop of the frame's size, drawn up to 31 times until 85 % of the
    object's points (`objects`, each (p, 2) of x and y) lie in it. `resized-crop`, as RPMM's: mirrored, half to all of
    the area at an aspect of 3/4 to 4/3. `flips`, as RePRI's: the whole image, mirrored left to right and upside down.
    """
    count = len(sizes)
    plain = np.zeros(count, np.bool_)
    if kind == "none":
        return Transforms(fit_whole(sizes, size, fit), plain)
    if kind == "flips":
        matrices = fit_whole(sizes, size, fit)
        drawn, inner = rng.random((count, 2)) < 0.5, fit_sizes(sizes, size, fit)
        for axis, row in ((1, 0), (0, 1)):
            matrices = np.where(drawn[:, row, None, None], matrices @ _mirror(inner[:, axis], row), matrices)
        return Transforms(matrices, plain)
    if kind == "resized-crop":
        return Transforms(_draw_resized_crops(rng, sizes, size), plain)
    if kind == "crop":
        return _draw_crops(rng, sizes, size, objects)
    raise OptionError(f"there is no augmentation {kind!r}", remedy=f"one of {', '.join(AUGMENTATIONS)}")


def _mirror(lengths: NDArray[np.int64], row: int) -> Matrices:
    """(n, 3, 3): the last pixel of an axis becomes the first."""
    matrices = np.tile(np.eye(3), (len(lengths), 1, 1))
    matrices[:, row, row], matrices[:, row, 2] = -1, lengths - 1
    return matrices


def _draw_resized_crops(rng: np.random.Generator, sizes: Sizes, size: int) -> Matrices:
    heights, widths = sizes[:, 0].astype(float), sizes[:, 1].astype(float)
    numbers = rng.random((len(sizes), 3 + 2 * CROP_TRIES))
    area = (heights * widths)[:, None] * (0.5 + 0.5 * numbers[:, 3 : 3 + CROP_TRIES])
    aspect = np.exp(np.log(3 / 4) + (np.log(4 / 3) - np.log(3 / 4)) * numbers[:, 3 + CROP_TRIES :])
    wide, high = np.sqrt(area * aspect), np.sqrt(area / aspect)
    fits = (wide <= widths[:, None]) & (high <= heights[:, None])
    rows, first = np.arange(len(sizes)), fits.argmax(1)
    # Where no draw fits, as much of the image as the aspect allows, as torchvision has it.
    whole_wide, whole_high = np.minimum(widths, heights * 4 / 3), np.minimum(heights, widths * 4 / 3)
    wide, high = (
        np.where(fits.any(1), drawn[rows, first], whole) for drawn, whole in ((wide, whole_wide), (high, whole_high))
    )
    left, top = numbers[:, 0] * (widths - wide), numbers[:, 1] * (heights - high)
    matrices = np.zeros((len(sizes), 2, 3))
    for row, start, length in ((0, left, wide), (1, top, high)):
        matrices[:, row, row] = length / size
        matrices[:, row, 2] = start + 0.5 * length / size - 0.5
    mirrored = matrices @ _mirror(np.full(len(sizes), size), 0)
    return np.where(numbers[:, 2, None, None] < 0.5, mirrored, matrices)


def _draw_crops(
    rng: np.random.Generator, sizes: Sizes, size: int, objects: Sequence[NDArray[np.float64]] | None
) -> Transforms:
    count = len(sizes)
    numbers = rng.random((count, 6))
    corners = rng.random((count, TRIES, 2))
    scale = 0.9 + 0.2 * numbers[:, 0]
    angle = np.where(numbers[:, 1] < 0.5, np.deg2rad(-10 + 20 * numbers[:, 2]), 0.0)
    blurred, mirrored = numbers[:, 3] < 0.5, numbers[:, 4] < 0.5
    matrices = np.empty((count, 2, 3))
    for place in range(count):
        height, width = sizes[place] * scale[place]
        centre = np.array([(sizes[place][1] - 1) / 2, (sizes[place][0] - 1) / 2])
        cos, sin = np.cos(angle[place]) / scale[place], np.sin(angle[place]) / scale[place]
        turn = np.array([[cos, -sin], [sin, cos]])
        # From the frame to the scaled image, whose middle is turned around: the crop's corner may lie outside of it.
        room = np.array([width - size, height - size])
        starts = np.where(room > 0, corners[place] * room, room / 2)
        offsets = starts - np.array([(width - 1) / 2, (height - 1) / 2])
        if objects is not None and len(objects[place]):
            back = (objects[place] - centre) @ np.linalg.inv(turn).T
            inside = (back[None] >= offsets[:, None] - 0.5) & (back[None] <= offsets[:, None] + size - 0.5)
            enough = np.flatnonzero(inside.all(2).mean(1) >= KEPT_SHARE)
            chosen = int(enough[0]) if len(enough) else TRIES - 1
        else:
            chosen = 0
        matrices[place, :, :2] = turn
        matrices[place, :, 2] = turn @ offsets[chosen] + centre
    flipped = matrices @ _mirror(np.full(count, size), 0)
    return Transforms(np.where(mirrored[:, None, None], flipped, matrices), blurred)


def sample_points(mask: NDArray[np.bool_], most: int = 256) -> NDArray[np.float64]:
    """(p, 2) x and y of at most so many pixels of a mask, evenly in the order of its rows.

    >>> sample_points(np.eye(3, dtype=bool), most=2).tolist()
    [[0.0, 0.0], [2.0, 2.0]]
    """
    ys, xs = np.nonzero(mask)
    chosen = np.unique(np.linspace(0, len(ys) - 1, min(most, len(ys))).round().astype(np.int64))
    return np.stack([xs[chosen], ys[chosen]], axis=1).astype(np.float64).reshape(-1, 2)


def pack_images(
    images: Sequence[NDArray[np.uint8]], classes: Sequence[NDArray[np.integer]], device: torch.device | str = "cpu"
) -> LabelledImages:
    """Images (H, W, 3) and class maps (H, W) of 0 to 254, 255 for none, on canvases as large as the largest."""
    sizes = np.array([one.shape[:2] for one in images], np.int64)
    canvas = int(sizes.max())
    packed = np.zeros((len(images), canvas, canvas, 3), np.uint8)
    labels = np.full((len(images), canvas, canvas), IGNORED, np.uint8)
    for place, (image, label) in enumerate(zip(images, classes, strict=True)):
        height, width = sizes[place]
        packed[place, :height, :width] = image
        labels[place, :height, :width] = label
    return LabelledImages(torch.from_numpy(packed).to(device), torch.from_numpy(labels).to(device), sizes)


def renumber(classes: Tensor, numbers: Mapping[int, int]) -> Tensor:
    """A class map (uint8) with other numbers; those that are not named keep their own.

    >>> renumber(torch.tensor([0, 3, 255], dtype=torch.uint8), {3: 1}).tolist()
    [0, 1, 255]
    """
    table = torch.arange(256, device=classes.device, dtype=torch.uint8)
    for before, after in numbers.items():
        table[before] = after
    return table[classes.long()]
