"""The image side of CLIP on a vision transformer. Radford et al., Learning Transferable Visual Models, ICML 2021.

Parameters have the names of OpenAI's and open_clip's files. SAN, CAT-Seg and OVSeg each change the tower within, so
embedding, blocks and projection can be called one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.open_vocabulary.clip_text import MLP

MEAN = (122.7709383, 116.7460125, 104.09373615)
STD = (68.5005327, 66.6321579, 70.323163)
"""CLIP's mean and standard deviation of red, green and blue, for values from 0 to 255."""


@dataclass(frozen=True)
class ViTSize:
    """Side of a patch in pixels, channels, blocks, side of the grid of positions, and the length of CLIP's vectors.

    There is one head for every 64 channels; `quick` is the GELU of OpenAI's weights.
    """

    patch: int
    width: int
    layers: int
    grid: int
    output: int
    quick: bool = True


VIT_SIZES: Mapping[str, ViTSize] = {
    "tiny": ViTSize(16, 64, 4, 4, 24),
    "ViT-B-32": ViTSize(32, 768, 12, 7, 512),
    "ViT-B-16": ViTSize(16, 768, 12, 14, 512),
    "ViT-L-14": ViTSize(14, 1024, 24, 16, 768),
    "ViT-L-14-336": ViTSize(14, 1024, 24, 24, 768),
}
"""Sizes by the names of open_clip, and a tiny one for tries."""


class Attention(nn.Module):
    """Self-attention with one weight for queries, keys and values, or with three if `apart`."""

    def __init__(self, width: int, *, apart: bool = False) -> None:
        super().__init__()
        self.heads, self.apart = width // 64, apart
        if apart:
            self.q_proj_weight, self.k_proj_weight, self.v_proj_weight = (
                nn.Parameter(nn.init.xavier_uniform_(torch.empty(width, width))) for _ in range(3)
            )
        else:
            self.in_proj_weight = nn.Parameter(nn.init.xavier_uniform_(torch.empty(3 * width, width)))
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * width))
        self.out_proj = nn.Linear(width, width)

    def list_weights(self) -> tuple[Tensor, ...]:
        """The weights (width, width) of queries, keys and values."""
        if self.apart:
            return self.q_proj_weight, self.k_proj_weight, self.v_proj_weight
        return self.in_proj_weight.chunk(3)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Tokens (B, N, width); `mask` (..., N, N) is added to the scores, or True where a token is not attended to."""
        split = (*x.shape[:2], self.heads, -1)
        projected = (
            functional.linear(x, weight, bias).reshape(split).transpose(1, 2)
            for weight, bias in zip(self.list_weights(), self.in_proj_bias.chunk(3), strict=True)
        )
        query, key, value = projected
        if mask is not None:
            mask = ~mask if mask.dtype == torch.bool else mask.to(query.dtype)
        seen = functional.scaled_dot_product_attention(query, key, value, mask)
        return self.out_proj(seen.transpose(1, 2).flatten(2))  # type: ignore[no-any-return]

    def project_values(self, x: Tensor) -> Tensor:
        """What every token (B, N, width) would hand to a token that attends to nothing else."""
        values = functional.linear(x, self.list_weights()[2], self.in_proj_bias.chunk(3)[2])
        return self.out_proj(values)  # type: ignore[no-any-return]


class Block(nn.Module):
    """Attention, then a perceptron, each after layer normalisation and added to its input (B, N, width).

    `openai` lists parameters in the order of OpenAI's files, otherwise they have that of open_clip's.
    """

    ln_1: nn.LayerNorm
    attn: Attention
    ln_2: nn.LayerNorm
    mlp: MLP

    def __init__(self, width: int, *, apart: bool = False, openai: bool = False, quick: bool = True) -> None:
        super().__init__()
        parts: dict[str, nn.Module] = {
            "ln_1": nn.LayerNorm(width),
            "attn": Attention(width, apart=apart),
            "ln_2": nn.LayerNorm(width),
            "mlp": MLP(width, quick),
        }
        for name in ("attn", "ln_1", "mlp", "ln_2") if openai else parts:
            self.add_module(name, parts[name])

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Tokens (B, N, width); `mask` as for the attention."""
        x = x + self.attn(self.ln_1(x), mask)
        return x + self.mlp(self.ln_2(x))  # type: ignore[no-any-return]

    def forward_dense(self, x: Tensor) -> Tensor:
        """Every token (B, N, width) by its own value alone, on top of what the class token, the first, has so far.

        The last block of CLIP in this form gives each patch the vector that it would hand to the class token.
        """
        x = x[:, :1] + self.attn.project_values(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))  # type: ignore[no-any-return]


class BlockList(nn.Module):
    """Blocks under the names of a transformer in CLIP's files."""

    def __init__(
        self, width: int, layers: int, *, apart: bool = False, openai: bool = False, quick: bool = True
    ) -> None:
        super().__init__()
        self.resblocks = nn.ModuleList(Block(width, apart=apart, openai=openai, quick=quick) for _ in range(layers))


class PatchEmbedding(nn.Module):
    """The tokens of an image, class token first: patches, positions and a first layer normalisation."""

    def __init__(self, size: ViTSize) -> None:
        super().__init__()
        scale = size.width**-0.5
        self.class_embedding = nn.Parameter(scale * torch.randn(size.width))
        self.positional_embedding = nn.Parameter(scale * torch.randn(size.grid**2 + 1, size.width))
        self.conv1 = nn.Conv2d(3, size.width, size.patch, size.patch, bias=False)
        self.ln_pre = nn.LayerNorm(size.width)

    def embed(self, images: Tensor, change: Callable[[Tensor], Tensor] | None = None) -> tuple[Tensor, tuple[int, int]]:
        """Tokens (B, 1 + h w, width) of normalised images (B, 3, H, W), and the grid (h, w).

        `change` is given the patches (B, h w, width) before the class token and positions are added.
        """
        patches = self.conv1(images)
        grid = (patches.shape[2], patches.shape[3])
        tokens = patches.flatten(2).transpose(1, 2)
        if change is not None:
            tokens = change(tokens)
        tokens = torch.cat((self.class_embedding.to(tokens.dtype).expand(len(tokens), 1, -1), tokens), 1)
        places = torch.cat((self.positional_embedding[:1], resize_positions(self.positional_embedding[1:], grid)))
        return self.ln_pre(tokens + places.to(tokens.dtype)), grid


class CLIPViT(PatchEmbedding):
    """The whole tower under OpenAI's names, with queries, keys and values `apart` as in files of CAT-Seg."""

    def __init__(self, size: ViTSize, *, apart: bool = False, openai: bool = True) -> None:
        super().__init__(size)
        self.output = size.output
        self.proj = nn.Parameter(size.width**-0.5 * torch.randn(size.width, size.output))
        self.transformer = BlockList(size.width, size.layers, apart=apart, openai=openai, quick=size.quick)
        self.ln_post = nn.LayerNorm(size.width)

    def forward(self, images: Tensor) -> Tensor:
        """CLIP's vectors (B, output), not of unit length, of normalised images (B, 3, H, W)."""
        x, _ = self.embed(images)
        for block in self.transformer.resblocks:
            x = block(x)
        return self.project(x[:, 0])

    def project(self, x: Tensor) -> Tensor:
        """CLIP's vectors (..., output), not of unit length, of tokens (..., width) after the last block."""
        x = self.ln_post(x)
        return x @ self.proj.to(x.dtype)

    def forward_dense(self, images: Tensor) -> tuple[Tensor, list[Tensor], tuple[int, int]]:
        """Vectors (B, 1 + h w, output) of every token, outputs of all blocks but the last, and the grid (h, w)."""
        x, grid = self.embed(images)
        outputs = []
        *blocks, last = self.transformer.resblocks
        for block in blocks:
            x = block(x)
            outputs.append(x)
        assert isinstance(last, Block)
        return self.project(last.forward_dense(x)), outputs, grid


def resize_positions(table: Tensor, grid: tuple[int, int]) -> Tensor:
    """A square table of positions (n n, C) in row order, resized bicubically to a grid (h, w): (h w, C)."""
    side = round(len(table) ** 0.5)
    if grid == (side, side):
        return table
    placed = table.T.reshape(1, -1, side, side)
    placed = functional.interpolate(placed, grid, mode="bicubic", align_corners=False)
    return placed[0].flatten(1).T


def split_projections(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A state dict of CLIP with the weights of queries, keys and values apart, in the order of the original.

    >>> list(split_projections({"attn.in_proj_weight": torch.zeros(6, 2), "attn.in_proj_bias": torch.zeros(6)}))
    ['attn.q_proj_weight', 'attn.k_proj_weight', 'attn.v_proj_weight', 'attn.in_proj_bias']
    """
    split: dict[str, Tensor] = {}
    for name, value in state.items():
        if name.endswith("in_proj_weight"):
            start = name.removesuffix("in_proj_weight")
            names = (f"{start}{one}_proj_weight" for one in "qkv")
            split.update(zip(names, value.chunk(3), strict=True))
        else:
            split[name] = value
    return split


def normalise(images: Tensor) -> Tensor:
    """Images (B, 3, H, W) of values from 0 to 255, less CLIP's mean, over its standard deviation."""
    # Rounded to float32 like the values that the released networks keep, whatever the type of the images.
    mean, std = (torch.tensor(one, device=images.device)[:, None, None].to(images.dtype) for one in (MEAN, STD))
    return (images - mean) / std


def pad_to_multiple(images: Tensor, multiple: int = 32) -> Tensor:
    """Images (B, 3, H, W) with zeros added below and to the right, up to multiples of `multiple` pixels."""
    height, width = images.shape[-2:]
    return functional.pad(images, (0, -width % multiple, 0, -height % multiple))
