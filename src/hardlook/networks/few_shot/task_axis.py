"""Inner loops of Conv64F on a GPU: tasks are an axis of every tensor, and second order needs no second graph.

All parameters of a task are one row. A step on the supports' loss L is row <- row - rates * grad L(row). Going back
through it, the gradient g of the outer loss by the row becomes g - H (rates * g), where H are L's second derivatives:
as H is symmetric, H v is the tangent of grad L along v. So every operation of a step is computed once more with its
tangent (`hardlook.networks.kernels.task_convolutions` has the formulas), and all that is kept of a step are its maps.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from itertools import groupby
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from hardlook.networks.backbones.convolutional import Conv32F, Conv64F, ConvolutionBlock
from hardlook.networks.few_shot.method import Episodes
from hardlook.networks.gpu import is_observed, read_tf32
from hardlook.networks.kernels.task_convolutions import PATCH, Block, Operations, Tangent
from hardlook.networks.kernels.task_kernels import find_operations

ALIGNED = 16
"""Every tensor in a row starts at a multiple of it, as kernels read several numbers at once."""
LONGEST = 2**31
"""The maps of a task have fewer numbers than this: kernels count them with 32 bits."""


def choose_operations(network: nn.Module, backbone: Conv64F, *images: Tensor) -> Operations | None:
    """What computes tasks of images (tasks, n, 3, h, w), each with its own weights, by statistics of its n images.

    None where a part of the network is not as `TaskRows` reads it, something listens to it, or there are no kernels.
    """
    if is_observed() or torch._C._are_functorch_transforms_active() or not _is_plain(network, backbone):
        return None
    if {one.dtype for one in network.parameters()} != {torch.float32}:
        return None
    channels, dtypes = find_channels(backbone), set()
    for one in images:
        dtypes.add(torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else one.dtype)
        if not one.is_cuda or one.requires_grad or min(one.shape) < 1 or min(one.shape[-2:]) < 16:
            return None
        if one.shape[2] != 3 or one[0, :, 0].numel() * max(channels, PATCH) >= LONGEST:
            return None
    if channels not in (16, 32, 64) or dtypes not in ({torch.float32}, {torch.bfloat16}):
        return None
    return find_operations(images[0].device, dtypes.pop(), channels, read_tf32().convolutions)


def find_channels(backbone: Conv64F) -> int:
    """Filters of every block."""
    return len(backbone.get_submodule("layer1")[0].weight)  # type: ignore[index]


def _is_plain(network: nn.Module, backbone: Conv64F) -> bool:
    """Whether the backbone is a Conv64F that pools four times, and nothing listens to a module of the network."""
    if type(backbone) not in (Conv64F, Conv32F) or backbone.output != "vectors":
        return False
    blocks = [name for number in (1, 2, 3, 4) for name in (f"layer{number}", f"layer{number}_maxpool")]
    if list(backbone._modules) != [name for name in blocks if name in backbone._modules]:
        return False
    own = list(network.parameters())
    if len(own) != len(list(network.named_parameters(remove_duplicate=False))):
        return False  # one tensor in two places
    if nn.modules.module._has_any_global_hook() or any(map(_is_changed, network.modules())):  # type: ignore[no-untyped-call]
        return False
    for number in (1, 2, 3, 4):
        block = backbone.get_submodule(f"layer{number}")
        layers: list[Any] = list(block.children())
        if f"layer{number}_maxpool" in backbone._modules:
            layers.append(backbone._modules[f"layer{number}_maxpool"])
        if type(block) is not ConvolutionBlock or len(layers) != 4:
            return False
        convolution, norm, activation, pooling = layers
        if (
            type(convolution) is not nn.Conv2d
            or (convolution.kernel_size, convolution.stride, convolution.padding) != ((3, 3), (1, 1), (1, 1))
            or (convolution.dilation, convolution.groups, convolution.padding_mode) != ((1, 1), 1, "zeros")
            or convolution.in_channels != (3 if number == 1 else convolution.out_channels)
            or type(norm) is not nn.BatchNorm2d
            or not norm.affine
            or type(activation) not in (nn.ReLU, nn.LeakyReLU)
            or getattr(activation, "negative_slope", 0.0) < 0
            or type(pooling) is not nn.MaxPool2d
            or (pooling.kernel_size, pooling.stride, pooling.padding, pooling.dilation) != (2, 2, 0, 1)
            or pooling.ceil_mode
            or pooling.return_indices
        ):
            return False
    return True


def _is_changed(module: nn.Module) -> bool:
    hooks = module._forward_hooks, module._forward_pre_hooks, module._backward_hooks, module._backward_pre_hooks
    return any(hooks) or "forward" in vars(module)


def adapt_and_score(
    operations: Operations,
    backbone: Conv64F,
    linear: nn.Linear,
    episodes: Episodes,
    *,
    steps: int,
    rates: Callable[[nn.Parameter], float],
    first_order: bool,
) -> Tensor:
    """(tasks, queries, ways) scores of `linear` after gradient steps on each task's support, as in `inner_loops`.

    Rates are numbers: a rate that is learned gets no gradient here.
    """
    with torch.autocast(episodes.query.device.type, enabled=False):
        network = TaskRows(backbone, linear, episodes.query)
        start = network.pack()
        targets = functional.one_hot(episodes.support_labels(), linear.out_features).to(start.dtype)
        loop = _Loop(
            network,
            operations,
            episodes.support.flatten(1, 2),
            episodes.query,
            targets,
            network.pack_rates(rates, start),
            steps,
            first_order,
            torch.is_grad_enabled() and start.requires_grad,
        )
        features, rows = _Adapt.apply(start, loop)  # type: ignore[no-untyped-call]
        weight, bias = network.view_linear(rows)
        scores: Tensor = torch.baddbmm(bias[:, None], features, weight.mT)
    return scores


def embed(operations: Operations, backbone: Conv64F, images: Tensor) -> Tensor:
    """(tasks, n, d) features of images (tasks, n, 3, h, w); the images of a task are a batch of their own."""
    with torch.autocast(images.device.type, enabled=False):
        network = TaskRows(backbone, None, images)
        start = network.pack()
        nothing = start.new_empty(0)
        keeps = torch.is_grad_enabled() and start.requires_grad
        loop = _Loop(network, operations, images[:, :0], images, nothing, nothing, 0, False, keeps)
        features, _ = _Adapt.apply(start, loop)  # type: ignore[no-untyped-call]
        pixels: Tensor = features.view(*features.shape[:2], -1, network.channels)
        return pixels.mT.flatten(2)


@dataclass(frozen=True)
class Layer:
    """A block: where its weight (taps, inputs, C) and its norm (offset, scale) are in a row, and its constants."""

    weight: slice
    norm: slice
    shape: tuple[int, int, int]
    epsilon: float
    slope: float

    def view_weight(self, rows: Tensor) -> Tensor:
        """(tasks, taps, inputs, C) of rows (tasks, P)."""
        return rows[:, self.weight].view(-1, *self.shape)

    def view_norm(self, rows: Tensor) -> Tensor:
        """(tasks, 2, C) of rows (tasks, P): offsets and scales."""
        return rows[:, self.norm].view(-1, 2, self.shape[2])


@dataclass
class Pass:
    """What a pass has computed of each block, and the gradient of the loss by the scores where it had one."""

    blocks: list[Block]
    errors: Tensor | None = None

    def list_tensors(self) -> list[Tensor | None]:
        """All that was computed, from which `from_tensors` makes the pass again."""
        return [self.errors, *(getattr(block, one.name) for block in self.blocks for one in fields(Block))]

    @classmethod
    def from_tensors(cls, tensors: Sequence[Any]) -> Pass:
        """The pass of such a list."""
        errors, *rest = tensors
        size = len(fields(Block))
        return cls([Block(*rest[first : first + size]) for first in range(0, len(rest), size)], errors)

    @property
    def features(self) -> Tensor:
        """(tasks, n, d) in the type of the statistics; all channels of a pixel, then those of the next."""
        last = self.blocks[-1]
        return last.pooled.flatten(2).to(last.statistics.dtype)


class TaskRows:
    """The parameters of a Conv64F, and of a linear layer behind it, as rows (tasks, P), and what is computed of them.

    `parts` are the parameters in the order of a row, each with what brings its numbers into their order there, and how
    many zeros follow.
    """

    def __init__(self, backbone: Conv64F, linear: nn.Linear | None, images: Tensor) -> None:
        self.parts: list[tuple[nn.Parameter, Callable[[Tensor], Tensor], int]] = []
        self.layers: list[Layer] = []
        self.size = 0
        self.channels = find_channels(backbone)
        biases = []
        for number in (1, 2, 3, 4):
            layers: list[Any] = list(backbone.get_submodule(f"layer{number}").children())
            convolution, norm, activation = layers[:3]
            shape = (1, PATCH, self.channels) if number == 1 else (9, self.channels, self.channels)
            weight = self._add(convolution.weight, _arrange_patches if number == 1 else _arrange_taps, shape)
            offset = self._add(norm.bias, torch.flatten, (self.channels,), followed=True)
            scale = self._add(norm.weight, torch.flatten, (self.channels,))
            slope = float(getattr(activation, "negative_slope", 0.0))
            self.layers.append(Layer(weight, slice(offset.start, scale.stop), shape, float(norm.eps), slope))
            biases += [] if convolution.bias is None else [convolution.bias]
        self.linear: tuple[slice, slice, int] | None = None
        if linear is not None:
            sides = [side // 16 for side in images.shape[-2:]]
            arrange = functools.partial(_arrange_pixels, sides=sides)
            weight = self._add(linear.weight, arrange, linear.weight.shape)
            bias = self._add(linear.bias, torch.flatten, linear.bias.shape)
            self.linear = weight, bias, linear.out_features
        # Behind a normalisation they move nothing: their gradients are 0, exactly.
        for one in biases:
            self._add(one, torch.flatten, one.shape)

    def _add(
        self, parameter: Any, arrange: Callable[[Tensor], Tensor], shape: tuple[int, ...], followed: bool = False
    ) -> slice:
        first, count = self.size, math.prod(shape)
        padding = 0 if followed else -(first + count) % ALIGNED
        self.size += count + padding
        self.parts.append((parameter, arrange, padding))
        return slice(first, first + count)

    def pack(self) -> Tensor:
        """(P,) the parameters as a row, through which gradients flow back to them."""
        return torch.cat([functional.pad(arrange(one), (0, padding)) for one, arrange, padding in self.parts])

    def pack_rates(self, rates: Callable[[nn.Parameter], float], like: Tensor) -> Tensor:
        """(P,) the learning rate of every number of a row; 0 for parameters without gradients."""
        lengths = [arrange(one.detach()).numel() + padding for one, arrange, padding in self.parts]
        found = [rates(one) if one.requires_grad else 0.0 for one, *_ in self.parts]
        runs = groupby(zip(found, lengths, strict=True), lambda pair: pair[0])
        return torch.cat([like.new_full((sum(length for _, length in run),), rate) for rate, run in runs])

    def view_linear(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Weight (tasks, ways, d) and bias (tasks, ways) of the linear layer."""
        assert self.linear is not None
        weight, bias, ways = self.linear
        return rows[:, weight].view(len(rows), ways, -1), rows[:, bias]

    def run(self, operations: Operations, patches: Tensor, rows: Tensor) -> Pass:
        """All blocks, of patches (tasks, n, h, w, PATCH)."""
        rounded, maps, blocks = rows.to(patches.dtype), patches, []
        for layer in self.layers:
            weight, norm = layer.view_weight(rounded), layer.view_norm(rows)
            blocks.append(operations.run(maps, weight, norm, layer.epsilon, layer.slope))
            maps = blocks[-1].pooled
        return Pass(blocks)

    def go_back(self, operations: Operations, passed: Pass, rows: Tensor, gradient: Tensor, result: Tensor) -> None:
        """Write the gradients of the blocks' parameters into rows, from that of the features (tasks, n, d)."""
        last = passed.blocks[-1].pooled
        rounded, gradient = rows.to(last.dtype), gradient.to(last.dtype).reshape(last.shape)
        for number in (3, 2, 1, 0):
            layer, block = self.layers[number], passed.blocks[number]
            dy = operations.go_back(block, gradient, layer.slope, layer.view_norm(result))
            operations.weigh(block.inputs, dy, layer.view_weight(result))
            if number:
                gradient = operations.transpose(dy, layer.view_weight(rounded))
            else:
                block.dy = None  # nothing else needs the largest of all maps

    def differentiate(
        self, operations: Operations, patches: Tensor, rows: Tensor, targets: Tensor
    ) -> tuple[Pass, Tensor]:
        """A pass of supports with targets (n, ways), and the gradients of their mean cross-entropy as rows."""
        passed = self.run(operations, patches, rows)
        (weight, bias), features = self.view_linear(rows), passed.features
        shares = torch.baddbmm(bias[:, None], features, weight.mT).softmax(-1)
        errors = passed.errors = (shares - targets) / len(targets)
        result = torch.zeros_like(rows)
        weight_gradient, bias_gradient = self.view_linear(result)
        weight_gradient.copy_(errors.mT @ features)
        bias_gradient.copy_(errors.sum(1))
        self.go_back(operations, passed, rows, errors @ weight, result)
        return passed, result

    def differentiate_along(
        self,
        operations: Operations,
        passed: Pass,
        rows: Tensor,
        gradients: Tensor,
        direction: Tensor,
        targets: Tensor,
    ) -> Tensor:
        """The tangent of what `differentiate` gave, along a direction: the loss's second derivatives times it."""
        dtype = passed.blocks[0].y.dtype
        rounded, direction_rounded = rows.to(dtype), direction.to(dtype)
        tangents: list[Tangent] = []
        maps: Tensor | None = None
        for layer, block in zip(self.layers, passed.blocks, strict=True):
            weights = layer.view_weight(rounded), layer.view_weight(direction_rounded)
            tangents.append(operations.run_tangent(block, maps, *weights, layer.view_norm(direction), layer.slope))
            maps = tangents[-1].pooled
        assert maps is not None
        result = torch.zeros_like(rows)
        features = maps.flatten(2).to(rows.dtype)
        gradient = self._differentiate_linear_along(passed, features, rows, direction, targets, result)
        gradient = gradient.to(dtype).reshape(maps.shape)
        for number in (3, 2, 1, 0):
            layer, block = self.layers[number], passed.blocks[number]
            dy = operations.go_back_tangent(
                block,
                tangents[number],
                gradient,
                layer.view_norm(direction),
                layer.slope,
                layer.view_norm(gradients),
                layer.view_norm(result),
            )
            before = tangents[number - 1].pooled if number else None
            operations.weigh_tangent(block, before, dy, layer.view_weight(result))
            if number:
                weights = layer.view_weight(rounded), layer.view_weight(direction_rounded)
                gradient = operations.transpose_tangent(block, dy, *weights)
        return result

    def _differentiate_linear_along(
        self, passed: Pass, features_tangent: Tensor, rows: Tensor, direction: Tensor, targets: Tensor, result: Tensor
    ) -> Tensor:
        """The tangent of the gradient of the features; writes those of the linear layer's gradients."""
        errors, features = passed.errors, passed.features
        assert errors is not None
        (weight, _), (weight_tangent, bias_tangent) = self.view_linear(rows), self.view_linear(direction)
        shares = errors * len(targets) + targets
        scores = torch.baddbmm(bias_tangent[:, None], features_tangent, weight.mT) + features @ weight_tangent.mT
        moved = shares * (scores - (shares * scores).sum(-1, keepdim=True)) / len(targets)
        weight_result, bias_result = self.view_linear(result)
        weight_result.copy_(torch.baddbmm(moved.mT @ features, errors.mT, features_tangent))
        bias_result.copy_(moved.sum(1))
        return torch.baddbmm(moved @ weight, errors, weight_tangent)


def _arrange_taps(weight: Tensor) -> Tensor:
    """(C, inputs, 3, 3) as (taps, inputs, C), flat."""
    return weight.permute(2, 3, 1, 0).flatten()


def _arrange_patches(weight: Tensor) -> Tensor:
    """(C, 3, 3, 3) as (PATCH, C), flat."""
    return functional.pad(weight.permute(2, 3, 1, 0).reshape(27, -1), (0, 0, 0, PATCH - 27)).flatten()


def _arrange_pixels(weight: Tensor, sides: list[int]) -> Tensor:
    """(ways, C h w) as (ways, h, w, C), flat."""
    return weight.view(len(weight), -1, *sides).permute(0, 2, 3, 1).flatten()


@dataclass(frozen=True)
class _Loop:
    """An inner loop: `keeps` says whether anything goes back through it."""

    network: TaskRows
    operations: Operations
    support: Tensor
    query: Tensor
    targets: Tensor
    rates: Tensor
    steps: int
    first_order: bool
    keeps: bool


class _Adapt(torch.autograd.Function):
    """Features of the queries, and the rows of all tasks after the steps, from the row at their start."""

    @staticmethod
    def forward(context, start, loop: _Loop):  # type: ignore[no-untyped-def]
        network, operations = loop.network, loop.operations
        rows = start.repeat(len(loop.query), 1)
        steps = []
        patches = operations.cut_patches(loop.support) if loop.steps else loop.support
        for _ in range(loop.steps):
            passed, gradients = network.differentiate(operations, patches, rows, loop.targets)
            if loop.keeps and not loop.first_order:
                steps.append((passed, rows, gradients))
            rows = torch.addcmul(rows, loop.rates, gradients, value=-1)
        asked = network.run(operations, operations.cut_patches(loop.query), rows)
        if loop.keeps:
            # As saved tensors they are freed by the backward pass.
            context.loop = loop
            kept = [tensor for passed, *more in steps for tensor in (*more, *passed.list_tensors())]
            context.save_for_backward(rows, *asked.list_tensors(), *kept)
        return asked.features.clone(), rows

    @staticmethod
    @once_differentiable
    def backward(context, features_gradient, rows_gradient):  # type: ignore[no-untyped-def]
        loop = context.loop
        rows, *saved = context.saved_tensors
        size = 1 + len(fields(Block)) * len(loop.network.layers)
        asked, steps = Pass.from_tensors(saved[:size]), saved[size:]
        gradient = torch.zeros_like(rows)
        with torch.autocast(rows.device.type, enabled=False):
            loop.network.go_back(loop.operations, asked, rows, features_gradient, gradient)
            gradient += rows_gradient
            for first in reversed(range(0, len(steps), 2 + size)):
                before, gradients, *tensors = steps[first : first + 2 + size]
                passed = Pass.from_tensors(tensors)
                along = gradient * loop.rates
                gradient = gradient - loop.network.differentiate_along(
                    loop.operations, passed, before, gradients, along, loop.targets
                )
        return gradient.sum(0), None
