"""Parts of mask transformers, by the names of published checkpoints.

Cheng et al., Masked-attention Mask Transformer for Universal Image Segmentation, CVPR 2022: pixels that attend to few
learnt places on three levels (Zhu et al., Deformable DETR, ICLR 2021), and queries that attend to pixels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTH, HEADS, LEVELS, POINTS = 256, 8, 3, 4

Size = tuple[int, int]


def sine_positions(size: Size, *, device: torch.device, dtype: torch.dtype) -> Tensor:
    """(1, h * w, WIDTH): sines and cosines in turn, of rows in the first half of the channels, of columns in the other.

    Rows and columns are counted from 1 and scaled so that the last is 2 pi.
    """
    half = WIDTH // 2
    places = torch.arange(half, device=device, dtype=dtype)
    wavelengths = 10000 ** (2 * (places // 2) / half)
    waves = []
    for length in size:
        counted = torch.arange(1, length + 1, device=device, dtype=dtype)
        angles = (counted / (length + 1e-6) * 2 * math.pi)[:, None] / wavelengths
        waves.append(torch.stack([angles[:, 0::2].sin(), angles[:, 1::2].cos()], 2).flatten(1))
    down, across = waves[0][:, None].expand(*size, half), waves[1][None].expand(*size, half)
    return torch.cat([down, across], 2).reshape(1, size[0] * size[1], WIDTH)


def centres(sizes: Sequence[Size], *, device: torch.device, dtype: torch.dtype) -> Tensor:
    """(1, N, 2): (x, y) in 0..1 of the pixels' centres of all levels, one after the other."""
    found = []
    for height, width in sizes:
        down = (torch.arange(height, device=device, dtype=dtype) + 0.5) / height
        across = (torch.arange(width, device=device, dtype=dtype) + 0.5) / width
        found.append(torch.stack(torch.meshgrid(across, down, indexing="xy"), 2).reshape(-1, 2))
    return torch.cat(found)[None]


class DeformableAttention(nn.Module):
    """Each pixel attends, by head and level, to four places whose offsets from it are learnt."""

    def __init__(self) -> None:
        super().__init__()
        self.sampling_offsets = nn.Linear(WIDTH, HEADS * LEVELS * POINTS * 2)
        self.attention_weights = nn.Linear(WIDTH, HEADS * LEVELS * POINTS)
        self.value_proj = nn.Linear(WIDTH, WIDTH)
        self.output_proj = nn.Linear(WIDTH, WIDTH)

    def forward(self, queries: Tensor, places: Tensor, x: Tensor, sizes: Sequence[Size]) -> Tensor:
        """(B, N, WIDTH) for queries at places (1, N, 2), of pixels x (B, N, WIDTH) of levels of `sizes`."""
        batch, count = queries.shape[:2]
        exact = torch.promote_types(x.dtype, torch.float32)  # places in half precision would be off by pixels
        offsets = self.sampling_offsets(queries).to(exact).reshape(batch, count, HEADS, LEVELS, POINTS, 2)
        weights = self.attention_weights(queries).to(exact).reshape(batch, count, HEADS, LEVELS * POINTS).softmax(-1)
        values = self.value_proj(x).to(exact).reshape(batch, count, HEADS, WIDTH // HEADS)
        sampled, first = [], 0
        for level, (height, width) in enumerate(sizes):
            moved = places[:, :, None, None] + offsets[:, :, :, level] / offsets.new_tensor([width, height])
            maps = (
                values[:, first : first + height * width].permute(0, 2, 3, 1).reshape(-1, WIDTH // HEADS, height, width)
            )
            grid = (2 * moved - 1).transpose(1, 2).flatten(0, 1)
            sampled.append(functional.grid_sample(maps, grid, align_corners=False))
            first += height * width
        # (B * heads, channels, N, levels * points), weighted and summed over the last axis.
        shares = weights.transpose(1, 2).reshape(batch * HEADS, 1, count, LEVELS * POINTS)
        mixed = (torch.cat(sampled, 3) * shares).sum(3)
        return self.output_proj(mixed.reshape(batch, WIDTH, count).transpose(1, 2))  # type: ignore[no-any-return]


class EncoderLayer(nn.Module):
    """Deformable attention of pixels, then two linear layers, each added and normalised."""

    def __init__(self) -> None:
        super().__init__()
        self.self_attn = DeformableAttention()
        self.norm1 = nn.LayerNorm(WIDTH)
        self.linear1 = nn.Linear(WIDTH, 1024)
        self.linear2 = nn.Linear(1024, WIDTH)
        self.norm2 = nn.LayerNorm(WIDTH)

    def forward(self, x: Tensor, positions: Tensor, places: Tensor, sizes: Sequence[Size]) -> Tensor:
        """(B, N, WIDTH) of pixels of all levels, with their positions and places."""
        x = self.norm1(x + self.self_attn(x + positions, places, x, sizes))
        return self.norm2(x + self.linear2(functional.relu(self.linear1(x))))  # type: ignore[no-any-return]


class Encoder(nn.Module):
    """So many layers, by the name that checkpoints give them."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer() for _ in range(layers))


class SelfAttention(nn.Module):
    """Queries that attend to each other."""

    def __init__(self) -> None:
        super().__init__()
        self.self_attn = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        """(B, queries, WIDTH)."""
        placed = x + positions
        return self.norm(x + self.self_attn(placed, placed, x, need_weights=False)[0])  # type: ignore[no-any-return]


class CrossAttention(nn.Module):
    """Queries that attend to pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.multihead_attn = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x: Tensor, positions: Tensor, keys: Tensor, values: Tensor, hidden: Tensor) -> Tensor:
        """`hidden` (B, queries, N) bool: which pixels a query does not attend to."""
        mask = hidden.repeat_interleave(HEADS, 0)
        seen = self.multihead_attn(x + positions, keys, values, attn_mask=mask, need_weights=False)[0]
        return self.norm(x + seen)  # type: ignore[no-any-return]


class FeedForward(nn.Module):
    """Two linear layers, added and normalised."""

    def __init__(self) -> None:
        super().__init__()
        self.linear1 = nn.Linear(WIDTH, 2048)
        self.linear2 = nn.Linear(2048, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """(B, queries, WIDTH)."""
        return self.norm(x + self.linear2(functional.relu(self.linear1(x))))  # type: ignore[no-any-return]


class MLP(nn.Module):
    """Three linear layers with ReLU between them, to `output` numbers."""

    def __init__(self, output: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(WIDTH, outputs) for outputs in (WIDTH, WIDTH, output))

    def forward(self, x: Tensor) -> Tensor:
        """(..., output) of (..., WIDTH)."""
        first, second, last = self.layers
        return last(functional.relu(second(functional.relu(first(x)))))  # type: ignore[no-any-return]
