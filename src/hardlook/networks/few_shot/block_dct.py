"""Discrete cosine transform of colour images in blocks of 8 x 8, as in JPEG (ITU-T T.81) before quantisation.

>>> images = torch.rand(1, 3, 16, 16)
>>> bool((to_images(to_coefficients(images)) - images).abs().max() < 1e-5)
True
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from hardlook.networks.precision import full_precision

BLOCK = 8
# Rows: brightness, blue difference, red difference (ITU-R BT.601, full range as in JFIF).
FROM_RGB = (
    (0.299, 0.587, 0.114),
    (-0.168735892, -0.331264108, 0.5),
    (0.5, -0.418687589, -0.081312411),
)
TO_RGB = ((1.0, 0.0, 1.402), (1.0, -0.344136286, -0.714136286), (1.0, 1.772, 0.0))
# What the middle of the differences, 128 of 255, adds to red, green and blue, as published.
OFFSETS = (-179.456 / 255, 135.458816 / 255, -226.816 / 255)


def cosines_of_a_block(like: Tensor) -> Tensor:
    """(8, 8) orthonormal matrix of the transform, frequencies by positions."""
    places = torch.arange(BLOCK, dtype=like.dtype, device=like.device)
    matrix = torch.cos(math.pi / BLOCK * (places + 0.5) * places[:, None]) * math.sqrt(2 / BLOCK)
    return torch.cat([matrix[:1] / math.sqrt(2), matrix[1:]])


@full_precision
def to_coefficients(images: Tensor) -> Tensor:
    """(n, 3, H, W) coefficients of RGB images (n, 3, H, W) in 0..1, each in the place of its block.

    Pixels beyond the last whole block have coefficients of 0.
    """
    mixing = torch.tensor(FROM_RGB, dtype=images.dtype, device=images.device)
    centred = 255 * torch.einsum("dc,nchw->ndhw", mixing, images)
    # The differences are around 0 already.
    centred = torch.cat([centred[:, :1] - 128, centred[:, 1:]], 1)
    return transform_blocks(centred, cosines_of_a_block(images))


@full_precision
def to_images(coefficients: Tensor) -> Tensor:
    """(n, 3, H, W) RGB images, not clamped, of coefficients (n, 3, H, W); grey beyond the last whole block."""
    planes = (transform_blocks(coefficients, cosines_of_a_block(coefficients).mT) + 128) / 255
    mixing, offsets = (torch.tensor(given, dtype=planes.dtype, device=planes.device) for given in (TO_RGB, OFFSETS))
    return torch.einsum("dc,nchw->ndhw", mixing, planes) + offsets[:, None, None]


def transform_blocks(planes: Tensor, matrix: Tensor) -> Tensor:
    """Every 8 x 8 block X of planes (n, C, H, W) as M X M'; zeros where there is no whole block."""
    n, channels, height, width = planes.shape
    rows, columns = height // BLOCK, width // BLOCK
    inner = planes[:, :, : rows * BLOCK, : columns * BLOCK].reshape(n, channels, rows, BLOCK, columns, BLOCK)
    found = torch.einsum("ux,ncrxsy,vy->ncrusv", matrix, inner, matrix).reshape(
        n, channels, rows * BLOCK, columns * BLOCK
    )
    return functional.pad(found, (0, width - columns * BLOCK, 0, height - rows * BLOCK))
