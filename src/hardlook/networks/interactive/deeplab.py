"""DeepLabV3+ on a dilated ResNet, as CDNet and GPCIS use it.

Chen et al., Encoder-Decoder with Atrous Separable Convolution for Semantic Image Segmentation, ECCV 2018; He et al.,
Deep Residual Learning for Image Recognition, CVPR 2016. Clicks enter as maps that are added after the stem.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

RATES = (12, 24, 36)
"""Dilations of the three wide convolutions of the pyramid."""

SKIP_WIDTH = 32
"""Channels of the fine maps that are joined with the coarse ones."""

STAGES = ((64, 1, 1), (128, 2, 1), (256, 1, 2), (512, 1, 4))
"""Width, stride and dilation of the stages: the last one is at 1/8 of the picture."""


def _convolution(inputs: int, outputs: int, stride: int = 1, dilation: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, 3, stride, dilation, dilation, bias=False)


def _shortcut(inputs: int, outputs: int, stride: int) -> nn.Module | None:
    if stride == 1 and inputs == outputs:
        return None
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))


class BasicBlock(nn.Module):
    """Two 3 x 3 convolutions beside a shortcut; `dilation` is that of the first, `second` that of the other."""

    expansion = 1

    def __init__(self, inputs: int, width: int, stride: int, dilation: int, second: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = _convolution(inputs, width, stride, dilation), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = _convolution(width, width, 1, second), nn.BatchNorm2d(width)
        self.downsample = _shortcut(inputs, width, stride)

    def forward(self, x: Tensor) -> Tensor:
        """(B, width, h / stride, w / stride)."""
        found = self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x)))))
        return functional.relu(found + (x if self.downsample is None else self.downsample(x)))


class Bottleneck(nn.Module):
    """1 x 1, 3 x 3 and 1 x 1 convolutions, the last with four times the channels, beside a shortcut."""

    expansion = 4

    def __init__(self, inputs: int, width: int, stride: int, dilation: int, second: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = _convolution(width, width, stride, dilation), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
        self.downsample = _shortcut(inputs, 4 * width, stride)

    def forward(self, x: Tensor) -> Tensor:
        """(B, 4 width, h / stride, w / stride)."""
        found = functional.relu(self.bn1(self.conv1(x)))
        found = self.bn3(self.conv3(functional.relu(self.bn2(self.conv2(found)))))
        return functional.relu(found + (x if self.downsample is None else self.downsample(x)))


class DilatedResNet(nn.Module):
    """A ResNet whose last two stages are dilated; with `deep_stem` three small convolutions replace the 7 x 7 one."""

    def __init__(self, blocks: Sequence[int], block: type[BasicBlock | Bottleneck], *, deep_stem: bool = False) -> None:
        super().__init__()
        self.stem_width = 128 if deep_stem else 64
        if deep_stem:
            self.conv1: nn.Module = nn.Sequential(
                *(_convolution(3, 64, 2), nn.BatchNorm2d(64), nn.ReLU()),
                *(_convolution(64, 64), nn.BatchNorm2d(64), nn.ReLU()),
                _convolution(64, 128),
            )
        else:
            self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(self.stem_width)
        inputs, self.widths = self.stem_width, []
        for number, (count, (width, stride, dilation)) in enumerate(zip(blocks, STAGES, strict=True), 1):
            # The first block of a stage still has half of the stage's dilation.
            made: list[nn.Module] = [block(inputs, width, stride, max(dilation // 2, 1), dilation)]
            inputs = width * block.expansion
            made += [block(inputs, width, 1, dilation, dilation) for _ in range(count - 1)]
            self.add_module(f"layer{number}", nn.Sequential(*made))
            self.widths.append(inputs)

    def forward(self, x: Tensor, stem: Tensor) -> list[Tensor]:
        """Maps of the four stages, at 1/4, 1/8, 1/8 and 1/8; `stem` (B, C, h, w) at 1/2 is added after the stem."""
        x = functional.relu(self.bn1(self.conv1(x))) + stem
        x = functional.max_pool2d(x, 3, 2, 1)
        found = []
        for number in (1, 2, 3, 4):
            x = self.get_submodule(f"layer{number}")(x)
            found.append(x)
        return found


RESNETS: Mapping[str, Mapping[str, Any]] = {
    "resnet34": {"blocks": (3, 4, 6, 3), "block": BasicBlock},
    "resnet50": {"blocks": (3, 4, 6, 3), "block": Bottleneck, "deep_stem": True},
}


class SeparableConvolution(nn.Module):
    """A 3 x 3 convolution of each channel, a 1 x 1 convolution, batch normalisation and ReLU."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, inputs, 3, 1, 1, groups=inputs, bias=False),
            nn.Conv2d(inputs, outputs, 1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
        )

    def forward(self, x: Tensor) -> Tensor:
        """(B, outputs, h, w)."""
        found: Tensor = self.body(x)
        return found


class SeparableHead(nn.Module):
    """`depth` separable convolutions, then one value per pixel and output."""

    def __init__(self, inputs: int, width: int, outputs: int, depth: int) -> None:
        super().__init__()
        convolutions = [SeparableConvolution(width if place else inputs, width) for place in range(depth)]
        self.layers = nn.Sequential(*convolutions, nn.Conv2d(width, outputs, 1))

    def forward(self, x: Tensor) -> Tensor:
        """(B, outputs, h, w)."""
        found: Tensor = self.layers(x)
        return found


def _pointwise(inputs: int, outputs: int) -> list[nn.Module]:
    return [nn.Conv2d(inputs, outputs, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]


class _Pooling(nn.Module):
    """The mean of all pixels, in every pixel."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.gap = nn.Sequential(nn.AdaptiveAvgPool2d(1), *_pointwise(inputs, outputs))

    def forward(self, x: Tensor) -> Tensor:
        """(B, outputs, h, w)."""
        found: Tensor = self.gap(x)
        return found.expand(-1, -1, *x.shape[2:])


class AtrousPyramid(nn.Module):
    """What lies at four distances and everywhere, mixed pixel by pixel."""

    def __init__(self, inputs: int, width: int, dropout: float) -> None:
        super().__init__()
        wide = (nn.Sequential(_convolution(inputs, width, 1, rate), nn.BatchNorm2d(width), nn.ReLU()) for rate in RATES)
        # Spelt as in the published files.
        self.concurent = nn.ModuleList([nn.Sequential(*_pointwise(inputs, width)), *wide, _Pooling(inputs, width)])
        self.project = nn.Sequential(*_pointwise(5 * width, width), nn.Dropout(dropout))

    def forward(self, x: Tensor) -> Tensor:
        """(B, width, h, w)."""
        found: Tensor = self.project(torch.cat([part(x) for part in self.concurent], 1))
        return found


class _Skip(nn.Module):
    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.skip_project = nn.Sequential(*_pointwise(inputs, SKIP_WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        """(B, 32, h, w)."""
        found: Tensor = self.skip_project(x)
        return found


class _Decoder(nn.Module):
    def __init__(self, width: int, outputs: int) -> None:
        super().__init__()
        self.block = nn.Sequential(
            SeparableConvolution(width + SKIP_WIDTH, width),
            SeparableConvolution(width, width),
            nn.Conv2d(width, outputs, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        """(B, outputs, h, w)."""
        found: Tensor = self.block(x)
        return found


class StemmedBackbone(Protocol):
    """What `DeepLab` builds on: `widths` of its stages, and a call as of `DilatedResNet`."""

    widths: Sequence[int]

    def __call__(self, x: Tensor, stem: Tensor) -> list[Tensor]:
        """Maps of the stages; `stem` is added after the stem."""


class DeepLab(nn.Module):
    """Backbone, pyramid and decoder; `width` channels inside, `outputs` at the end.

    `resnet` is resnet34, resnet50, or a module that is a `StemmedBackbone`.
    """

    def __init__(self, resnet: str | nn.Module, width: int, outputs: int, *, dropout: float) -> None:
        super().__init__()
        backbone: Any = resnet
        if isinstance(resnet, str):
            backbone = DilatedResNet(**RESNETS[resnet])
        self.backbone = backbone
        self.head = _Decoder(width, outputs)
        self.skip_project = _Skip(backbone.widths[0])
        self.aspp = AtrousPyramid(backbone.widths[-1], width, dropout)

    def encode(self, x: Tensor, stem: Tensor) -> dict[str, Tensor]:
        """`backbone_0` to `backbone_3` and `aspp` at 1/8, of a normalised picture and maps for the stem at 1/2."""
        stages = self.backbone(x, stem)
        found = {f"backbone_{place}": stage for place, stage in enumerate(stages)}
        return found | {"aspp": self.aspp(stages[-1])}

    def decode(self, coarse: Tensor, fine: Tensor) -> Tensor:
        """(B, outputs, H / 4, W / 4) of maps (B, width, ., .) at 1/8 and of `backbone_0`."""
        skipped = self.skip_project(fine)
        raised = functional.interpolate(coarse, size=skipped.shape[2:], mode="bilinear", align_corners=True)
        found: Tensor = self.head(torch.cat([raised, skipped], 1))
        return found
