"""How an image lies in SAM's square, of 1024 x 1024 pixels as released: at the top left, its longest side filling it.

>>> frame = Frame.of(np.zeros((300, 400, 3), np.uint8))
>>> frame.scaled, frame.points(np.array([[200, 30]])).tolist()
((768, 1024), [[512.0, 76.80000305175781]])
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hardlook.models.roles import Image, Mask
from hardlook.networks.sam import SIDE

if TYPE_CHECKING:
    from torch import Tensor


MEAN = np.array([123.675, 116.28, 103.53], np.float32)

STD = np.array([58.395, 57.12, 57.375], np.float32)
"""Of ImageNet's pixels, in 0-255."""

ELEMENTS = 2**25
"""At most so many floats (128 MiB) are made at once when masks grow to the image's size."""


@dataclass(frozen=True)
class Frame:
    """`size` (height, width) of the image, `scaled` of its copy in the square, and the square's `side`, in pixels."""

    size: tuple[int, int]
    scaled: tuple[int, int]
    side: int = SIDE

    @classmethod
    def of(cls, image: Image, side: int = SIDE) -> Frame:
        """The frame of an image (H, W, 3); sides round half up, and none vanishes."""
        height, width = image.shape[:2]
        scale = side / max(height, width)
        return cls((height, width), (max(1, int(height * scale + 0.5)), max(1, int(width * scale + 0.5))), side)

    def square(self, image: Image) -> NDArray[np.float32]:
        """The image (H, W, 3) uint8 as the encoder takes it, (3, side, side): resized, normalised, zeros beyond it."""
        height, width = self.scaled
        square = np.zeros((3, self.side, self.side), np.float32)
        square[:, :height, :width] = ((self._resized(image).astype(np.float32) - MEAN) / STD).transpose(2, 0, 1)
        return square

    def _resized(self, image: Image) -> Image:
        if self.size == self.scaled:
            return image
        # Imported here: where images have their size already, nothing else is needed.
        import PIL.Image

        # Pillow's filter averages over all pixels when it shrinks, as the reference does; OpenCV's does not.
        height, width = self.scaled
        picture = PIL.Image.fromarray(np.ascontiguousarray(image))
        return np.asarray(picture.resize((width, height), PIL.Image.Resampling.BILINEAR))

    def points(self, points: NDArray[np.generic]) -> NDArray[np.float32]:
        """Points (..., 2) as x, y in the image to pixels of the square."""
        (height, width), (scaled_height, scaled_width) = self.size, self.scaled
        factors = np.array([scaled_width / width, scaled_height / height])
        scaled: NDArray[np.float64] = np.asarray(points, np.float64) * factors
        return scaled.astype(np.float32)

    def masks(self, logits: Tensor, threshold: float) -> Iterator[Mask]:
        """One (H, W) bool per logit map of (N, h, w), which covers the square: enlarged twice, cut, compared."""
        from torch.nn.functional import interpolate

        def enlarged(maps: Tensor, size: tuple[int, int]) -> Tensor:
            return interpolate(maps, size, mode="bilinear", align_corners=False)

        height, width = self.scaled
        at_once = max(1, ELEMENTS // (self.side**2 + self.size[0] * self.size[1]))
        for start in range(0, len(logits), at_once):
            cut = enlarged(logits[start : start + at_once, None], (self.side, self.side))[..., :height, :width]
            yield from (enlarged(cut, self.size)[:, 0] > threshold).cpu().numpy()
