"""SegFormer with clicks, as FocalClick uses it.

Xie et al., SegFormer: Simple and Efficient Design for Semantic Segmentation with Transformers, NeurIPS 2021. Four
stages of attention at 1/4, 1/8, 1/16 and 1/32 of the picture; an all-MLP head joins them at 1/4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

SIZES: Mapping[str, Mapping[str, Any]] = {
    "b0": {"widths": (32, 64, 160, 256), "depths": (2, 2, 2, 2), "head_width": 256},
    "b3": {"widths": (64, 128, 320, 512), "depths": (3, 4, 18, 3), "head_width": 512},
}
HEADS, REDUCTIONS = (1, 2, 5, 8), (8, 4, 2, 1)
EPSILON = 1e-6
"""Of layer normalisation in blocks and after stages; that of embeddings and of reduced maps is torch's."""


def to_maps(tokens: Tensor, grid: tuple[int, int]) -> Tensor:
    """Tokens (B, h w, C) as maps (B, C, h, w)."""
    return tokens.mT.reshape(tokens.shape[0], tokens.shape[2], *grid)


class OverlappingEmbedding(nn.Module):
    """Tokens of overlapping patches, normalised."""

    def __init__(self, inputs: int, width: int, side: int, stride: int) -> None:
        super().__init__()
        self.proj = nn.Conv2d(inputs, width, side, stride, side // 2)
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor) -> tuple[Tensor, tuple[int, int]]:
        """Tokens (B, h w, width) of maps (B, inputs, H, W), and their grid (h, w)."""
        x = self.proj(x)
        return self.norm(x.flatten(2).mT), (x.shape[2], x.shape[3])


class ReducedAttention(nn.Module):
    """Attention of all tokens to those of a grid that is `reduction` times coarser."""

    def __init__(self, width: int, heads: int, reduction: int) -> None:
        super().__init__()
        self.heads = heads
        self.q = nn.Linear(width, width)
        self.kv = nn.Linear(width, 2 * width)
        self.proj = nn.Linear(width, width)
        self.sr: nn.Module | None = None
        if reduction > 1:
            self.sr = nn.Conv2d(width, width, reduction, reduction)
            self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor, grid: tuple[int, int]) -> Tensor:
        """(B, n, width) of tokens (B, n, width)."""
        seen = x if self.sr is None else self.norm(self.sr(to_maps(x, grid)).flatten(2).mT)
        query = self.q(x).unflatten(2, (self.heads, -1)).transpose(1, 2)
        key, value = self.kv(seen).unflatten(2, (2, self.heads, -1)).permute(2, 0, 3, 1, 4)
        found = functional.scaled_dot_product_attention(query, key, value)
        return self.proj(found.transpose(1, 2).flatten(2))  # type: ignore[no-any-return]


class _DepthWise(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.dwconv = nn.Conv2d(width, width, 3, 1, 1, groups=width)


class MixMLP(nn.Module):
    """An MLP whose hidden values also see the eight neighbours."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, 4 * width)
        self.dwconv = _DepthWise(4 * width)
        self.fc2 = nn.Linear(4 * width, width)

    def forward(self, x: Tensor, grid: tuple[int, int]) -> Tensor:
        """(B, n, width) of tokens (B, n, width)."""
        hidden = self.dwconv.dwconv(to_maps(self.fc1(x), grid)).flatten(2).mT
        return self.fc2(functional.gelu(hidden))  # type: ignore[no-any-return]


class SegFormerBlock(nn.Module):
    """Attention, then an MLP, each beside a shortcut."""

    def __init__(self, width: int, heads: int, reduction: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width, EPSILON)
        self.attn = ReducedAttention(width, heads, reduction)
        self.norm2 = nn.LayerNorm(width, EPSILON)
        self.mlp = MixMLP(width)

    def forward(self, x: Tensor, grid: tuple[int, int]) -> Tensor:
        """(B, n, width) of tokens (B, n, width)."""
        x = x + self.attn(self.norm1(x), grid)
        return x + self.mlp(self.norm2(x), grid)  # type: ignore[no-any-return]


class MixTransformer(nn.Module):
    """The four stages; coordinate maps are embedded on their own and added after the first stage."""

    def __init__(self, widths: Sequence[int], depths: Sequence[int], coordinates: int = 3) -> None:
        super().__init__()
        inputs = 3
        for number, width in enumerate(widths, 1):
            side, stride = (7, 4) if number == 1 else (3, 2)
            self.add_module(f"patch_embed{number}", OverlappingEmbedding(inputs, width, side, stride))
            inputs = width
        self.patch_embed_side1 = OverlappingEmbedding(coordinates, widths[0], 7, 4)
        for number, (width, depth, heads, reduction) in enumerate(
            zip(widths, depths, HEADS, REDUCTIONS, strict=True), 1
        ):
            blocks = nn.ModuleList(SegFormerBlock(width, heads, reduction) for _ in range(depth))
            self.add_module(f"block{number}", blocks)
            self.add_module(f"norm{number}", nn.LayerNorm(width, EPSILON))

    def forward(self, x: Tensor, coordinates: Tensor) -> list[Tensor]:
        """Maps of the four stages, the first without what `coordinates` (B, 3, H, W) add to it."""
        found = []
        for number in (1, 2, 3, 4):
            tokens, grid = self.get_submodule(f"patch_embed{number}")(x)
            for block in self.get_submodule(f"block{number}").children():
                tokens = block(tokens, grid)
            tokens = self.get_submodule(f"norm{number}")(tokens)
            found.append(to_maps(tokens, grid))
            if number == 1:
                tokens = tokens + self.patch_embed_side1(coordinates)[0]
            x = to_maps(tokens, grid)
        return found


class _Projection(nn.Module):
    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.proj = nn.Linear(inputs, width)

    def forward(self, x: Tensor) -> Tensor:
        """(B, width, h, w) of maps (B, inputs, h, w)."""
        found: Tensor = self.proj(x.movedim(1, -1))
        return found.movedim(-1, 1)


class _Fusion(nn.Module):
    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn = nn.BatchNorm2d(width)

    def forward(self, x: Tensor) -> Tensor:
        """(B, width, h, w)."""
        return functional.relu(self.bn(self.conv(x)))


class AllMLPHead(nn.Module):
    """All stages at the finest one's size, mixed pixel by pixel, and one logit of each pixel."""

    def __init__(self, widths: Sequence[int], width: int) -> None:
        super().__init__()
        for number in (4, 3, 2, 1):
            self.add_module(f"linear_c{number}", _Projection(widths[number - 1], width))
        self.linear_fuse = _Fusion(4 * width, width)
        self.dropout = nn.Dropout2d(0.1)
        self.linear_pred = nn.Conv2d(width, 1, 1)

    def forward(self, stages: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """Fused maps (B, width, h, w) and logits (B, 1, h, w) of four stages, the finest first."""
        size = stages[0].shape[2:]
        alike = [
            functional.interpolate(
                self.get_submodule(f"linear_c{number}")(stages[number - 1]),
                size=size,
                mode="bilinear",
                align_corners=False,
            )
            for number in (4, 3, 2, 1)
        ]
        fused = self.linear_fuse(torch.cat(alike, 1))
        return fused, self.linear_pred(self.dropout(fused))


class SegFormer(nn.Module):
    """The stages and the head."""

    def __init__(self, widths: Sequence[int], depths: Sequence[int], head_width: int) -> None:
        super().__init__()
        self.backbone = MixTransformer(widths, depths)
        self.decode_head = AllMLPHead(widths, head_width)

    def features(self, x: Tensor, coordinates: Tensor) -> dict[str, Tensor]:
        """`backbone_0` to `backbone_3`, `feature` (B, C, h, w) and `logits_quarter` (B, 1, h, w) at 1/4."""
        stages = self.backbone(x, coordinates)
        found = {f"backbone_{place}": stage for place, stage in enumerate(stages)}
        found["feature"], found["logits_quarter"] = self.decode_head(stages)
        return found
