"""Colours of batches of images: changed as Pillow's ImageEnhance does, in whole numbers, and scaled for a network."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import torch
from torch import Tensor

MEAN, DEVIATION = (120.396, 115.594, 104.540), (70.682, 68.276, 72.545)
"""Of the channels of training images, 0 to 255, as MetaCoCo's authors scale them."""

_LUMA = (19595.0, 38470.0, 7471.0)  # 65536 times the weights of Pillow's grey


def jitter_colours(images: Tensor, factors: Tensor, order: Tensor) -> Tensor:
    """Images (n, 3, h, w) of whole numbers 0 to 255 with brightness, contrast and saturation changed.

    `factors` (n, 3) are of the three; `order` (n, 3) says which comes first, second and third.
    """
    luma = _spread(_LUMA, images.device, images.dtype)
    for turn in range(3):
        which = order[:, turn, None]
        factor = factors.gather(1, which)[..., None, None]
        grey = ((images * luma).sum(1, keepdim=True).add_(32768.0) / 65536.0).floor_()
        # Each change moves an image from or to a target: black, the mean grey, or each pixel's grey.
        # A sum of whole numbers is exact. A tensor divides it: by a number a GPU multiplies with the reciprocal.
        mean = (grey.sum((1, 2, 3), keepdim=True) / grey.new_full((), grey.shape[2] * grey.shape[3]) + 0.5).floor_()
        which = which[..., None, None]
        target = torch.where(which == 2, grey, torch.where(which == 1, mean, mean.new_zeros(())))
        images = (target + factor * (images - target)).clamp_(0, 255).floor_()
    return images


def scale_colours(images: Tensor) -> Tensor:
    """(..., 3, h, w) values 0 to 255 less the mean, divided by the deviation of each channel."""
    mean, deviation = (_spread(values, images.device, images.dtype) for values in (MEAN, DEVIATION))
    return (images - mean) / deviation


@functools.lru_cache(maxsize=32)
def _spread(values: Sequence[float], device: torch.device, dtype: torch.dtype) -> Tensor:
    """(3, 1, 1) numbers of channels, sent to a device once: while a CUDA graph is recorded nothing can be sent."""
    with torch.inference_mode(False):
        return torch.tensor(values, device=device, dtype=dtype).view(3, 1, 1)
