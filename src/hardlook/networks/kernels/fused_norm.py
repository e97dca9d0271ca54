"""Batch normalisation, activation and max pooling of a training step in one pass over the maps, on a GPU with Triton.

In half precision most of a small network's step is spent on reading and writing maps: torch normalises, activates and
pools one after the other, and goes back the same way. Here a map is read twice on the way forward (for its statistics
and for the rest) and twice on the way back, but once where it was pooled. A block of a backbone asks `FusedNorm.fits`
and else calls its layers.

The results are those of the layers up to rounding: between them nothing is rounded to half precision, so two pixels
that half precision would make equal are not, and the gradient goes to the larger one. A convolution's bias, which the
normalisation takes out again, only moves the running mean; its gradient is 0, exactly. Sums are formed in one fixed
order: the same maps give the same numbers. A second derivative is refused with torch's error.

>>> import torch
>>> FusedNorm.fits(torch.zeros(2, 64, 4, 4), torch.nn.BatchNorm2d(64))  # no GPU
False
"""

from __future__ import annotations

import copy
import functools
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional
from torch.nn.modules.module import _has_any_global_hook

from hardlook.networks.gpu import is_observed
from hardlook.networks.kernels import triton_kernels
from hardlook.networks.kernels.triton_kernels import check_close, compile_kernels, on_device_of, try_kernels

PARTS = 1024
"""At most so many programs each sum a part of the rows; their sums are added in one fixed order."""
ROWS = 64
"""Rows of a tile where sums are formed."""
CELLS = {True: 16, False: 64}
"""Pixels of the result that a program writes: pooled ones, each of four, and others."""
MOST_PIXELS = 2**30
"""The kernels count the pixels of all maps in 32 bits."""

_DTYPES = (torch.float32, torch.float16, torch.bfloat16)
_PLAIN = (Tensor, nn.Parameter)


class FusedNorm:
    """What a block calls in training in place of its normalisation, activation and pooling."""

    @staticmethod
    def fits(maps: Tensor, *norms: nn.Module) -> bool:
        """Whether maps (n, C, h, w), or the images that become such, can be normalised here by all of the norms.

        That is on a GPU that has the kernels, where gradients are recorded but no transformation of torch.func or mode
        wants to see every step, and for norms that `_is_usable`. Other layers that are passed over are the block's to
        check (`is_plain`).
        """
        return (
            torch.is_grad_enabled()
            and type(maps) in _PLAIN
            and maps.dim() == 4
            and maps.dtype in _DTYPES
            and 0 < len(maps) * maps.shape[2] * maps.shape[3] < MOST_PIXELS
            and not torch._C._are_functorch_transforms_active()
            and not is_observed()
            and all(_is_usable(norm, maps.device) for norm in norms)
            and find_kernels(maps.device) is not None
        )

    @staticmethod
    def apply(
        maps: Tensor,
        norm: nn.BatchNorm2d,
        *,
        slope: float,
        pool: bool,
        bias: Tensor | None = None,
        other: Tensor | None = None,
        other_norm: nn.BatchNorm2d | None = None,
    ) -> Tensor:
        """Activated, and pooled by 2 x 2 if `pool`: norm(maps + bias), plus other_norm(other) where that is given.

        `maps` and `other` (n, C, h, w) float32 or half precision. `slope` is that of a leaky ReLU, at least 0.
        """
        _check_shapes(maps, norm, slope, pool, other, other_norm)
        norms = [norm] if other_norm is None else [norm, other_norm]
        result: Tensor = _Function.apply(  # type: ignore[no-untyped-call]
            _lay_out(maps),
            norm.weight,
            norm.bias,
            bias,
            None if other is None else _lay_out(other),
            None if other_norm is None else other_norm.weight,
            None if other_norm is None else other_norm.bias,
            norms,
            slope,
            pool,
        )
        return result


def fuse_norms(network: nn.Module) -> int:
    """Let every block of a network that can (it has `fused_norms`) normalise at once; return how many there were."""
    blocks = [module for module in network.modules() if hasattr(module, "fused_norms")]
    for block in blocks:
        block.fused_norms = True  # type: ignore[assignment]
    return len(blocks)


def is_plain(layer: nn.Module, *kinds: type[nn.Module]) -> bool:
    """Whether a layer is of one of torch's classes itself and nothing listens to its calls: it can be passed over.

    >>> is_plain(nn.ReLU(), nn.ReLU, nn.LeakyReLU)
    True
    """
    return (
        type(layer) in kinds
        and "forward" not in vars(layer)
        and not (layer._forward_hooks or layer._forward_pre_hooks or layer._backward_hooks or layer._backward_pre_hooks)
        and not _has_any_global_hook()  # type: ignore[no-untyped-call]
    )


def _is_usable(norm: Any, device: torch.device) -> bool:
    """Whether a layer is torch's batch normalisation by the batch's statistics, with what the kernels can read."""
    if not is_plain(norm, nn.BatchNorm2d) or not norm.training or norm.num_features % 16:
        return False
    values = [norm.weight, norm.bias]
    if norm.track_running_stats:
        batches = norm.num_batches_tracked
        if norm.momentum is None or not isinstance(batches, Tensor) or batches.device != device:
            return False
        values += [norm.running_mean, norm.running_var]
    return all(
        type(one) in _PLAIN and one.dtype == torch.float32 and one.device == device and one.is_contiguous()
        for one in values
    )


def _check_shapes(
    maps: Tensor, norm: nn.BatchNorm2d, slope: float, pool: bool, other: Tensor | None, other_norm: nn.Module | None
) -> None:
    """Raise where torch's layers would, and where the kernels would read other memory."""
    count, channels, height, width = maps.shape
    if count * height * width < 2:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {maps.shape}")
    if pool and min(height, width) < 2:
        raise RuntimeError(f"max pooling of maps of {height} x {width} leaves nothing")
    if slope < 0:
        raise ValueError(f"the slope is {slope}, at least 0 is needed: only then pooling may come before it")
    if (other is None) != (other_norm is None) or (other is not None and other.shape != maps.shape):
        raise ValueError(f"a second input with a norm has the shape of the first, {tuple(maps.shape)}")
    for one in (norm, other_norm):
        if one is not None and one.num_features != channels:
            raise ValueError(f"maps have {channels} channels, their normalisation {one.num_features}")


def _lay_out(maps: Tensor) -> Tensor:
    """Maps with the channels last in memory, as the kernels read them; copied only where they are not."""
    return maps.contiguous(memory_format=torch.channels_last)


class _Function(torch.autograd.Function):
    @staticmethod
    def forward(  # type: ignore[no-untyped-def]
        context, maps, weight, bias, shift, other, other_weight, other_bias, norms, slope, pool
    ) -> Tensor:
        inputs, weights, offsets = [maps, other], [weight, other_weight], [bias, other_bias]
        inputs, shifts = inputs[: len(norms)], [shift, None]
        kernels = find_kernels(maps.device)
        assert kernels is not None
        with on_device_of(maps):
            statistics = [
                kernels.find_statistics(*given) for given in zip(inputs, norms, weights, offsets, shifts, strict=False)
            ]
            result, chosen, kept = kernels.write_result(inputs, statistics, slope, pool)
        context.slope, context.pool, context.count = slope, pool, len(norms)
        context.shift_dtype = None if shift is None else shift.dtype
        context.save_for_backward(chosen, *statistics, *inputs, *kept)
        return result

    @staticmethod
    @once_differentiable
    def backward(context, gradient):  # type: ignore[no-untyped-def]
        count = context.count
        chosen, *saved = context.saved_tensors
        statistics: list[Any] = saved[:count]
        # Hooks that move saved tensors elsewhere and back may give them another layout.
        gradient, chosen, *rest = (one if one is None else _lay_out(one) for one in (gradient, chosen, *saved[count:]))
        inputs: list[Any] = rest[:count]
        kernels = find_kernels(gradient.device)
        assert kernels is not None
        with on_device_of(gradient):
            gradients, sums = kernels.write_gradients(
                inputs, statistics, gradient, chosen, rest[count:], context.slope, context.pool
            )
        # That of a bias in front of a normalisation is 0. Both offsets have one gradient, but memory of their own:
        # clipping and loss scaling multiply each in place.
        none = None if context.shift_dtype is None else sums.new_zeros(sums.shape[1], dtype=context.shift_dtype)
        second = (gradients[1], sums[2], sums[0].clone()) if count == 2 else (None, None, None)
        return gradients[0], sums[1], sums[0], none, *second, None, None, None


def _pick_width(channels: int) -> int:
    """Channels of a tile: the largest power of 2 up to 64 that divides them."""
    return next(width for width in (64, 32, 16) if channels % width == 0)


def _split(rows: int) -> tuple[int, int]:
    """How many parts rows are summed in, a power of 2, and the rows of each, a multiple of `ROWS`."""
    parts = min(PARTS, 1 << max(rows // (4 * ROWS), 1).bit_length())
    chunk = -(-rows // parts)
    return parts, -(-chunk // ROWS) * ROWS


@functools.cache
def find_kernels(where: torch.device) -> Kernels | None:
    """The kernels, tried once (`try_kernels`)."""
    return try_kernels(lambda: _try_blocks(where), where, "faster batch norms of a training step")


def _try_blocks(where: torch.device) -> Kernels:
    """The kernels, whose results and gradients of random maps are those of torch in float64."""
    kernels, random = Kernels(), torch.Generator(where).manual_seed(0)
    slope, channels = 0.1, 64

    def draw(*shape: int) -> Tensor:
        return torch.randn(shape, generator=random, device=where, dtype=torch.float32)

    for dtype, most in ((torch.float32, 1e-5), (torch.bfloat16, 1e-2), (torch.float16, 2e-3)):
        for count, pool in ((1, False), (1, True), (2, True)):
            draws = [draw(6, channels, 7, 5) for _ in range(count + 1)]
            inputs = [_lay_out(one.to(dtype)) for one in draws[:-1]]
            # With a small epsilon its absence would pass for rounding.
            norms = [nn.BatchNorm2d(channels, eps=0.1, device=where, dtype=torch.float32) for _ in inputs]
            for norm in norms:
                norm.weight.copy_(draw(channels))
                norm.bias.copy_(draw(channels))
            exact = [copy.deepcopy(norm).double() for norm in norms]
            shifts = [draw(channels), None][:count]
            statistics = [
                kernels.find_statistics(one, norm, norm.weight, norm.bias, shift)
                for one, norm, shift in zip(inputs, norms, shifts, strict=True)
            ]
            result, chosen, kept = kernels.write_result(inputs, statistics, slope, pool)
            gradient = _lay_out(draws[-1][:, :, : result.shape[2], : result.shape[3]].to(dtype))
            gradients, sums = kernels.write_gradients(inputs, statistics, gradient, chosen, kept, slope, pool)
            with torch.enable_grad():
                leaves = [one.double().requires_grad_() for one in inputs]
                moved_leaves = [
                    leaf if shift is None else leaf + shift.double()[:, None, None]
                    for leaf, shift in zip(leaves, shifts, strict=True)
                ]
                wide = sum(norm(leaf) for norm, leaf in zip(exact, moved_leaves, strict=True))
                wide = functional.leaky_relu(wide, slope)
                wide = functional.max_pool2d(wide, 2) if pool else wide
                weights = [norm.weight for norm in exact]
                back = torch.autograd.grad(wide, [*leaves, exact[0].bias, *weights], gradient.double())
            check_close(result, wide.detach(), most, "a normalised map")
            for one, other in zip((*gradients, *sums), back, strict=True):
                check_close(one, other, most, "a gradient")
            for norm, wide_norm in zip(norms, exact, strict=True):
                for one, other in zip(norm.buffers(), wide_norm.buffers(), strict=True):
                    check_close(one, other, most, "a running statistic")
    return kernels


# The kernels' language, which they find among the globals of their module.
tl: Any = None


class Kernels:
    """The kernels, compiled when they are first called; the same for all sizes of maps. Maps have the channels last."""

    def __init__(self) -> None:
        self._collect, self._finish, self._apply, self._collect_gradients, self._add_parts, self._spread = (
            compile_kernels(
                _collect,
                _finish,
                _apply,
                _collect_gradients,
                _add_parts,
                _spread,
                called=(triton_kernels.load_statistics,),
                varying=("rows", "chunk", "parts", "cells", "tiles", "height", "width"),
            )
        )

    def find_statistics(
        self, maps: Tensor, norm: nn.BatchNorm2d, weight: Tensor, offset: Tensor, shift: Tensor | None
    ) -> Tensor:
        """(4, C): mean, 1 / deviation, scale and offset of a normalisation, whose running statistics go on."""
        count, channels, height, width = maps.shape
        rows = count * height * width
        parts, chunk = _split(rows)
        block = _pick_width(channels)
        partial = maps.new_empty((2, parts, channels), dtype=torch.float32)
        self._collect[(channels // block, parts)](
            maps, partial, rows, chunk, parts, channels=channels, rows_of_tile=ROWS, block=block, num_warps=4
        )
        statistics = maps.new_empty((4, channels), dtype=torch.float32)
        # A layer may have statistics that it neither reads nor moves.
        tracked = norm.track_running_stats
        self._finish[(channels // 16,)](
            maps,
            partial,
            statistics,
            weight,
            offset,
            shift,
            norm.running_mean if tracked else None,
            norm.running_var if tracked else None,
            norm.num_batches_tracked if tracked else None,
            rows,
            chunk,
            float(norm.eps),
            float(norm.momentum) if tracked and norm.momentum is not None else 0.0,
            channels=channels,
            block=16,
            all_parts=parts,
            num_warps=8,
        )
        return statistics

    def write_result(
        self, inputs: list[Tensor], statistics: list[Tensor], slope: float, pool: bool
    ) -> tuple[Tensor, Tensor | None, list[Tensor | None]]:
        """The result, of each of its values the pixel that it comes from, and the inputs' values there."""
        maps, two = inputs[0], len(inputs) == 2
        count, channels, height, width = maps.shape
        size = (count, channels, height // 2, width // 2) if pool else tuple(maps.shape)

        def make(dtype: torch.dtype) -> Tensor:
            return torch.empty(size, dtype=dtype, device=maps.device, memory_format=torch.channels_last)

        result = make(maps.dtype)
        chosen = make(torch.uint8) if pool else None
        kept = [make(one.dtype) if pool else None for one in inputs]
        block = _pick_width(channels)
        cells = size[0] * size[2] * size[3]
        self._apply[(-(-cells // CELLS[pool]), channels // block)](
            maps,
            inputs[1] if two else None,
            statistics[0],
            statistics[1] if two else None,
            result,
            chosen,
            kept[0],
            kept[1] if two else None,
            cells,
            height,
            width,
            float(slope),
            channels=channels,
            tile=CELLS[pool],
            block=block,
            pool=pool,
            num_warps=4,
        )
        return result, chosen, kept

    def write_gradients(
        self,
        inputs: list[Tensor],
        statistics: list[Tensor],
        gradient: Tensor,
        chosen: Tensor | None,
        kept: list[Tensor | None],
        slope: float,
        pool: bool,
    ) -> tuple[list[Tensor], Tensor]:
        """Gradients of the inputs, and (1 + inputs, C): that of the offset, which both share, and of each scale."""
        maps, two = inputs[0], len(inputs) == 2
        count, channels, height, width = maps.shape
        cells = count * gradient.shape[2] * gradient.shape[3]
        parts, chunk = _split(cells)
        block = _pick_width(channels)
        values = kept if pool else inputs
        second = values[1] if two else None
        partial = maps.new_empty((1 + len(inputs), parts, channels), dtype=torch.float32)
        self._collect_gradients[(channels // block, parts)](
            gradient,
            values[0],
            second,
            statistics[0],
            statistics[1] if two else None,
            partial,
            cells,
            chunk,
            parts,
            float(slope),
            channels=channels,
            rows_of_tile=ROWS,
            block=block,
            num_warps=4,
        )
        sums = maps.new_empty((1 + len(inputs), channels), dtype=torch.float32)
        self._add_parts[(channels // 16, 1 + len(inputs))](
            partial, sums, channels=channels, block=16, all_parts=parts, num_warps=8
        )
        gradients = [torch.empty_like(one, memory_format=torch.channels_last) for one in inputs]
        # Pixels that no cell of the result covers, at the lower and the right edge, have a gradient as well.
        tiles = count * (-(-height // 2)) * (-(-width // 2)) if pool else cells
        self._spread[(-(-tiles // CELLS[pool]), channels // block)](
            gradient,
            chosen,
            values[0],
            second,
            maps,
            inputs[1] if two else None,
            statistics[0],
            statistics[1] if two else None,
            sums,
            gradients[0],
            gradients[1] if two else None,
            tiles,
            height,
            width,
            count * height * width,
            float(slope),
            channels=channels,
            tile=CELLS[pool],
            block=block,
            pool=pool,
            num_warps=4,
        )
        return gradients, sums


# The kernels read maps as rows (a pixel of an image each) of C channels. Everything is computed in float32.


def _collect(  # type: ignore[no-untyped-def]
    maps,
    partial,
    rows,
    chunk,
    parts,
    channels: tl.constexpr,
    rows_of_tile: tl.constexpr,
    block: tl.constexpr,
):
    """Mean and squared deviations of a part of the rows, merged tile by tile (Chan's rule).

    Values are taken relative to those of the first row of all, so that a large mean does not cancel digits.
    """
    part = tl.program_id(1)
    channel = tl.program_id(0) * block + tl.arange(0, block)
    first = part * chunk
    last = tl.minimum(first + chunk, rows)
    origin = tl.load(maps + channel).to(tl.float32)[None, :]
    mean = tl.zeros((block,), tl.float32)
    spread = tl.zeros((block,), tl.float32)
    seen = 0.0
    for start in range(first, last, rows_of_tile):
        row = start + tl.arange(0, rows_of_tile)
        inside = (row < last)[:, None]
        place = maps + row.to(tl.int64)[:, None] * channels + channel[None, :]
        value = tl.where(inside, tl.load(place, mask=inside, other=0.0).to(tl.float32) - origin, 0.0)
        size = tl.minimum(last - start, rows_of_tile).to(tl.float32)
        own = tl.sum(value, 0) / size
        apart = tl.where(inside, value - own[None, :], 0.0)
        move = own - mean
        total = seen + size
        spread += tl.sum(apart * apart, 0) + move * move * (seen * size / total)
        mean += move * (size / total)
        seen = total
    tl.store(partial + part * channels + channel, mean)
    tl.store(partial + (parts + part) * channels + channel, spread)


def _finish(  # type: ignore[no-untyped-def]
    maps,
    partial,
    statistics,
    weight,
    offset,
    shift,
    running_mean,
    running_variance,
    batches,
    rows,
    chunk,
    epsilon,
    momentum,
    channels: tl.constexpr,
    block: tl.constexpr,
    all_parts: tl.constexpr,
):
    """Statistics of all parts, what they make of scale and offset, and the running statistics."""
    channel = tl.program_id(0) * block + tl.arange(0, block)
    part = tl.arange(0, all_parts)
    size = tl.minimum(tl.maximum(rows - part * chunk, 0), chunk).to(tl.float32)[:, None]
    place = partial + part[:, None] * channels + channel[None, :]
    total = rows.to(tl.float32)
    means = tl.load(place)
    mean = tl.sum(means * size, 0) / total
    apart = means - mean[None, :]
    squares = tl.sum(tl.load(place + all_parts * channels) + apart * apart * size, 0)
    mean += tl.load(maps + channel).to(tl.float32)
    variance = squares / total
    inverse = 1.0 / tl.sqrt(variance + epsilon)
    scale = tl.load(weight + channel).to(tl.float32) * inverse
    tl.store(statistics + channel, mean)
    tl.store(statistics + channels + channel, inverse)
    tl.store(statistics + 2 * channels + channel, scale)
    tl.store(statistics + 3 * channels + channel, tl.load(offset + channel).to(tl.float32))
    if running_mean is not None:
        if shift is not None:
            mean += tl.load(shift + channel).to(tl.float32)
        before = tl.load(running_mean + channel)
        tl.store(running_mean + channel, (1.0 - momentum) * before + momentum * mean)
        before = tl.load(running_variance + channel)
        tl.store(running_variance + channel, (1.0 - momentum) * before + momentum * (squares / (total - 1.0)))
        if tl.program_id(0) == 0:
            tl.store(batches, tl.load(batches) + 1)


def _apply(  # type: ignore[no-untyped-def]
    maps,
    other,
    statistics,
    other_statistics,
    result,
    chosen,
    kept,
    other_kept,
    cells,
    height,
    width,
    slope,
    channels: tl.constexpr,
    tile: tl.constexpr,
    block: tl.constexpr,
    pool: tl.constexpr,
):
    """Normalised, activated and pooled values; which pixel each comes from, and the inputs there."""
    cell = tl.program_id(0) * tile + tl.arange(0, tile)
    channel = tl.program_id(1) * block + tl.arange(0, block)
    inside = (cell < cells)[:, None]
    mean, _, scale, offset = triton_kernels.load_statistics(statistics, channel, channels)
    if other is not None:
        other_mean, _, other_scale, other_offset = triton_kernels.load_statistics(other_statistics, channel, channels)
        offset += other_offset
    target = cell.to(tl.int64)[:, None] * channels + channel[None, :]
    if pool:
        rows_out, columns_out = height // 2, width // 2
        column = cell % columns_out
        line = (cell // columns_out) % rows_out
        image = cell // (columns_out * rows_out)
        row = (image * height + 2 * line) * width + 2 * column
    else:
        row = cell
    place = row.to(tl.int64)[:, None] * channels + channel[None, :]
    value = tl.load(maps + place, mask=inside, other=0.0)
    best = (value.to(tl.float32) - mean) * scale + offset
    if other is not None:
        second = tl.load(other + place, mask=inside, other=0.0)
        best += (second.to(tl.float32) - other_mean) * other_scale
    if pool:
        index = tl.zeros((tile, block), tl.int32)
        for number in tl.static_range(1, 4):
            there = place + ((number // 2) * width + number % 2) * channels
            one = tl.load(maps + there, mask=inside, other=0.0)
            score = (one.to(tl.float32) - mean) * scale + offset
            if other is not None:
                two = tl.load(other + there, mask=inside, other=0.0)
                score += (two.to(tl.float32) - other_mean) * other_scale
            better = score > best
            best = tl.where(better, score, best)
            index = tl.where(better, number, index)
            value = tl.where(better, one, value)
            if other is not None:
                second = tl.where(better, two, second)
        tl.store(chosen + target, index.to(tl.uint8), mask=inside)
        tl.store(kept + target, value, mask=inside)
        if other is not None:
            tl.store(other_kept + target, second, mask=inside)
    active = tl.where(best > 0, best, best * slope)
    tl.store(result + target, active.to(result.dtype.element_ty), mask=inside)


def _collect_gradients(  # type: ignore[no-untyped-def]
    gradient,
    values,
    other_values,
    statistics,
    other_statistics,
    partial,
    cells,
    chunk,
    parts,
    slope,
    channels: tl.constexpr,
    rows_of_tile: tl.constexpr,
    block: tl.constexpr,
):
    """Sums over a part of the cells: the gradient before the activation, and that times each normalised input."""
    part = tl.program_id(1)
    channel = tl.program_id(0) * block + tl.arange(0, block)
    first = part * chunk
    last = tl.minimum(first + chunk, cells)
    mean, inverse, scale, offset = triton_kernels.load_statistics(statistics, channel, channels)
    if other_values is not None:
        other_mean, other_inverse, other_scale, other_offset = triton_kernels.load_statistics(
            other_statistics, channel, channels
        )
        offset += other_offset
        third = tl.zeros((block,), tl.float32)
    total = tl.zeros((block,), tl.float32)
    product = tl.zeros((block,), tl.float32)
    for start in range(first, last, rows_of_tile):
        cell = start + tl.arange(0, rows_of_tile)
        inside = (cell < last)[:, None]
        place = cell.to(tl.int64)[:, None] * channels + channel[None, :]
        own = tl.load(gradient + place, mask=inside, other=0.0).to(tl.float32)
        value = tl.load(values + place, mask=inside, other=0.0).to(tl.float32) - mean
        score = value * scale + offset
        if other_values is not None:
            second = tl.load(other_values + place, mask=inside, other=0.0).to(tl.float32) - other_mean
            score += second * other_scale
        own = tl.where(score > 0, own, tl.where(slope > 0, own * slope, 0.0))
        total += tl.sum(own, 0)
        product += tl.sum(own * (value * inverse), 0)
        if other_values is not None:
            third += tl.sum(own * (second * other_inverse), 0)
    tl.store(partial + part * channels + channel, total)
    tl.store(partial + (parts + part) * channels + channel, product)
    if other_values is not None:
        tl.store(partial + (2 * parts + part) * channels + channel, third)


def _add_parts(  # type: ignore[no-untyped-def]
    partial, sums, channels: tl.constexpr, block: tl.constexpr, all_parts: tl.constexpr
):
    channel = tl.program_id(0) * block + tl.arange(0, block)
    which = tl.program_id(1)
    part = tl.arange(0, all_parts)
    place = partial + (which * all_parts + part)[:, None] * channels + channel[None, :]
    tl.store(sums + which * channels + channel, tl.sum(tl.load(place), 0))


def _spread(  # type: ignore[no-untyped-def]
    gradient,
    chosen,
    values,
    other_values,
    maps,
    other,
    statistics,
    other_statistics,
    sums,
    result,
    other_result,
    tiles,
    height,
    width,
    rows,
    slope,
    channels: tl.constexpr,
    tile: tl.constexpr,
    block: tl.constexpr,
    pool: tl.constexpr,
):
    """Gradients of the inputs: scale (g - mean(g) - x mean(g x)) of normalised x and the activation's gradient g."""
    cell = tl.program_id(0) * tile + tl.arange(0, tile)
    channel = tl.program_id(1) * block + tl.arange(0, block)
    inside = cell < tiles
    count = rows.to(tl.float32)
    mean, inverse, scale, offset = triton_kernels.load_statistics(statistics, channel, channels)
    first = (tl.load(sums + channel) / count)[None, :]
    second = (tl.load(sums + channels + channel) / count)[None, :]
    if other is not None:
        other_mean, other_inverse, other_scale, other_offset = triton_kernels.load_statistics(
            other_statistics, channel, channels
        )
        offset += other_offset
        third = (tl.load(sums + 2 * channels + channel) / count)[None, :]
    if pool:
        columns = (width + 1) // 2
        lines = (height + 1) // 2
        column = cell % columns
        line = (cell // columns) % lines
        image = cell // (columns * lines)
        rows_out, columns_out = height // 2, width // 2
        there = (image * rows_out + line) * columns_out + column
        has = (inside & (line < rows_out) & (column < columns_out))[:, None]
        row = (image * height + 2 * line) * width + 2 * column
    else:
        there = cell
        has = inside[:, None]
        row = cell
    source = there.to(tl.int64)[:, None] * channels + channel[None, :]
    from_here = tl.load(gradient + source, mask=has, other=0.0).to(tl.float32)
    score = (tl.load(values + source, mask=has, other=0.0).to(tl.float32) - mean) * scale + offset
    if other is not None:
        score += (tl.load(other_values + source, mask=has, other=0.0).to(tl.float32) - other_mean) * other_scale
    from_here = tl.where(score > 0, from_here, tl.where(slope > 0, from_here * slope, 0.0))
    if pool:
        index = tl.load(chosen + source, mask=has, other=0).to(tl.int32)
    for number in tl.static_range(4 if pool else 1):
        place = row.to(tl.int64)[:, None] * channels + channel[None, :]
        here = inside[:, None]
        own = from_here
        if pool:
            place += ((number // 2) * width + number % 2) * channels
            here = (inside & (2 * line + number // 2 < height) & (2 * column + number % 2 < width))[:, None]
            own = tl.where(index == number, from_here, 0.0)
        value = (tl.load(maps + place, mask=here, other=0.0).to(tl.float32) - mean) * inverse
        written = scale * (own - first - value * second)
        tl.store(result + place, written.to(result.dtype.element_ty), mask=here)
        if other is not None:
            value = (tl.load(other + place, mask=here, other=0.0).to(tl.float32) - other_mean) * other_inverse
            written = other_scale * (own - first - value * third)
            tl.store(other_result + place, written.to(other_result.dtype.element_ty), mask=here)
