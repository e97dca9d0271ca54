"""Blocks of a convolutional network whose every task has weights of its own: values, gradients, and their tangents.

A block is a 3 x 3 convolution, batch normalisation by the statistics of a task's images, a leaky ReLU and 2 x 2 max
pooling. Maps are (tasks, n, h, w, C), weights (tasks, taps, inputs, C) with the taps row by row; the first block has
one tap, its input being patches of images. A gradient step on the weights and its derivative in a direction take nine
operations, which `Operations` names. `TorchOperations` has them in plain torch; the kernels for GPUs are in
`task_kernels`.

Notation: y are a convolution's maps, N the numbers of a channel of a task, m their mean, r = 1 / sqrt(variance + eps),
x = (y - m) r, z = scale x + offset. Of a window the largest z is chosen; u is the gradient of z there (that of the
pooled value, times the slope where z <= 0) and 0 elsewhere. With A = sum(u) and B = sum(u x), the gradients of offset
and scale, the gradient of y is

  dy = scale r q,  q = u - A / N - x B / N.

A tangent, written t', is the derivative along a direction in which the weights move; pixel and slope stay chosen, as
both are constant nearly everywhere. With C = mean(y') and D = mean(x y'):

  x' = r (y' - C - x D),  r' = -r r D,  z' = scale' x + scale x' + offset',
  A' = sum(u'),  B' = sum(u' x + u x'),
  dy' = r (scale' - scale r D) q + scale r (u' - A' / N - x' B / N - x B' / N).

Convolutions are linear in the input and in the weight, so their tangents are sums of two. A convolution's bias moves
nothing behind a normalisation; there is none here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional

PATCH = 32
"""Numbers of a patch of an image: 3 x 3 pixels of 3 channels, and zeros."""


@dataclass
class Block:
    """What a block computes on its way forward, and then back.

    `y` (tasks, n, h, w, C), `pooled`, `chosen` and `kept` (tasks, n, h // 2, w // 2, C): its output, the pixel of each
    window (0 to 3, row by row; uint8) and y there. `statistics` (tasks, 4, C): m, r, scale r and offset - m scale r.
    `gradient` is that of `pooled`, `dy` as above. Maps have one type, statistics float32 or more.
    """

    inputs: Tensor
    y: Tensor
    statistics: Tensor
    pooled: Tensor
    chosen: Tensor
    kept: Tensor
    gradient: Tensor | None = None
    dy: Tensor | None = None


@dataclass
class Tangent:
    """Derivatives of a block along a direction: of `y`, of `pooled`, of `kept`; `moments` (tasks, 2, C) are C and D."""

    y: Tensor
    moments: Tensor
    pooled: Tensor
    kept: Tensor


class Operations(Protocol):
    """Weights, `norm` (offsets and scales) and `sums` may be views into larger tensors, with tasks as their first axis.

    `norm`, `norm_tangent` and `sums` are (tasks, 2, C): offset and scale, or their gradients A and B.
    """

    def cut_patches(self, images: Tensor) -> Tensor:
        """(tasks, n, h, w, PATCH) of images (tasks, n, 3, h, w), in the type of maps.

        A patch has the 3 rows, their 3 columns and their 3 channels around its pixel, then zeros.
        """

    def run(self, inputs: Tensor, weight: Tensor, norm: Tensor, epsilon: float, slope: float) -> Block:
        """A block of its input."""

    def go_back(self, block: Block, gradient: Tensor, slope: float, sums: Tensor) -> Tensor:
        """From the gradient of the block's output, which the block keeps: dy, which it keeps too, and `sums`."""

    def weigh(self, inputs: Tensor, dy: Tensor, result: Tensor) -> None:
        """Write the gradient of a convolution's weight."""

    def transpose(self, dy: Tensor, weight: Tensor) -> Tensor:
        """The gradient of a convolution's input."""

    def run_tangent(
        self,
        block: Block,
        inputs: Tensor | None,
        weight: Tensor,
        weight_tangent: Tensor,
        norm_tangent: Tensor,
        slope: float,
    ) -> Tangent:
        """Along a direction; `inputs` is the tangent of the block's input, None where that does not move."""

    def go_back_tangent(
        self,
        block: Block,
        tangent: Tangent,
        gradient: Tensor,
        norm_tangent: Tensor,
        slope: float,
        sums: Tensor,
        sums_tangent: Tensor,
    ) -> Tensor:
        """From the tangent of the gradient of the block's output, and from `sums`: dy', and `sums_tangent`."""

    def weigh_tangent(self, block: Block, inputs: Tensor | None, dy: Tensor, result: Tensor) -> None:
        """Write the tangent of the gradient of the weight, from those of the input and of dy."""

    def transpose_tangent(self, block: Block, dy: Tensor, weight: Tensor, weight_tangent: Tensor) -> Tensor:
        """The tangent of the gradient of the input."""


class TorchOperations:
    """The operations in torch, on any device; maps are of `dtype`, or else of the images'.

    The kernels are checked against them.

    >>> images = torch.arange(6.0).view(1, 1, 3, 1, 2)
    >>> TorchOperations().cut_patches(images)[0, 0, 0, 0].tolist()[12:18]
    [0.0, 2.0, 4.0, 1.0, 3.0, 5.0]
    """

    def __init__(self, dtype: torch.dtype | None = None) -> None:
        self.dtype = dtype

    def cut_patches(self, images: Tensor) -> Tensor:
        """As in `Operations`."""
        near = functional.pad(images, (1, 1, 1, 1)).unfold(3, 3, 1).unfold(4, 3, 1)
        return functional.pad(near.permute(0, 1, 3, 4, 5, 6, 2).flatten(4), (0, PATCH - 27)).to(
            self.dtype or images.dtype
        )

    def run(self, inputs: Tensor, weight: Tensor, norm: Tensor, epsilon: float, slope: float) -> Block:
        """As in `Operations`."""
        y = _convolve(inputs, weight)
        wide = y.to(norm.dtype)
        variance, mean = torch.var_mean(wide, (1, 2, 3), correction=0)
        inverse = (variance + epsilon).rsqrt()
        scale = norm[:, 1] * inverse
        statistics = torch.stack([mean, inverse, scale, norm[:, 0] - mean * scale], 1)
        best, chosen = _cut_windows(wide * _spread(scale) + _spread(statistics[:, 3])).max(0)
        pooled = torch.where(best > 0, best, best * slope).to(y.dtype)
        return Block(inputs, y, statistics, pooled, chosen.to(torch.uint8), _choose(y, chosen))

    def go_back(self, block: Block, gradient: Tensor, slope: float, sums: Tensor) -> Tensor:
        """As in `Operations`."""
        block.gradient = gradient
        own = _activate_gradient(block, gradient, slope)
        sums[:, 0] = own.sum((1, 2, 3))
        sums[:, 1] = (own * _normalise(block.kept, block.statistics)).sum((1, 2, 3))
        block.dy = (_spread(block.statistics[:, 2]) * _centre(block, own, sums)).to(gradient.dtype)
        return block.dy

    def weigh(self, inputs: Tensor, dy: Tensor, result: Tensor) -> None:
        """As in `Operations`."""
        for tap in range(result.shape[1]):
            near, wide = (one.to(result.dtype) for one in (_shift(inputs, tap, result.shape[1]), dy))
            result[:, tap] = torch.einsum("tnhwc,tnhwd->tcd", near, wide)

    def transpose(self, dy: Tensor, weight: Tensor) -> Tensor:
        """As in `Operations`."""
        return _convolve(dy, weight.flip(1).mT)

    def run_tangent(
        self,
        block: Block,
        inputs: Tensor | None,
        weight: Tensor,
        weight_tangent: Tensor,
        norm_tangent: Tensor,
        slope: float,
    ) -> Tangent:
        """As in `Operations`."""
        y = _convolve(block.inputs, weight_tangent)
        if inputs is not None:
            y = y + _convolve(inputs, weight)
        wide, statistics = y.to(block.statistics.dtype), block.statistics
        products = _normalise(block.y, statistics) * wide
        moments = torch.stack([wide.mean((1, 2, 3)), products.mean((1, 2, 3))], 1)
        kept = _choose(y, block.chosen)
        scale = _spread(statistics[:, 2] / statistics[:, 1])
        z_tangent = scale * _normalise_tangent(block.kept, kept, statistics, moments) + _spread(norm_tangent[:, 0])
        z_tangent = z_tangent + _spread(norm_tangent[:, 1]) * _normalise(block.kept, statistics)
        return Tangent(y, moments, _activate_gradient(block, z_tangent, slope).to(y.dtype), kept)

    def go_back_tangent(
        self,
        block: Block,
        tangent: Tangent,
        gradient: Tensor,
        norm_tangent: Tensor,
        slope: float,
        sums: Tensor,
        sums_tangent: Tensor,
    ) -> Tensor:
        """As in `Operations`."""
        assert block.gradient is not None
        inverse, scale = block.statistics[:, 1], block.statistics[:, 2]
        count = block.y[0, ..., 0].numel()
        own, own_tangent = (_activate_gradient(block, one, slope) for one in (block.gradient, gradient))
        kept = _normalise(block.kept, block.statistics)
        kept_tangent = _normalise_tangent(block.kept, tangent.kept, block.statistics, tangent.moments)
        sums_tangent[:, 0] = own_tangent.sum((1, 2, 3))
        sums_tangent[:, 1] = (own_tangent * kept + own * kept_tangent).sum((1, 2, 3))
        x_tangent = _normalise_tangent(block.y, tangent.y, block.statistics, tangent.moments)
        second = _centre(block, own_tangent, sums_tangent) - x_tangent * _spread(sums[:, 1] / count)
        first = inverse * (norm_tangent[:, 1] - scale * tangent.moments[:, 1])
        return (_spread(first) * _centre(block, own, sums) + _spread(scale) * second).to(gradient.dtype)

    def weigh_tangent(self, block: Block, inputs: Tensor | None, dy: Tensor, result: Tensor) -> None:
        """As in `Operations`."""
        self.weigh(block.inputs, dy, result)
        if inputs is not None:
            assert block.dy is not None
            other = torch.empty_like(result)
            self.weigh(inputs, block.dy, other)
            result += other

    def transpose_tangent(self, block: Block, dy: Tensor, weight: Tensor, weight_tangent: Tensor) -> Tensor:
        """As in `Operations`."""
        assert block.dy is not None
        return self.transpose(dy, weight) + self.transpose(block.dy, weight_tangent)


def _spread(values: Tensor) -> Tensor:
    """(tasks, C) beside maps."""
    return values[:, None, None, None]


def _shift(maps: Tensor, tap: int, taps: int) -> Tensor:
    """What a tap of a convolution sees at every pixel."""
    if taps == 1:
        return maps
    height, width = maps.shape[2:4]
    padded = functional.pad(maps, (0, 0, 1, 1, 1, 1))
    return padded[:, :, tap // 3 : tap // 3 + height, tap % 3 : tap % 3 + width]


def _convolve(inputs: Tensor, weight: Tensor) -> Tensor:
    taps, wide = weight.shape[1], torch.promote_types(inputs.dtype, torch.float32)
    pairs = [(_shift(inputs, tap, taps).to(wide), weight[:, tap].to(wide)) for tap in range(taps)]
    return torch.stack([torch.einsum("tnhwc,tcd->tnhwd", *pair) for pair in pairs]).sum(0).to(inputs.dtype)


def _cut_windows(maps: Tensor) -> Tensor:
    """(4, tasks, n, h // 2, w // 2, C)."""
    tasks, count, height, width, channels = maps.shape
    height, width = height // 2, width // 2
    parts = maps[:, :, : 2 * height, : 2 * width].reshape(tasks, count, height, 2, width, 2, channels)
    return parts.permute(3, 5, 0, 1, 2, 4, 6).flatten(0, 1)


def _choose(maps: Tensor, chosen: Tensor) -> Tensor:
    return _cut_windows(maps).gather(0, chosen.long()[None])[0]


def _place(block: Block, values: Tensor) -> Tensor:
    """Values of windows at their chosen pixels, 0 elsewhere."""
    tasks, count, height, width, channels = values.shape
    parts = torch.stack([torch.where(block.chosen == number, values, 0) for number in range(4)])
    parts = parts.view(2, 2, *values.shape).permute(2, 3, 4, 0, 5, 1, 6)
    maps = parts.reshape(tasks, count, 2 * height, 2 * width, channels)
    return functional.pad(maps, (0, 0, 0, block.y.shape[3] - 2 * width, 0, block.y.shape[2] - 2 * height))


def _normalise(maps: Tensor, statistics: Tensor) -> Tensor:
    return (maps.to(statistics.dtype) - _spread(statistics[:, 0])) * _spread(statistics[:, 1])


def _normalise_tangent(maps: Tensor, tangent: Tensor, statistics: Tensor, moments: Tensor) -> Tensor:
    x = _normalise(maps, statistics)
    return _spread(statistics[:, 1]) * (
        tangent.to(statistics.dtype) - _spread(moments[:, 0]) - x * _spread(moments[:, 1])
    )


def _activate_gradient(block: Block, gradient: Tensor, slope: float) -> Tensor:
    """What reaches z of a gradient, or what leaves it of a tangent, at the chosen pixels."""
    score = block.kept.to(block.statistics.dtype) * _spread(block.statistics[:, 2]) + _spread(block.statistics[:, 3])
    wide = gradient.to(score.dtype)
    return torch.where(score > 0, wide, wide * slope)


def _centre(block: Block, own: Tensor, sums: Tensor) -> Tensor:
    """Of windows' gradients u: u - A / N - x B / N."""
    means = sums / block.y[0, ..., 0].numel()
    return _place(block, own) - _spread(means[:, 0]) - _normalise(block.y, block.statistics) * _spread(means[:, 1])
