"""Images as SAM's encoder takes them: longest side to the network's, filled with zeros below and to the right.

>>> fitted(480, 640, 1024), fitted(1365, 2048, 1024), fitted(3, 1000, 64)
((768, 1024), (683, 1024), (1, 64))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hardlook.models.roles import Image

if TYPE_CHECKING:
    from torch import Tensor

MEAN = (123.675, 116.28, 103.53)
DEVIATION = (58.395, 57.12, 57.375)
"""Of ImageNet's colours, red, green, blue, from 0 to 255."""


def fitted(height: int, width: int, side: int) -> tuple[int, int]:
    """Height and width of the image when its longer side is `side`, rounded as SAM rounds, at least 1."""
    scale = side / max(height, width)
    return max(1, int(height * scale + 0.5)), max(1, int(width * scale + 0.5))


def sam_pixels(image: Image, side: int, device: str = "cpu") -> Tensor:
    """(1, 3, side, side) float32 on the device: resized by Pillow's bilinear filter, normalised, then filled up."""
    import torch

    height, width = fitted(image.shape[0], image.shape[1], side)
    resized = torch.from_numpy(_resized(image, height, width)).to(device)
    mean, deviation = (torch.tensor(values, device=device).reshape(3, 1, 1) for values in (MEAN, DEVIATION))
    normal = (resized.permute(2, 0, 1).float() - mean) / deviation
    return torch.nn.functional.pad(normal, (0, side - width, 0, side - height))[None]


def _resized(image: Image, height: int, width: int) -> Image:
    if image.shape[:2] == (height, width):
        return np.array(image)  # torch warns of arrays that may not be written to
    import PIL.Image  # where images have their size already, torch is enough

    picture = PIL.Image.fromarray(np.ascontiguousarray(image))
    return np.array(picture.resize((width, height), PIL.Image.Resampling.BILINEAR))
