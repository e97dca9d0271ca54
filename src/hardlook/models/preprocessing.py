"""What happens to images before a model gets them: nothing, or the preprocessing of MetaCoCo's authors at test time.

The authors resize to 96 x 96 pixels (bilinear, proportions are not kept) and cut 84 x 84 out of the centre. Their mean
and deviation of colours belong to networks trained with them: every encoder here scales values as its own training did.

>>> preprocess_image(np.zeros((40, 60, 3), np.uint8), "paper").shape
(84, 84, 3)
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import PIL.Image

from hardlook.models.roles import Image

Preprocessing = Literal["encoder", "paper"]

RESIZED, CROPPED = 96, 84

PREPROCESSINGS: dict[Preprocessing, str] = {
    "encoder": "images as they are; the encoder resizes them as its training did",
    "paper": f"resized to {RESIZED} x {RESIZED}, {CROPPED} x {CROPPED} cut out of the centre, before the encoder",
}


def preprocess_image(image: Image, preprocessing: Preprocessing) -> Image:
    """The image (H, W, 3) uint8 as it is for `encoder`, (84, 84, 3) for `paper`.

    Pillow resizes as torchvision's transforms do, which few-shot toolkits use: it averages where it shrinks.
    """
    if preprocessing == "encoder":
        return image
    whole = PIL.Image.fromarray(np.ascontiguousarray(image))
    margin = (RESIZED - CROPPED) // 2
    resized = whole.resize((RESIZED, RESIZED), PIL.Image.Resampling.BILINEAR)
    return np.array(resized.crop((margin, margin, margin + CROPPED, margin + CROPPED)), np.uint8)
