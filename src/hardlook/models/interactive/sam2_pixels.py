"""Images as SAM 2's encoder takes them: stretched to a square.

>>> sam2_pixels(np.full((40, 60, 3), 124, np.uint8), 32).shape
(1, 3, 32, 32)
"""

from __future__ import annotations

import numpy as np
import PIL.Image
from numpy.typing import NDArray

from hardlook.models.roles import Image

MEAN = (0.485, 0.456, 0.406)
DEVIATION = (0.229, 0.224, 0.225)


def sam2_pixels(image: Image, side: int) -> NDArray[np.float32]:
    """(1, 3, side, side) float32: each colour resized by the antialiased bilinear filter in floats, then normalised.

    Floats, because SAM 2's own preparation resizes after the division by 255 and rounds nothing.
    """
    colours = [PIL.Image.fromarray(image[..., colour].astype(np.float32)) for colour in range(3)]
    resized = np.stack([np.asarray(colour.resize((side, side), PIL.Image.Resampling.BILINEAR)) for colour in colours])
    mean, deviation = (np.array(values, np.float32).reshape(3, 1, 1) for values in (MEAN, DEVIATION))
    return ((resized / 255 - mean) / deviation).astype(np.float32)[None]
