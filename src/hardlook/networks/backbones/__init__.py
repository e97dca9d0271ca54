"""Backbones of few-shot networks, by name, with the parameter names of their published checkpoints.

Every module of this package imports torch; nothing imports the package but what trains or runs a network.

>>> import torch
>>> backbone = build_backbone("conv64f", output="maps")
>>> backbone(torch.zeros(2, 3, 84, 84)).shape, backbone.channels
(torch.Size([2, 64, 5, 5]), 64)
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, get_args

from torch import nn

from hardlook.errors import OptionError
from hardlook.networks.backbones.bdc import ResNet12Bdc, ResNet18Bdc
from hardlook.networks.backbones.convolutional import Conv32F, Conv64F, R2D2Embedding
from hardlook.networks.backbones.resnet import ResNet10, ResNet18, ResNet50, WideResNet
from hardlook.networks.backbones.resnet12 import ResNet12, ResNet12Appendix, ResNet12Mtl, ResNet12NoLastShortcut
from hardlook.networks.backbones.vision_transformer import VisionTransformer

Output = Literal["vectors", "maps", "tokens"]
"""What a backbone returns of n images: (n, D) vectors, (n, C, h, w) maps, or (n, 1 + patches, D) tokens."""

BACKBONES: dict[str, Any] = {
    "conv32f": Conv32F,
    "conv64f": Conv64F,
    "conv64f-leaky": partial(Conv64F, slope=0.2),
    "r2d2-embedding": R2D2Embedding,
    "resnet10": ResNet10,
    "resnet12": ResNet12,
    "resnet12-appendix": ResNet12Appendix,
    "resnet12-no-last-shortcut": ResNet12NoLastShortcut,
    "resnet12-mtl": ResNet12Mtl,
    "resnet12-bdc": ResNet12Bdc,
    "resnet18": ResNet18,
    "resnet18-bdc": ResNet18Bdc,
    "resnet50": ResNet50,
    "vit-small": VisionTransformer,
    "wrn-28-10": WideResNet,
}


def build_backbone(name: str, *, output: Output = "vectors", **options: Any) -> nn.Module:
    """The backbone of that name with random weights from torch's generator; `channels` is the width of its output."""
    if name not in BACKBONES:
        raise OptionError(f"no backbone {name!r}", remedy=f"one of {', '.join(BACKBONES)}")
    if output not in get_args(Output):
        raise OptionError(f"no output {output!r} of a backbone", remedy=f"one of {', '.join(get_args(Output))}")
    backbone: nn.Module = BACKBONES[name](output=output, **options)
    return backbone
