"""The image side of open_clip's CLIP on ConvNeXt. Liu et al., A ConvNet for the 2020s, CVPR 2022.

Parameters have open_clip's names, those of the trunk by timm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

EPSILON = 1e-6


@dataclass(frozen=True)
class ConvNeXtSize:
    """Blocks and channels of the four stages, and the length of CLIP's vectors."""

    depths: tuple[int, ...]
    widths: tuple[int, ...]
    output: int


CONVNEXT_SIZES: Mapping[str, ConvNeXtSize] = {
    "convnext_base": ConvNeXtSize((3, 3, 27, 3), (128, 256, 512, 1024), 640),
    "convnext_large_d_320": ConvNeXtSize((3, 3, 27, 3), (192, 384, 768, 1536), 768),
}
"""Sizes by open_clip's names."""


class ChannelNorm(nn.LayerNorm):
    """Layer normalisation of (B, C, h, w) over the channels."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels, eps=EPSILON)

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, h, w)."""
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class _MLP(nn.Module):
    def __init__(self, inputs: int, hidden: int, outputs: int, *, bias: bool = True) -> None:
        super().__init__()
        self.fc1 = nn.Linear(inputs, hidden)
        self.fc2 = nn.Linear(hidden, outputs, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(functional.gelu(self.fc1(x)))  # type: ignore[no-any-return]


class _Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.full((width,), 1e-6))
        self.conv_dw = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width, eps=EPSILON)
        self.mlp = _MLP(width, 4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        seen = self.mlp(self.norm(self.conv_dw(x).permute(0, 2, 3, 1)))
        return x + (seen * self.gamma).permute(0, 3, 1, 2)  # type: ignore[no-any-return]


class _Stage(nn.Module):
    def __init__(self, inputs: int, width: int, depth: int) -> None:
        super().__init__()
        halved = inputs != width
        self.downsample = (
            nn.Sequential(ChannelNorm(inputs), nn.Conv2d(inputs, width, 2, 2)) if halved else nn.Identity()
        )
        self.blocks = nn.Sequential(*(_Block(width) for _ in range(depth)))

    def forward(self, x: Tensor) -> Tensor:
        return self.blocks(self.downsample(x))  # type: ignore[no-any-return]


class _TrunkHead(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width, eps=EPSILON)


class _Trunk(nn.Module):
    def __init__(self, size: ConvNeXtSize) -> None:
        super().__init__()
        first = size.widths[0]
        self.stem = nn.Sequential(nn.Conv2d(3, first, 4, 4), ChannelNorm(first))
        inputs = (first, *size.widths[:-1])
        self.stages = nn.Sequential(*map(_Stage, inputs, size.widths, size.depths))
        self.head = _TrunkHead(size.widths[-1])


class _Projection(nn.Module):
    def __init__(self, width: int, output: int) -> None:
        super().__init__()
        self.mlp = _MLP(width, width, output, bias=False)


class CLIPConvNeXt(nn.Module):
    """Maps of an image at strides 4, 4, 8, 16 and 32, and CLIP's vector of the last map's mean over a region."""

    def __init__(self, size: ConvNeXtSize) -> None:
        super().__init__()
        self.channels: Sequence[int] = size.widths
        self.output = size.output
        self.trunk = _Trunk(size)
        self.head = _Projection(size.widths[-1], size.output)

    def forward(self, images: Tensor) -> dict[str, Tensor]:
        """Maps (B, C, h, w) by detectron2's names, stem and res2 to res5, of normalised images (B, 3, H, W)."""
        x = self.trunk.stem(images)
        maps = {"stem": x}
        for number, stage in enumerate(self.trunk.stages, 2):
            x = maps[f"res{number}"] = stage(x)
        return maps

    def embed_pooled(self, pooled: Tensor) -> Tensor:
        """Vectors (..., output) of means (..., C) of the last map, not of unit length."""
        return self.head.mlp(self.trunk.head.norm(pooled))  # type: ignore[no-any-return]

    def embed_regions(self, features: Tensor, regions: Tensor) -> Tensor:
        """Vectors (B, Q, output) of regions (B, Q, h, w) bool of the last map (B, C, h, w); an empty one has mean 0."""
        return self.embed_pooled(pool_regions(features, regions))


def pool_regions(features: Tensor, regions: Tensor) -> Tensor:
    """(B, Q, C): means of a map (B, C, h, w) over regions (B, Q, h, w) bool, zero for an empty region.

    >>> features = torch.tensor([[[[1.0, 3.0, 8.0]]]])
    >>> pool_regions(features, torch.tensor([[[[True, True, False]], [[False, False, False]]]])).flatten().tolist()
    [2.0, 0.0]
    """
    shares = regions.to(torch.promote_types(features.dtype, torch.float32))  # half precision counts to 256 only
    shares = shares / (shares.sum((2, 3), keepdim=True) + 1e-8)
    return torch.einsum("bchw,bqhw->bqc", features, shares.to(features.dtype))
