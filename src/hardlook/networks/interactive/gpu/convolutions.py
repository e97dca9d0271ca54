"""Convolutions and enlarging on a GPU that write a padded batch's zeros together with the result.

A padded batch has zeros wherever no picture is (`hrnet.Frame`); plain torch, which is used where there are no kernels
of Triton, clears them in a pass over memory of its own. Products of float32 are computed from three in TF32, whose sums
are added in float32: nearly the precision of float32, at several times the speed of float32 for convolutions of few
channels. Where cuDNN may round to TF32, the kernels do so, too.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.gpu import read_tf32
from hardlook.networks.interactive.hrnet import Frame
from hardlook.networks.kernels import triton_kernels
from hardlook.networks.kernels.triton_kernels import check_close, compile_kernels, on_device_of, try_kernels

MOST = 2**30
"""Elements of a map from which on the kernels' indices, which are sums of two, might not fit into 32 bits."""

# Triton's language, which `compile_kernels` puts here.
tl: Any = None


class ConvolutionKernels(NamedTuple):
    """Kernels of Triton."""

    convolve: Any
    enlarge: Any


def build_kernels() -> ConvolutionKernels:
    """The kernels, not yet tried; ImportError without Triton."""
    # Crops have many sizes: none of them is worth a kernel of its own.
    sides = {"height", "width", "new_height", "new_width", "count"}
    channels = {"inputs4", "outputs4", "channels4", "shift4"}
    called = (triton_kernels.round_to_tf32,)
    return ConvolutionKernels(*compile_kernels(_convolve, _enlarge, called=called, varying=sides | channels))


@functools.cache
def load_kernels(where: torch.device) -> ConvolutionKernels | None:
    """The kernels, tried once (`try_kernels`)."""
    return try_kernels(lambda: _try_maps(where), where, "faster convolutions of padded pictures")


def _try_maps(where: torch.device) -> ConvolutionKernels:
    """The kernels, whose maps of random pictures are those of torch in float64."""
    kernels, random = build_kernels(), torch.Generator(where).manual_seed(0)

    def draw(*shape: int) -> Tensor:
        return torch.randn(shape, generator=random, device=where, dtype=torch.float32)

    size = (9, 11)
    frame = Frame(torch.tensor([[9, 11], [7, 5]], device=where), size)
    # Every tile of `choose_tiles`; kernels of 1 x 1 and 3 x 3, both strides, with what is added or with a shift.
    for number, tiles in enumerate(TILES):
        inputs, outputs, side, stride = (20, 36, 1, 1) if number % 3 == 2 else (36, 40, 3, 1 + number % 3)
        x = frame.clear(draw(2, inputs, *size))
        plain = nn.Conv2d(inputs, outputs, side, stride, side // 2, device="meta")
        layer = pack(draw(outputs, inputs, side, side), draw(outputs), plain, 4)
        wide = pack(layer.weight.double(), layer.bias.double(), plain, 4)
        added: Tensor | None = None
        shift: Tensor | None = draw(2, outputs)
        if number % 2 == 0:
            added, shift = draw(*convolve(x.double(), wide, frame).shape), None
        more: dict[str, Any] = {"added": added, "shift": shift}
        wide_more: dict[str, Any] = {name: None if one is None else one.double() for name, one in more.items()}
        exact = convolve(x.double(), wide, frame, slope=0.1, **wide_more)
        # Rounding is off by 3e-4, operands that are cut off by 7e-4.
        for rounds, most in ((False, 1e-5), (True, 5e-4)):
            found = convolve(x, layer, frame, slope=0.1, kernels=kernels, rounds=rounds, tiles=tiles, **more)
            check_close(found, exact, most, "a convolution")
    small, halved = (5, 6), frame.clear(draw(2, 20, *size))[:, :, ::2, ::2]
    added = draw(2, 20, *size)
    found = enlarge(halved, size, frame, slope=0.0, added=added, kernels=kernels)
    assert tuple(halved.shape[2:]) == small
    check_close(found, enlarge(halved.double(), size, frame, slope=0.0, added=added.double()), 1e-5, "an enlarged map")
    return kernels


class Tiles(NamedTuple):
    """How many pixels, channels and terms of a sum a block of threads takes at once, and how many threads it has."""

    tall: int
    wide: int
    num_warps: int = 4
    deep: int = 16
    num_stages: int = 3


TILES = (Tiles(64, 32), Tiles(128, 64, 8), Tiles(64, 64), Tiles(128, 32), Tiles(64, 128, 8))


@dataclass(frozen=True)
class Folded:
    """A convolution with the batch norm after it folded into its weights, as used for inference.

    `weight` (outputs, inputs, k, k) and `bias` (outputs); `packed` is the weight (k * k, outputs, inputs).
    """

    weight: Tensor
    bias: Tensor
    packed: Tensor
    stride: int
    padding: int


def fold(
    convolution: nn.Conv2d, norm: nn.BatchNorm2d | None = None, *, factor: Tensor | None = None, multiple: int = 1
) -> Folded:
    """The convolution, the norm's running statistics and a factor as one convolution, computed in float64.

    Channels of zeros are appended until both counts are a multiple of `multiple`.
    """
    weight, dtype = convolution.weight.detach().double(), convolution.weight.dtype
    bias = weight.new_zeros(len(weight)) if convolution.bias is None else convolution.bias.detach().double()
    if norm is not None:
        assert norm.running_mean is not None and norm.running_var is not None
        scale = (norm.running_var.double() + norm.eps).rsqrt() * norm.weight.detach().double()
        bias = (bias - norm.running_mean.double()) * scale + norm.bias.detach().double()
        weight = weight * scale[:, None, None, None]
    if factor is not None:
        weight, bias = weight * factor.double(), bias * factor.double()
    return pack(weight.to(dtype), bias.to(dtype), convolution, multiple)


def pack(weight: Tensor, bias: Tensor, convolution: nn.Conv2d, multiple: int) -> Folded:
    """Weight (outputs, inputs, k, k) and bias, with channels of zeros appended, and the steps of the convolution."""
    more_outputs, more_inputs = -weight.shape[0] % multiple, -weight.shape[1] % multiple
    weight = functional.pad(weight, (0, 0, 0, 0, 0, more_inputs, 0, more_outputs))
    bias = functional.pad(bias, (0, more_outputs))
    packed = weight.permute(2, 3, 0, 1).flatten(0, 1).contiguous()
    return Folded(weight, bias, packed, convolution.stride[0], int(convolution.padding[0]))


def convolve(
    x: Tensor,
    layer: Folded,
    frame: Frame | None,
    *,
    slope: float = 1.0,
    added: Tensor | None = None,
    shift: Tensor | None = None,
    kernels: ConvolutionKernels | None = None,
    rounds: bool | None = None,
    tiles: Tiles | None = None,
) -> Tensor:
    """The convolution of x (B, C, h, w), plus `added` of the result's shape, negative values times `slope`.

    With a frame x has zeros wherever no picture is, and so has the result. `shift` (B, outputs) stands in place of the
    bias where that differs from picture to picture. `rounds` says whether the kernel rounds to TF32; by default it does
    where cuDNN may. `tiles` are those of `choose_tiles` if none are given.
    """
    whole = x.dtype == torch.float32 and x.shape[1] % 4 == 0 and len(layer.weight) % 4 == 0
    if kernels is not None and frame is not None and whole and not torch.is_autocast_enabled(x.device.type):
        rounds = x.is_cuda and read_tf32().convolutions if rounds is None else rounds
        found = _convolve_by_kernel(x, layer, frame, slope, added, shift, kernels, rounds, tiles)
        if found is not None:
            return found
    bias = layer.bias if shift is None else None
    found = functional.conv2d(x, layer.weight, bias, layer.stride, layer.padding)
    if shift is not None:
        found += shift[:, :, None, None]
    if added is not None:
        found += added
    return _finish(found, frame, slope)


def _finish(found: Tensor, frame: Frame | None, slope: float) -> Tensor:
    """The activation and zeros for padding, in one pass where that is possible."""
    if frame is not None and slope == 0:
        # Not below 0, and not above 0 where no picture is: a ReLU that clears.
        limit = frame.limit(found)
        return torch.clamp(found, torch.zeros_like(limit), limit)
    if slope != 1:
        found = functional.relu_(found) if slope == 0 else functional.leaky_relu_(found, slope)
    return found if frame is None else frame.clear(found)


def _convolve_by_kernel(
    x: Tensor,
    layer: Folded,
    frame: Frame,
    slope: float,
    added: Tensor | None,
    shift: Tensor | None,
    kernels: ConvolutionKernels,
    rounds: bool,
    tiles: Tiles | None,
) -> Tensor | None:
    """The same; None where a map is too large."""
    side, step, edge = layer.weight.shape[2], layer.stride, layer.padding
    count, inputs, height, width = x.shape
    outputs = len(layer.weight)
    rows, columns = ((length + 2 * edge - side) // step + 1 for length in (height, width))
    pixels = count * rows * columns
    if max(x.numel(), pixels * outputs) >= MOST:
        return None
    x = x.contiguous(memory_format=torch.channels_last)
    found = _new_map(x, (count, outputs, rows, columns))
    if added is not None:
        added = added.contiguous(memory_format=torch.channels_last)
    tiles = tiles or choose_tiles(pixels, outputs)
    grid = (-(-pixels // tiles.tall), -(-outputs // tiles.wide))
    with on_device_of(x):
        kernels.convolve[grid](
            x,
            layer.packed,
            layer.bias if shift is None else shift.contiguous(),
            found if added is None else added,
            frame.sizes(found).contiguous(),
            found,
            inputs // 4,
            outputs // 4,
            height,
            width,
            rows,
            columns,
            pixels,
            0 if shift is None else outputs // 4,
            float(slope),
            side=side,
            step=step,
            edge=edge,
            adds=added is not None,
            precision="tf32" if rounds else "tf32x3",
            **tiles._asdict(),
        )
    return found


def choose_tiles(pixels: int, outputs: int) -> Tiles:
    """One of `TILES`."""
    # A tile of 32 wastes least of 18, 36 and 144 channels; one of 128 reads the input least often.
    wide = 32 if outputs <= 36 else 128 if outputs % 128 == 0 else 64
    tall = 128 if wide < 128 else 64
    if pixels // tall * -(-outputs // wide) < 264:  # fewer than two blocks for each processor of an H200
        tall, wide = 64, min(wide, 64)
    return next(one for one in TILES if (one.tall, one.wide) == (tall, wide))


def _new_map(x: Tensor, shape: tuple[int, int, int, int]) -> Tensor:
    return torch.empty(shape, dtype=x.dtype, device=x.device, memory_format=torch.channels_last)


def _convolve(  # type: ignore[no-untyped-def]
    x,
    weight,
    bias,
    added,
    sizes,
    result,
    inputs4,
    outputs4,
    height,
    width,
    new_height,
    new_width,
    count,
    shift4,
    slope,
    side: tl.constexpr,
    step: tl.constexpr,
    edge: tl.constexpr,
    adds: tl.constexpr,
    precision: tl.constexpr,
    tall: tl.constexpr,
    wide: tl.constexpr,
    deep: tl.constexpr,
):
    """A block of `tall` pixels and `wide` channels of a convolution, channels last, in Triton's language."""
    inputs = inputs4 * 4  # so that Triton knows that four numbers may be loaded at once
    outputs = outputs4 * 4
    pixel = tl.program_id(0) * tall + tl.arange(0, tall)
    channel = tl.program_id(1) * wide + tl.arange(0, wide)
    real = pixel < count
    picture = pixel // (new_height * new_width)
    row = (pixel // new_width) % new_height
    column = pixel % new_width
    total = tl.zeros((tall, wide), dtype=tl.float32)
    blocks = tl.cdiv(inputs, deep)
    for turn in range(side * side * blocks):
        tap = turn // blocks
        term = (turn % blocks) * deep + tl.arange(0, deep)
        at_row = row * step + tap // side - edge
        at_column = column * step + tap % side - edge
        inside = real & (at_row >= 0) & (at_row < height) & (at_column >= 0) & (at_column < width)
        place = ((picture * height + at_row) * width + at_column) * inputs
        left = tl.load(x + place[:, None] + term[None, :], mask=inside[:, None] & (term < inputs)[None, :], other=0.0)
        right = tl.load(
            weight + ((tap * outputs + channel) * inputs)[None, :] + term[:, None],
            mask=(channel < outputs)[None, :] & (term < inputs)[:, None],
            other=0.0,
        )
        left = triton_kernels.round_to_tf32(left, precision)
        right = triton_kernels.round_to_tf32(right, precision)
        total = tl.dot(left, right, total, input_precision=precision)
    kept = real[:, None] & (channel < outputs)[None, :]
    total += tl.load(bias + (picture * shift4 * 4)[:, None] + channel[None, :], mask=kept, other=0.0)
    place = (pixel * outputs)[:, None] + channel[None, :]
    if adds:
        total += tl.load(added + place, mask=kept, other=0.0)
    # ReLU of -inf is 0, of NaN it is NaN.
    bent = tl.where((slope == 0) & (total == total), 0.0, total * slope)
    total = tl.where(total > 0, total, bent)
    rows = tl.load(sizes + picture * 2, mask=real, other=0)
    columns = tl.load(sizes + picture * 2 + 1, mask=real, other=0)
    shown = (row < rows) & (column < columns)
    tl.store(result + place, tl.where(shown[:, None], total, 0.0), mask=kept)


def enlarge(
    x: Tensor,
    size: tuple[int, int],
    frame: Frame | None,
    *,
    slope: float = 1.0,
    added: Tensor | None = None,
    kernels: ConvolutionKernels | None = None,
) -> Tensor:
    """Maps (B, C, h, w) at another size, bilinear with the corners' centres kept; all else as of `convolve`."""
    count, channels = x.shape[:2]
    pixels = count * size[0] * size[1]
    small = max(x.numel(), pixels * channels) < MOST
    if kernels is None or frame is None or x.dtype != torch.float32 or channels % 4 or not small:
        if frame is None:
            found = functional.interpolate(x, size=size, mode="bilinear", align_corners=True)
        else:
            found = frame.resize(x, size)
            if x.is_contiguous(memory_format=torch.channels_last):
                found = found.contiguous(memory_format=torch.channels_last)
        return _finish(found if added is None else found + added, frame, slope)
    x = x.contiguous(memory_format=torch.channels_last)
    found = _new_map(x, (count, channels, *size))
    if added is not None:
        added = added.contiguous(memory_format=torch.channels_last)
    tall = wide = 32
    with on_device_of(x):
        kernels.enlarge[(-(-pixels // tall), -(-channels // wide))](
            x,
            found if added is None else added,
            frame.sizes(x).contiguous(),
            frame.sizes(found).contiguous(),
            found,
            channels // 4,
            x.shape[2],
            x.shape[3],
            *size,
            pixels,
            float(slope),
            adds=added is not None,
            tall=tall,
            wide=wide,
        )
    return found


def _enlarge(  # type: ignore[no-untyped-def]
    x,
    added,
    sizes,
    new_sizes,
    result,
    channels4,
    height,
    width,
    new_height,
    new_width,
    count,
    slope,
    adds: tl.constexpr,
    tall: tl.constexpr,
    wide: tl.constexpr,
):
    """A block of pixels and channels of enlarged pictures, channels last, in Triton's language."""
    channels = channels4 * 4
    pixel = tl.program_id(0) * tall + tl.arange(0, tall)
    channel = tl.program_id(1) * wide + tl.arange(0, wide)
    real = pixel < count
    picture = pixel // (new_height * new_width)
    row = (pixel // new_width) % new_height
    column = pixel % new_width
    rows = tl.load(sizes + picture * 2, mask=real, other=1)
    columns = tl.load(sizes + picture * 2 + 1, mask=real, other=1)
    new_rows = tl.load(new_sizes + picture * 2, mask=real, other=1)
    new_columns = tl.load(new_sizes + picture * 2 + 1, mask=real, other=1)
    down = row.to(tl.float64) * (rows - 1).to(tl.float64) / tl.maximum(new_rows - 1, 1).to(tl.float64)
    across = column.to(tl.float64) * (columns - 1).to(tl.float64) / tl.maximum(new_columns - 1, 1).to(tl.float64)
    down = tl.minimum(down, (rows - 1).to(tl.float64))
    across = tl.minimum(across, (columns - 1).to(tl.float64))
    top = down.to(tl.int32)
    left = across.to(tl.int32)
    lower = (down - top.to(tl.float64)).to(tl.float32)[:, None]
    right = (across - left.to(tl.float64)).to(tl.float32)[:, None]
    bottom = tl.minimum(top + 1, rows.to(tl.int32) - 1)
    end = tl.minimum(left + 1, columns.to(tl.int32) - 1)
    kept = real[:, None] & (channel < channels)[None, :]
    first = ((picture * height + top) * width * channels)[:, None] + channel[None, :]
    second = ((picture * height + bottom) * width * channels)[:, None] + channel[None, :]
    left = (left * channels)[:, None]
    end = (end * channels)[:, None]
    one = tl.load(x + first + left, mask=kept, other=0.0) * (1 - right)
    one += tl.load(x + first + end, mask=kept, other=0.0) * right
    two = tl.load(x + second + left, mask=kept, other=0.0) * (1 - right)
    two += tl.load(x + second + end, mask=kept, other=0.0) * right
    total = one * (1 - lower) + two * lower
    place = (pixel * channels)[:, None] + channel[None, :]
    if adds:
        total += tl.load(added + place, mask=kept, other=0.0)
    # ReLU of -inf is 0, of NaN it is NaN.
    bent = tl.where((slope == 0) & (total == total), 0.0, total * slope)
    total = tl.where(total > 0, total, bent)
    shown = (row < new_rows) & (column < new_columns)
    tl.store(result + place, tl.where(shown[:, None], total, 0.0), mask=kept)
