"""Preparation of images for SAM, and masks at the image's size from SAM's logits.

SAM takes a square, of 1024 x 1024 pixels as released. The image is resized so that its longest side fills the square,
and lies at the top left with zeros beyond it. SAM 2 stretches the image over the whole square (`prepare_sam2_image`).

>>> frame = SamFrame.from_image(np.zeros((300, 400, 3), np.uint8))
>>> frame.scaled, frame.scale
((768, 1024), (2.56, 2.56))
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import PIL.Image
from numpy.typing import NDArray

from hardlook.models.roles import Image, Mask
from hardlook.networks.sam import INPUT_SIZE

if TYPE_CHECKING:
    from torch import Tensor

MEAN = np.array([123.675, 116.28, 103.53], np.float32)
STD = np.array([58.395, 57.12, 57.375], np.float32)
"""`MEAN` and `STD` are those of ImageNet's pixels, in 0-255."""

UNIT_MEAN, UNIT_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""The same in 0-1, for SAM 2."""

ELEMENTS = 2**25
"""At most this many floats (128 MiB) are made at once when logits are enlarged to the image's size."""


@dataclass(frozen=True)
class SamFrame:
    """An image in SAM's square, in pixels: its `size` (height, width), its `scaled` copy's, and the square's `side`."""

    size: tuple[int, int]
    scaled: tuple[int, int]
    side: int = INPUT_SIZE

    @classmethod
    def from_image(cls, image: Image, side: int = INPUT_SIZE) -> SamFrame:
        """The frame of an image (H, W, 3); sides are rounded half up, to at least one pixel."""
        height, width = image.shape[:2]
        scale = side / max(height, width)
        return cls((height, width), (max(1, int(height * scale + 0.5)), max(1, int(width * scale + 0.5))), side)

    def prepare_image(self, image: Image) -> NDArray[np.float32]:
        """Resize, normalise and zero-pad an image (H, W, 3) uint8 to the encoder's input (3, side, side)."""
        height, width = self.scaled
        square = np.zeros((3, self.side, self.side), np.float32)
        square[:, :height, :width] = ((self._resize(image).astype(np.float32) - MEAN) / STD).transpose(2, 0, 1)
        return square

    def prepare_tensor(self, image: Image, device: str) -> Tensor:
        """The same as a tensor (1, 3, side, side) on a device: bytes are sent there, and floats are made there."""
        import torch

        height, width = self.scaled
        square = torch.zeros((1, 3, self.side, self.side), dtype=torch.float32, device=device)
        pixels = torch.from_numpy(np.array(self._resize(image))).to(device)
        mean, deviation = (torch.from_numpy(values).to(device) for values in (MEAN, STD))
        square[0, :, :height, :width] = ((pixels.float() - mean) / deviation).permute(2, 0, 1)
        return square

    def _resize(self, image: Image) -> Image:
        if self.size == self.scaled:
            return image
        # Pillow's filter averages over all pixels when it shrinks, as the reference does; OpenCV's does not.
        height, width = self.scaled
        picture = PIL.Image.fromarray(np.ascontiguousarray(image))
        return np.asarray(picture.resize((width, height), PIL.Image.Resampling.BILINEAR))

    @property
    def scale(self) -> tuple[float, float]:
        """Pixels of the square per pixel of the image, along x and y; rounding makes them differ."""
        return self.scaled[1] / self.size[1], self.scaled[0] / self.size[0]

    def enlarge(self, logits: Tensor) -> Tensor:
        """Enlarge logits (N, 1, h, w) to the square, cut out the image, and resize to (N, 1, H, W), as SAM does."""
        from torch.nn.functional import interpolate

        square = interpolate(logits, (self.side, self.side), mode="bilinear", align_corners=False)
        part = square[..., : self.scaled[0], : self.scaled[1]]
        return part if self.scaled == self.size else interpolate(part, self.size, mode="bilinear", align_corners=False)

    def threshold_logits(self, logits: Tensor, threshold: float) -> Iterator[Mask]:
        """One mask (H, W) bool per logit map of (N, h, w): true where the enlarged logits exceed the threshold."""
        at_once = max(1, ELEMENTS // (self.side**2 + self.size[0] * self.size[1]))
        for start in range(0, len(logits), at_once):
            yield from (self.enlarge(logits[start : start + at_once, None])[:, 0] > threshold).cpu().numpy()


def prepare_sam2_image(image: Image, side: int) -> NDArray[np.float32]:
    """The image stretched to (1, 3, side, side) float32 (antialiased bilinear) and normalised.

    It is resized as floats, since SAM 2's own preparation resizes after the division by 255 and rounds nothing.
    """
    colours = [PIL.Image.fromarray(image[..., colour].astype(np.float32)) for colour in range(3)]
    resized = np.stack([np.asarray(colour.resize((side, side), PIL.Image.Resampling.BILINEAR)) for colour in colours])
    mean, deviation = (np.array(values, np.float32).reshape(3, 1, 1) for values in (UNIT_MEAN, UNIT_STD))
    return ((resized / 255 - mean) / deviation).astype(np.float32)[None]
