"""The image side of OpenAI's CLIP on ResNet. Radford et al., Learning Transferable Visual Models, ICML 2021.

Parameters have the names of OpenAI's and open_clip's files.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class ResNetSize:
    """Blocks of the four stages, channels of the first, CLIP's vectors, and the side of the images that trained it."""

    depths: tuple[int, ...]
    width: int
    output: int
    side: int = 224


RESNET_SIZES: Mapping[str, ResNetSize] = {
    "tiny": ResNetSize((1, 1, 1, 1), 16, 24, 64),
    "RN50": ResNetSize((3, 4, 6, 3), 64, 1024),
    "RN101": ResNetSize((3, 4, 23, 3), 64, 512),
    "RN50x4": ResNetSize((4, 6, 10, 6), 80, 640, 288),
    "RN50x16": ResNetSize((6, 8, 18, 8), 96, 768, 384),
    "RN50x64": ResNetSize((3, 15, 36, 10), 128, 1024, 448),
}
"""Sizes by OpenAI's names, and a tiny one for tries."""


class _Bottleneck(nn.Module):
    """Strides are means of 2 x 2: after the second convolution, and before that of the shortcut."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.pool = nn.AvgPool2d(stride) if stride > 1 else nn.Identity()
        self.downsample: nn.Module = nn.Identity()
        if stride > 1 or inputs != 4 * width:
            layers: list[tuple[str, nn.Module]] = [
                ("-1", nn.AvgPool2d(stride)),
                ("0", nn.Conv2d(inputs, 4 * width, 1, bias=False)),
                ("1", nn.BatchNorm2d(4 * width)),
            ]
            self.downsample = nn.Sequential(OrderedDict(layers))

    def forward(self, x: Tensor) -> Tensor:
        seen = functional.relu(self.bn1(self.conv1(x)))
        seen = self.pool(functional.relu(self.bn2(self.conv2(seen))))
        return functional.relu(self.bn3(self.conv3(seen)) + self.downsample(x))


class AttentionPool(nn.Module):
    """A query, the mean of a map, that attends to the pixels of a region; one head for every 64 channels."""

    def __init__(self, side: int, width: int, output: int) -> None:
        super().__init__()
        self.side, self.heads = side, width // 64
        self.positional_embedding = nn.Parameter(torch.randn(side * side + 1, width) / width**0.5)
        self.k_proj = nn.Linear(width, width)
        self.q_proj = nn.Linear(width, width)
        self.v_proj = nn.Linear(width, width)
        self.c_proj = nn.Linear(width, output)

    def forward(self, features: Tensor, regions: Tensor) -> Tensor:
        """Vectors (B, Q, output) of regions (B, Q, h, w) bool of a map (B, C, h, w); an empty one has all pixels.

        CLIP itself has the mean among what is attended to; a region has not.
        """
        batch, width, height, across = features.shape
        placed = self.positional_embedding[1:].T.reshape(1, width, self.side, self.side)
        placed = functional.interpolate(placed, (height, across), mode="bilinear", align_corners=False)
        x = features.flatten(2).transpose(1, 2)
        keys = x + placed.flatten(2).transpose(1, 2)
        query = self.q_proj(x.mean(1) + self.positional_embedding[0])
        query = query.reshape(batch, self.heads, -1) * (width // self.heads) ** -0.5
        split = (batch, height * across, self.heads, -1)
        scores = torch.einsum("bhd,bnhd->bhn", query, self.k_proj(keys).reshape(split))
        seen = regions.flatten(2)
        seen = seen | ~seen.any(2, keepdim=True)
        shares = scores[:, :, None].masked_fill(~seen[:, None], -torch.inf).softmax(3)
        values = self.v_proj(keys).reshape(split)
        found = torch.einsum("bhqn,bnhd->bqhd", shares.to(values.dtype), values)
        return self.c_proj(found.flatten(2))  # type: ignore[no-any-return]


class CLIPResNet(nn.Module):
    """Maps of an image at strides 2, 4, 8, 16 and 32, and CLIP's vector of a region of the last map."""

    def __init__(self, size: ResNetSize) -> None:
        super().__init__()
        half, width = size.width // 2, size.width
        self.channels: Sequence[int] = tuple(4 * width * 2**stage for stage in range(4))
        self.output = size.output
        self.conv1 = nn.Conv2d(3, half, 3, 2, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(half)
        self.conv2 = nn.Conv2d(half, half, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(half)
        self.conv3 = nn.Conv2d(half, width, 3, padding=1, bias=False)
        self.bn3 = nn.BatchNorm2d(width)
        inputs = width
        for stage, depth in enumerate(size.depths):
            blocks = []
            for number in range(depth):
                blocks.append(_Bottleneck(inputs, width * 2**stage, 2 if stage and not number else 1))
                inputs = 4 * width * 2**stage
            self.add_module(f"layer{stage + 1}", nn.Sequential(*blocks))
        self.attnpool = AttentionPool(size.side // 32, self.channels[-1], size.output)

    def forward(self, images: Tensor) -> dict[str, Tensor]:
        """Maps (B, C, h, w) by detectron2's names, stem and res2 to res5, of normalised images (B, 3, H, W)."""
        x = functional.relu(self.bn1(self.conv1(images)))
        x = functional.relu(self.bn2(self.conv2(x)))
        x = functional.relu(self.bn3(self.conv3(x)))
        maps = {"stem": x}
        x = functional.avg_pool2d(x, 2)
        for number in range(4):
            x = maps[f"res{number + 2}"] = self.get_submodule(f"layer{number + 1}")(x)
        return maps

    def embed_regions(self, features: Tensor, regions: Tensor) -> Tensor:
        """Vectors (B, Q, output) of regions (B, Q, h, w) bool of the last map (B, C, h, w)."""
        return self.attnpool(features, regions)  # type: ignore[no-any-return]
