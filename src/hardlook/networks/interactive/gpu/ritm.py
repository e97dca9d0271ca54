"""RITM's HRNet for inference on a GPU: the same logits up to rounding, with fewer passes over memory.

Batch norms are folded into the convolutions before them. Every layer's sum, activation and the zeros of padded pictures
are written at once; with Triton's kernels together with the convolution, whose channels then lie last in memory.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.interactive.gpu.convolutions import Folded, convolve, enlarge, fold, load_kernels, pack
from hardlook.networks.interactive.hrnet import BasicBlock, Bottleneck, ExchangeModule, Frame, HRNet, gather_object
from hardlook.networks.interactive.ritm import MEAN, RITM, STD, Scale


class FoldedRITM:
    """Logits of a `RITM` in evaluation mode, whose weights are read once: their later changes are not seen.

    With `kernels` convolutions are Triton's where it is there and the maps are float32, else torch's.
    """

    takes_sizes = True

    def __init__(self, network: RITM, *, kernels: bool = True) -> None:
        found = network.logit_layer.weight
        self._kernels = load_kernels(found.device) if kernels and found.dtype == torch.float32 else None
        # The kernel loads four numbers at once.
        self._multiple = 1 if self._kernels is None else 4
        self._with_prev_mask, extractor = network.with_prev_mask, network.feature_extractor
        self._constants = torch.tensor((MEAN, STD), dtype=torch.float32, device=found.device).to(found.dtype)
        first, active, second, scale = network.maps_transform
        assert isinstance(scale, Scale)
        self._maps = self._fold(first), self._fold(second, factor=scale.scale.detach().abs())
        self._slope = active.negative_slope if isinstance(active, nn.LeakyReLU) else 0.0
        self._first = self._fold(extractor.conv1, extractor.bn1)
        self._second = self._fold(extractor.conv2, extractor.bn2)
        self._layer1 = [self._fold_bottleneck(block) for block in extractor.layer1]
        self._transition1 = [self._fold_chain(one) for one in extractor.transition1]
        self._new_branches = [self._fold_chain(list(one)[-1]) for one in (extractor.transition2, extractor.transition3)]
        self._stages = [
            [self._fold_exchange(module) for module in stage]
            for stage in (extractor.stage2, extractor.stage3, extractor.stage4)
        ]
        self._fold_heads(extractor)

    def _fold(self, convolution: Any, norm: Any = None, factor: Tensor | None = None) -> Folded:
        return fold(convolution, norm, factor=factor, multiple=self._multiple)

    def _fold_chain(self, layers: nn.Module) -> list[tuple[Folded, float]]:
        """Convolutions with their activations, of a sequence of convolution, batch norm and perhaps ReLU."""
        found: list[tuple[Folded, float]] = []
        flat = [one for one in layers.modules() if isinstance(one, nn.Conv2d | nn.BatchNorm2d | nn.ReLU)]
        for place, layer in enumerate(flat):
            if isinstance(layer, nn.Conv2d):
                active = place + 2 < len(flat) and isinstance(flat[place + 2], nn.ReLU)
                found.append((self._fold(layer, flat[place + 1]), 0.0 if active else 1.0))
        return found

    def _fold_bottleneck(self, block: nn.Module) -> tuple[Folded, Folded, Folded, Folded | None]:
        assert isinstance(block, Bottleneck)
        shortcut = None if block.downsample is None else self._fold(block.downsample[0], block.downsample[1])
        pairs = ((block.conv1, block.bn1), (block.conv2, block.bn2), (block.conv3, block.bn3))
        one, two, three = (self._fold(*pair) for pair in pairs)
        return one, two, three, shortcut

    def _fold_exchange(self, module: nn.Module) -> tuple[Any, Any]:
        assert isinstance(module, ExchangeModule)
        branches = [[self._fold_block(block) for block in blocks] for blocks in _rows(module.branches)]
        moves = [[self._fold_chain(layer) for layer in layers] for layers in _rows(module.fuse_layers)]
        return branches, moves

    def _fold_block(self, block: nn.Module) -> tuple[Folded, Folded]:
        assert isinstance(block, BasicBlock)
        return self._fold(block.conv1, block.bn1), self._fold(block.conv2, block.bn2)

    def _fold_heads(self, extractor: HRNet) -> None:
        """The layers after the branches are joined: their inputs have zeros between the branches, as these have."""
        spread = [extractor.width * 2**place for place in range(4)]
        aux = list(extractor.aux_head)
        self._aux = self._spread(self._fold(aux[0], aux[1]), aux[0], spread), self._fold(aux[3])
        pixels = list(extractor.conv3x3_ocr)
        self._pixels = self._spread(self._fold(pixels[0], pixels[1]), pixels[0], spread)
        head = extractor.ocr_distri_head
        context = head.object_context_block
        self._context = [self._fold(*_find_pair(one)) for one in (context.f_down, context.f_up)]
        joined, norm = _find_pair(head.conv_bn_dropout)
        mix = fold(joined, norm)
        # The context is one vector for all pixels of a picture: its product is a shift.
        shift, rest = mix.weight.chunk(2, 1)
        self._shift = pack(shift, mix.bias, joined, self._multiple)
        self._mix = pack(rest, mix.bias, joined, self._multiple)
        self._logits = self._fold(extractor.cls_head)

    def _spread(self, layer: Folded, convolution: Any, widths: list[int]) -> Folded:
        """The layer for inputs of branches whose channels have been filled up."""
        parts = torch.split(layer.weight[:, : sum(widths)], widths, 1)
        filled = [functional.pad(part, (0, 0, 0, 0, 0, -part.shape[1] % self._multiple)) for part in parts]
        return pack(torch.cat(filled, 1), layer.bias, convolution, self._multiple)

    def __call__(self, inputs: Tensor, maps: Tensor, sizes: Tensor | None = None) -> Tensor:
        """Logits (B, 1, H, W) of inputs (B, C, H, W) as of `RITM` and the clicks' maps (B, 2, H, W)."""
        size = (inputs.shape[2], inputs.shape[3])
        if sizes is None and self._kernels is not None and not torch.is_autocast_enabled(inputs.device.type):
            sides = [torch.full((len(inputs),), side, dtype=torch.int64, device=inputs.device) for side in size]
            sizes = torch.stack(sides, 1)  # the kernels ask for them
        frame = None if sizes is None else Frame(sizes, size)
        picture = (inputs[:, :3] - self._constants[0, :, None, None]) / self._constants[1, :, None, None]
        given = torch.cat([inputs[:, 3:4], maps], 1) if self._with_prev_mask else maps
        picture, given = (self._fill(one, frame) for one in (picture, given))
        moved = self._run(given, self._maps[0], frame, self._slope)
        x = self._run(picture, self._first, frame, 0)
        x = self._run(moved, self._maps[1], frame, added=x)
        x = self._run(x, self._second, frame, 0)
        for one, two, three, shortcut in self._layer1:
            inner = self._run(self._run(x, one, frame, 0), two, frame, 0)
            x = self._run(inner, three, frame, 0, x if shortcut is None else self._run(x, shortcut, frame))
        branches = [self._run_chain(x, chain, frame) for chain in self._transition1]
        for place, stage in enumerate(self._stages):
            if place:
                branches.append(self._run_chain(branches[-1], self._new_branches[place - 1], frame))
            for module in stage:
                branches = self._exchange(branches, module, frame)
        return self._finish(branches, size, frame)

    def _fill(self, x: Tensor, frame: Frame | None) -> Tensor:
        x = functional.pad(x, (0, 0, 0, 0, 0, -x.shape[1] % self._multiple))
        if torch.is_autocast_enabled(x.device.type):
            x = x.contiguous(memory_format=torch.channels_last)  # as tensor cores want half precision
        return x if frame is None else frame.clear(x)

    def _run(
        self,
        x: Tensor,
        layer: Folded,
        frame: Frame | None,
        slope: float = 1.0,
        added: Tensor | None = None,
        shift: Tensor | None = None,
    ) -> Tensor:
        return convolve(x, layer, frame, slope=slope, added=added, shift=shift, kernels=self._kernels)

    def _run_chain(
        self,
        x: Tensor,
        chain: list[tuple[Folded, float]],
        frame: Frame | None,
        added: Tensor | None = None,
        last: float | None = None,
    ) -> Tensor:
        """All convolutions; the last one adds `added` and has the slope `last`, if one is given."""
        for layer, slope in chain[:-1]:
            x = self._run(x, layer, frame, slope)
        layer, slope = chain[-1]
        return self._run(x, layer, frame, slope if last is None else last, added)

    def _exchange(self, branches: list[Tensor], module: tuple[Any, Any], frame: Frame | None) -> list[Tensor]:
        inside = []
        for x, blocks in zip(branches, module[0], strict=True):
            for one, two in blocks:
                x = self._run(self._run(x, one, frame, 0), two, frame, 0, x)
            inside.append(x)
        found = []
        for target, moves in enumerate(module[1]):
            total, size = inside[target], (inside[target].shape[2], inside[target].shape[3])
            sources = [source for source in range(len(inside)) if source != target]
            for source in sources:
                slope = 0.0 if source == sources[-1] else 1.0  # the last sum goes through ReLU
                if source < target:
                    total = self._run_chain(inside[source], moves[source], frame, total, slope)
                else:
                    coarse = self._run_chain(inside[source], moves[source], frame)
                    total = enlarge(coarse, size, frame, slope=slope, added=total, kernels=self._kernels)
            found.append(total)
        return found

    def _finish(self, branches: list[Tensor], size: tuple[int, int], frame: Frame | None) -> Tensor:
        finest = (branches[0].shape[2], branches[0].shape[3])
        coarse = [enlarge(one, finest, frame, kernels=self._kernels) for one in branches[1:]]
        joined = torch.cat([branches[0], *coarse], 1)
        aux = self._run(self._run(joined, self._aux[0], frame, 0), self._aux[1], frame)[:, :1]
        pixels = self._run(joined, self._pixels, frame, 0)
        context = gather_object(pixels, aux, frame).flatten(1)
        for layer in self._context:
            context = functional.relu(functional.linear(context, layer.weight[:, :, 0, 0], layer.bias))
        shift = functional.linear(context, self._shift.weight[:, :, 0, 0], self._shift.bias)
        mixed = self._run(pixels, self._mix, frame, 0, shift=shift)
        logits = functional.conv2d(mixed, self._logits.weight[:1], self._logits.bias[:1])
        if frame is None:
            return functional.interpolate(logits, size=size, mode="bilinear", align_corners=True)
        return frame.resize(logits, size)


def _rows(layers: nn.Module) -> list[list[nn.Module]]:
    return [list(one.children()) for one in layers.children()]


def _find_pair(layers: nn.Module) -> tuple[Any, Any]:
    """The convolution and the batch norm of a module that has one of each."""
    convolution, norm = (one for one in layers.modules() if isinstance(one, nn.Conv2d | nn.BatchNorm2d))
    return convolution, norm
