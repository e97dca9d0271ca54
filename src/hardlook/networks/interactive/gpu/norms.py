"""Norms of SimpleClick's rows of channels on a GPU, and the end of its head, each in one or two passes over memory.

They are kernels of Triton, each beside the same in plain torch, which is used elsewhere.
"""

from __future__ import annotations

import copy
import functools
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.interactive.gpu.convolutions import MOST
from hardlook.networks.kernels.triton_kernels import check_close, compile_kernels, on_device_of, try_kernels

TYPES = (torch.float32, torch.bfloat16, torch.float16)
"""Of the maps that the kernels read; they compute in float32."""

# Triton's language, which `compile_kernels` puts here.
tl: Any = None


class NormKernels(NamedTuple):
    """Kernels of Triton."""

    sum_parts: Any
    normalise: Any
    add_and_normalise: Any
    merge: Any


def build_kernels() -> NormKernels:
    """The kernels, not yet tried; ImportError without Triton."""
    sides = {f"{side}{level}" for side in ("height", "width") for level in ("", 2, 3, 4)}
    kernels = _sum_parts, _normalise, _add_and_normalise, _merge
    return NormKernels(*compile_kernels(*kernels, varying={"turns", "count", *sides}))


@functools.cache
def load_kernels(where: torch.device) -> NormKernels | None:
    """The kernels, tried once (`try_kernels`)."""
    return try_kernels(lambda: _try_norms(where), where, "faster norms of SimpleClick")


def _try_norms(where: torch.device) -> NormKernels:
    """The kernels, whose results on random numbers are those of torch in float64."""
    kernels, random = build_kernels(), torch.Generator(where).manual_seed(0)

    def draw(*shape: int) -> Tensor:
        return torch.randn(shape, generator=random, device=where, dtype=torch.float32)

    def give(norm: nn.Module) -> tuple[Any, Any]:
        for parameter in norm.parameters():
            parameter.copy_(draw(*parameter.shape))
        return norm, copy.deepcopy(norm).double()

    most = 1e-5
    # With a small epsilon its absence would pass for rounding.
    group, exact_group = give(nn.GroupNorm(1, 24, eps=0.1, device=where, dtype=torch.float32))
    layer, exact_layer = give(nn.LayerNorm(24, eps=0.1, device=where, dtype=torch.float32))
    rows, added = draw(2, 300, 24) + 3, draw(2, 300, 24)  # more than a block of numbers
    for gelu in (True, False):
        found = normalise_group(rows, group, gelu=gelu, kernels=kernels)
        check_close(found, normalise_group(rows.double(), exact_group, gelu=gelu), most, "a group norm")
    for plus in (None, added):
        wide = None if plus is None else plus.double()
        pair = add_and_normalise(rows, plus, layer, rows.dtype, kernels=kernels)
        exact_pair = add_and_normalise(rows.double(), wide, exact_layer, torch.float64)
        for ours, theirs in zip(pair, exact_pair, strict=True):
            check_close(ours, theirs, most, "a layer norm")
    levels = [draw(2, height, width, 24) for height, width in ((9, 11), (5, 6), (3, 3), (2, 2))]
    weight, bias = draw(24), draw(1)
    expected = merge_levels([one.double() for one in levels], weight.double(), bias.double())
    check_close(merge_levels(levels, weight, bias, kernels=kernels), expected, most, "logits of merged levels")
    for one in (torch.bfloat16, torch.float16):
        given = rows.to(one)
        found = normalise_group(given, group, gelu=True, kernels=kernels)
        check_close(found, normalise_group(given.double(), exact_group, gelu=True), 5e-3, "a rounded group norm")
    return kernels


def normalise_group(x: Tensor, norm: nn.GroupNorm, *, gelu: bool, kernels: NormKernels | None = None) -> Tensor:
    """A group norm with one group of rows of channels (B, pixels, C), then with `gelu` a GELU; the result has x's type.

    It is computed in float32 or better. Torch's kernel has one block of threads per picture, and under autocast it
    goes through float32 in memory.
    """
    x = x.contiguous()
    if kernels is not None and x.dtype in TYPES and x.numel() < MOST:
        return _normalise_by_kernels(x, norm, gelu, kernels)
    wide = torch.promote_types(x.dtype, torch.float32)
    variance, mean = torch.var_mean(x.to(wide).flatten(1), dim=1, correction=0, keepdim=True)
    scale = (variance + norm.eps).rsqrt() * norm.weight.to(wide)
    shift = norm.bias.to(wide) - mean * scale
    found = torch.addcmul(shift[:, None], x.to(wide), scale[:, None])
    return (functional.gelu(found) if gelu else found).to(x.dtype)


def _normalise_by_kernels(
    x: Tensor, norm: nn.GroupNorm, gelu: bool, kernels: NormKernels, *, block: int = 4096, most: int = 64
) -> Tensor:
    """The same in blocks of numbers, whose statistics are summed in at most `most` parts of each picture."""
    count, total = len(x), x[0].numel()
    turns = -(-total // (most * block))  # blocks of a part
    parts = -(-total // (turns * block))
    means, squares = (x.new_empty(count, parts, dtype=torch.float32) for _ in range(2))
    found = torch.empty_like(x)
    with on_device_of(x):
        kernels.sum_parts[(parts, count)](x, means, squares, total, turns, parts, block=block, num_warps=8)
        kernels.normalise[(-(-total // block), count)](
            x,
            means,
            squares,
            norm.weight.contiguous(),
            norm.bias.contiguous(),
            found,
            total,
            x.shape[2],
            parts,
            turns,
            norm.eps,
            gelu=gelu,
            block=block,
            most=most,
            num_warps=8,
        )
    return found


def _sum_parts(x, means, squares, total, turns, parts, block: tl.constexpr):  # type: ignore[no-untyped-def]
    """Mean and sum of squared distances from it, of one part of one picture, in Triton's language."""
    index = tl.program_id(0)
    picture = tl.program_id(1)
    start = index * turns * block
    stop = tl.minimum(start + turns * block, total)
    place = tl.arange(0, block)
    # Distances from the part's first number: sums of squares of numbers far from zero would lose their digits.
    pivot = tl.load(x + picture * total + start).to(tl.float32)
    sums = tl.zeros((block,), dtype=tl.float32)
    products = tl.zeros((block,), dtype=tl.float32)
    for first in range(start, stop, block):
        here = first + place
        value = tl.load(x + picture * total + here, mask=here < stop, other=0.0).to(tl.float32) - pivot
        value = tl.where(here < stop, value, 0.0)
        sums += value
        products += value * value
    length = (stop - start).to(tl.float32)
    sum_ = tl.sum(sums, 0)
    tl.store(means + picture * parts + index, sum_ / length + pivot)
    tl.store(squares + picture * parts + index, tl.sum(products, 0) - sum_ * sum_ / length)


def _normalise(  # type: ignore[no-untyped-def]
    x,
    means,
    squares,
    weight,
    bias,
    result,
    total,
    channels,
    parts,
    turns,
    eps,
    gelu: tl.constexpr,
    block: tl.constexpr,
    most: tl.constexpr,
):
    """A block of one picture, normalised by the statistics of its parts, in Triton's language."""
    picture = tl.program_id(1)
    index = tl.arange(0, most)
    known = index < parts
    part = turns * block
    length = tl.where(known, tl.minimum(part, total - index * part), 0).to(tl.float32)
    mean_of = tl.load(means + picture * parts + index, mask=known, other=0.0)
    square_of = tl.load(squares + picture * parts + index, mask=known, other=0.0)
    mean = tl.sum(mean_of * length, 0) / total
    away = tl.where(known, mean_of - mean, 0.0)
    variance = (tl.sum(square_of, 0) + tl.sum(away * away * length, 0)) / total
    place = tl.program_id(0) * block + tl.arange(0, block)
    kept = place < total
    channel = place % channels
    scale = tl.load(weight + channel, mask=kept, other=0.0).to(tl.float32) / tl.sqrt(variance + eps)
    shift = tl.load(bias + channel, mask=kept, other=0.0).to(tl.float32)
    value = tl.load(x + picture * total + place, mask=kept, other=0.0).to(tl.float32)
    value = (value - mean) * scale + shift
    if gelu:
        value = value * 0.5 * (1.0 + tl.erf(value * 0.7071067811865476))
    tl.store(result + picture * total + place, value.to(result.dtype.element_ty), mask=kept)


def add_and_normalise(
    x: Tensor, added: Tensor | None, norm: nn.LayerNorm, dtype: torch.dtype, *, kernels: NormKernels | None = None
) -> tuple[Tensor, Tensor]:
    """Tokens (B, N, C) plus `added`, and the layer norm of this in the type `dtype`; one pass with the kernel."""
    channels = x.shape[-1]
    if kernels is None or x.dtype != torch.float32 or channels > 4096 or x.numel() >= MOST:
        x = x if added is None else x + added
        return x, functional.layer_norm(x, (channels,), norm.weight, norm.bias, norm.eps).to(dtype)
    x = x.contiguous()
    total = x if added is None else torch.empty_like(x)
    result = torch.empty_like(x, dtype=dtype)
    block = 1 << (channels - 1).bit_length()
    with on_device_of(x):
        kernels.add_and_normalise[(x.numel() // channels,)](
            x,
            x if added is None else added.contiguous(),
            norm.weight.contiguous(),
            norm.bias.contiguous(),
            total,
            result,
            channels,
            norm.eps,
            adds=added is not None,
            block=block,
            num_warps=max(1, min(8, block // 256)),
        )
    return total, result


def _add_and_normalise(  # type: ignore[no-untyped-def]
    x, added, weight, bias, total, result, channels, eps, adds: tl.constexpr, block: tl.constexpr
):
    """One token by one program, in Triton's language."""
    start = tl.program_id(0).to(tl.int64) * channels
    channel = tl.arange(0, block)
    kept = channel < channels
    value = tl.load(x + start + channel, mask=kept, other=0.0)
    if adds:
        value += tl.load(added + start + channel, mask=kept, other=0.0).to(tl.float32)
        tl.store(total + start + channel, value, mask=kept)
    away = tl.where(kept, value - tl.sum(value, 0) / channels, 0.0)
    away = away / tl.sqrt(tl.sum(away * away, 0) / channels + eps)
    away = away * tl.load(weight + channel, mask=kept, other=0.0) + tl.load(bias + channel, mask=kept, other=0.0)
    tl.store(result + start + channel, away.to(result.dtype.element_ty), mask=kept)


def merge_levels(levels: list[Tensor], weight: Tensor, bias: Tensor, *, kernels: NormKernels | None = None) -> Tensor:
    """Logits (B, h, w): the ReLU of the sum of all levels at the first one's size, times `weight` (C), plus `bias` (1).

    Levels (B, h, w, C), the finest first, enlarged bilinearly (corners of pixels kept). The kernel writes only logits,
    of float32.
    """
    finest = levels[0]
    count, height, width, channels = finest.shape
    alike = len(levels) == 4 and finest.dtype in TYPES and all(one.dtype == finest.dtype for one in levels)
    if kernels is None or not alike or channels > 512 or max(one.numel() for one in levels) >= MOST:
        total = finest.permute(0, 3, 1, 2)
        for level in levels[1:]:
            total = total + functional.interpolate(
                level.permute(0, 3, 1, 2), size=(height, width), mode="bilinear", align_corners=False
            )
        return functional.relu(total).permute(0, 2, 3, 1) @ weight.to(total.dtype) + bias.to(total.dtype)
    logits = finest.new_empty((count, height, width), dtype=torch.float32)
    pixels, tall = count * height * width, 16
    with on_device_of(finest):
        kernels.merge[(-(-pixels // tall),)](
            *(level.contiguous() for level in levels),
            weight.contiguous(),
            bias,
            logits,
            *(side for level in levels[1:] for side in level.shape[1:3]),
            channels,
            height,
            width,
            pixels,
            tall=tall,
            wide=max(16, 1 << (channels - 1).bit_length()),
        )
    return logits


def _merge(  # type: ignore[no-untyped-def]
    finest,
    second,
    third,
    fourth,
    weight,
    bias,
    logits,
    height2,
    width2,
    height3,
    width3,
    height4,
    width4,
    channels,
    height,
    width,
    count,
    tall: tl.constexpr,
    wide: tl.constexpr,
):
    """Logits of a block of pixels, in Triton's language."""
    pixel = tl.program_id(0) * tall + tl.arange(0, tall)
    channel = tl.arange(0, wide)
    kept = (pixel < count)[:, None] & (channel < channels)[None, :]
    picture = pixel // (height * width)
    row = (pixel // width) % height
    column = pixel % width
    total = tl.load(finest + (pixel * channels)[:, None] + channel[None, :], mask=kept, other=0.0).to(tl.float32)
    for level in tl.static_range(3):
        if level == 0:
            source = second
            rows = height2
            columns = width2
        elif level == 1:
            source = third
            rows = height3
            columns = width3
        else:
            source = fourth
            rows = height4
            columns = width4
        down = tl.maximum((row + 0.5) * (rows / height) - 0.5, 0.0)
        across = tl.maximum((column + 0.5) * (columns / width) - 0.5, 0.0)
        top = down.to(tl.int32)
        left = across.to(tl.int32)
        lower = (down - top)[:, None]
        right = (across - left)[:, None]
        bottom = tl.minimum(top + 1, rows - 1)
        end = tl.minimum(left + 1, columns - 1)
        start = picture * rows * columns
        for corner in tl.static_range(4):
            at_row = top if corner < 2 else bottom
            at_column = left if corner % 2 == 0 else end
            share = ((1 - lower) if corner < 2 else lower) * ((1 - right) if corner % 2 == 0 else right)
            place = ((start + at_row * columns + at_column) * channels)[:, None] + channel[None, :]
            total += share * tl.load(source + place, mask=kept, other=0.0).to(tl.float32)
    factor = tl.load(weight + channel, mask=channel < channels, other=0.0).to(tl.float32)
    # ReLU of NaN is NaN, the maximum of NaN and 0 would be 0.
    found = tl.sum(tl.where(total < 0, 0.0, total) * factor[None, :], 1) + tl.load(bias).to(tl.float32)
    tl.store(logits + pixel, found, mask=pixel < count)
