"""Augmentation of a batch in one pass on a GPU with Triton: each image is read once as bytes and written once.

The same numbers as `ImageStore.augment` by torch, which takes some sixty passes over float32 maps for them.
"""

from __future__ import annotations

import functools
from itertools import permutations
from typing import Any

import torch
from torch import Tensor

from hardlook.networks.gpu import is_observed
from hardlook.networks.kernels.triton_kernels import check_close, compile_kernels, on_device_of, try_kernels
from hardlook.training.images.colours import DEVIATION, MEAN, jitter_colours, scale_colours

LARGEST = 128
"""Pixels along a side of the largest crop: one program keeps a whole image in its registers."""


def augment_at_once(
    images: Tensor,
    size: int,
    rows: Tensor,
    corner: Tensor,
    mirrored: Tensor,
    factors: Tensor,
    order: Tensor,
) -> Tensor | None:
    """(n, 3, size, size) float32 of images (N, S, S, 3) uint8 on a GPU; None where it cannot be done here.

    The rest is as in `Draws`. Rows and crops have to lie inside the images; the kernel does not check.
    """
    usable = images.dtype == torch.uint8 and images.is_contiguous() and images.shape[1] == images.shape[2]
    same = all(one.device == images.device for one in (rows, corner, mirrored, factors, order))
    if not (usable and same and 0 < size <= LARGEST) or is_observed() or (kernel := find_kernel(images.device)) is None:
        return None
    result = torch.empty((len(rows), size, size, 3), device=images.device, dtype=torch.float32)
    if len(rows):
        with on_device_of(images):
            _launch(kernel, images, size, rows, corner, mirrored, factors, order, result)
    return result.movedim(-1, -3)


def _launch(
    kernel: Any,
    images: Tensor,
    size: int,
    rows: Tensor,
    corner: Tensor,
    mirrored: Tensor,
    factors: Tensor,
    order: Tensor,
    result: Tensor,
) -> None:
    kernel[(len(rows),)](
        images,
        rows.contiguous(),
        corner.contiguous(),
        mirrored.contiguous().view(torch.uint8),
        factors.contiguous(),
        order.contiguous(),
        result,
        *MEAN,
        *DEVIATION,
        stored=images.shape[1],
        size=size,
        block=1 << (size * size - 1).bit_length(),
        num_warps=16,
        # A product and a sum are rounded one after the other, as torch rounds them.
        enable_fp_fusion=False,
    )


# The kernel's language, which it finds among the globals of its module.
tl: Any = None


def build_kernel() -> Any:
    """The kernel, compiled when it is first called."""
    return compile_kernels(_augment)[0]


@functools.cache
def find_kernel(where: torch.device) -> Any:
    """The kernel, tried once (`try_kernels`)."""
    return try_kernels(lambda: _try_images(where), where, "faster augmentation of images")


def _try_images(where: torch.device) -> Any:
    """The kernel, whose numbers of random images are those of torch."""
    kernel, random = build_kernel(), torch.Generator(where).manual_seed(0)
    orders = torch.tensor(list(permutations(range(3))), device=where)
    # As MetaCoCo's: crops of 84 out of 96 pixels.
    count, stored, size = len(orders), 96, 84
    images = torch.randint(256, (count, stored, stored, 3), generator=random, device=where, dtype=torch.uint8)
    rows = torch.arange(count, device=where)
    corner = torch.tensor([[0, 12], [7, 6], [12, 0]], device=where).repeat(2, 1)
    mirrored = rows % 2 == 0
    factors = torch.rand((count, 3), generator=random, device=where, dtype=torch.float32) + 0.5
    result = images.new_empty((count, size, size, 3), dtype=torch.float32)
    _launch(kernel, images, size, rows, corner, mirrored, factors, orders, result)
    cut = torch.stack(
        [one[y : y + size, x : x + size] for one, (y, x) in zip(images, corner.tolist(), strict=True)]
    ).movedim(-1, 1)
    cut = torch.where(mirrored[:, None, None, None], cut.flip(-1), cut)
    exact = scale_colours(jitter_colours(cut.float(), factors, orders))
    check_close(result.movedim(-1, 1), exact, 1e-6, "an image")
    return kernel


def _augment(  # type: ignore[no-untyped-def]
    images,
    rows,
    corner,
    mirrored,
    factors,
    order,
    result,
    mean_red,
    mean_green,
    mean_blue,
    deviation_red,
    deviation_green,
    deviation_blue,
    stored: tl.constexpr,
    size: tl.constexpr,
    block: tl.constexpr,
):
    """`jitter_colours` and `scale_colours` of one image's crop, by one program, in Triton's language."""
    place = tl.program_id(0)
    pixel = tl.arange(0, block)
    inside = pixel < size * size
    y = pixel // size
    x = pixel % size
    x = tl.where(tl.load(mirrored + place) != 0, size - 1 - x, x)
    y += tl.load(corner + 2 * place).to(tl.int32)
    x += tl.load(corner + 2 * place + 1).to(tl.int32)
    source = images + tl.load(rows + place).to(tl.int64) * (stored * stored * 3) + (y * stored + x) * 3
    red = tl.load(source, mask=inside, other=0).to(tl.float32)
    green = tl.load(source + 1, mask=inside, other=0).to(tl.float32)
    blue = tl.load(source + 2, mask=inside, other=0).to(tl.float32)
    for turn in tl.static_range(3):
        which = tl.load(order + 3 * place + turn)
        factor = tl.load(factors + 3 * place + which)
        luma = red * 19595.0 + green * 38470.0 + blue * 7471.0
        # Divided by 65536: Triton's own division may be off in the last bit, a product with a power of 2 is not.
        grey = tl.floor((luma + 32768.0) * 0.0000152587890625)
        # Whole numbers, whose sum is exact.
        mean = tl.floor(tl.div_rn(tl.sum(tl.where(inside, grey, 0.0), 0), 1.0 * size * size) + 0.5)
        target = tl.where(which == 2, grey, tl.where(which == 1, mean, 0.0))
        red = tl.floor(tl.minimum(tl.maximum(target + factor * (red - target), 0.0), 255.0))
        green = tl.floor(tl.minimum(tl.maximum(target + factor * (green - target), 0.0), 255.0))
        blue = tl.floor(tl.minimum(tl.maximum(target + factor * (blue - target), 0.0), 255.0))
    written = result + (place.to(tl.int64) * (size * size) + pixel) * 3
    tl.store(written, tl.div_rn(red - mean_red, deviation_red), mask=inside)
    tl.store(written + 1, tl.div_rn(green - mean_green, deviation_green), mask=inside)
    tl.store(written + 2, tl.div_rn(blue - mean_blue, deviation_blue), mask=inside)
