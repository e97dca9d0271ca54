"""The plain vision transformer of SimpleClick and AdaptiveClick, with windowed attention, and its simple pyramid.

Dosovitskiy et al., An Image is Worth 16x16 Words, ICLR 2021; Li et al., Exploring Plain Vision Transformer Backbones
for Object Detection, ECCV 2022. Most blocks attend inside windows of the token grid, a few to all tokens; four maps at
1/4, 1/8, 1/16 and 1/32 of the picture are made of the last tokens alone.

>>> sorted(global_blocks(12)), sorted(global_blocks(8))
([6, 12], [2, 4, 6, 8])
>>> count_windows((28, 42), 14)
(2, 3)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

Size = tuple[int, int]

VIT_SIZES: Mapping[str, Mapping[str, Any]] = {
    "vit_xtiny": {"patch": 16, "width": 160, "depth": 8, "heads": 4},
    "vit_base": {"patch": 16, "width": 768, "depth": 12, "heads": 12},
    "vit_large": {"patch": 16, "width": 1024, "depth": 24, "heads": 16},
    "vit_huge": {"patch": 14, "width": 1280, "depth": 32, "heads": 16},
}
"""Arguments of the published backbones."""

WINDOW = 224
"""Pixels of a window's side, from which the number of windows follows."""

TRAINED_SIDE = 448
"""Pixels of the side of the pictures that published networks were trained on."""


def global_blocks(depth: int) -> frozenset[int]:
    """Blocks, counted from 1, that attend to all tokens: two of twelve, else every fourth part of the depth."""
    step = 6 if depth == 12 else max(1, depth // 4)
    return frozenset(range(step, depth + 1, step))


def count_windows(grid: Size, window: int) -> Size:
    """Windows down and across a grid of tokens, as many as fit of about `window` tokens a side, at least one."""
    down, across = (max(1, length // window) for length in grid)
    if grid[0] % down or grid[1] % across:
        raise ValueError(
            f"{grid[0]} x {grid[1]} tokens cannot be cut into {down} x {across} equal windows; "
            "give the network pictures of another size, such as 448 x 448"
        )
    return down, across


class PatchEmbedding(nn.Module):
    """One token per patch: pictures (B, C, H, W) -> (B, h * w, width), row by row."""

    def __init__(self, channels: int, width: int, patch: int) -> None:
        super().__init__()
        self.proj = nn.Conv2d(channels, width, patch, patch)

    def forward(self, x: Tensor) -> Tensor:
        """Tokens of whole patches; rows and columns of pixels beyond them are not seen."""
        return self.proj(x).flatten(2).transpose(1, 2)  # type: ignore[no-any-return]


class Attention(nn.Module):
    """Attention of all tokens (B, N, C) to all, in `heads` parts of the channels."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """The same shape."""
        batch, count, width = x.shape
        split = self.qkv(x).reshape(batch, count, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(split[0], split[1], split[2])
        return self.proj(mixed.transpose(1, 2).reshape(batch, count, width))  # type: ignore[no-any-return]


class Mlp(nn.Module):
    """Two layers, four times as wide between them."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, 4 * width)
        self.fc2 = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """The same shape."""
        return self.fc2(functional.gelu(self.fc1(x)))  # type: ignore[no-any-return]


class Block(nn.Module):
    """Attention and MLP, each on normalised tokens and added to them."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width, eps=1e-6)
        self.norm2 = nn.LayerNorm(width, eps=1e-6)
        self.attn = Attention(width, heads)
        self.mlp = Mlp(width)

    def forward(self, x: Tensor) -> Tensor:
        """Tokens (B, N, C), the same shape."""
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))  # type: ignore[no-any-return]


class PlainViT(nn.Module):
    """Tokens of the picture plus those of the clicks, through all blocks; no class token and no norm at the end.

    `cls_token`, `fc_norm` and `head` are in the published files but take no part.
    """

    def __init__(self, patch: int, width: int, depth: int, heads: int, side: int = TRAINED_SIDE) -> None:
        super().__init__()
        self.patch, self.window, self.grid = patch, WINDOW // patch, side // patch
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(torch.empty(1, 1 + self.grid**2, width).normal_(std=0.02))
        self.patch_embed = PatchEmbedding(3, width, patch)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.fc_norm = nn.LayerNorm(width, eps=1e-6)
        self.head = nn.Linear(width, 1000)

    def positions(self, grid: Size) -> Tensor:
        """Position embedding (1, h * w, C) of a grid, resized from the trained one where it is another."""
        rows = self.pos_embed[:, 1:]
        if grid == (self.grid, self.grid):
            return rows
        square = rows.reshape(1, self.grid, self.grid, -1).permute(0, 3, 1, 2)
        resized = functional.interpolate(square, size=grid, mode="bicubic", align_corners=False)
        return resized.flatten(2).transpose(1, 2)

    def features(self, pictures: Tensor, added: Tensor) -> dict[str, Tensor]:
        """`image_tokens`, `tokens_with_position`, tokens after chosen blocks, and `backbone_map` (B, C, h, w).

        Of normalised pictures (B, 3, H, W) and tokens (B, h * w, C) to be added. `block1_windowed` has windows, row
        by row, along its first axis; the middle and the last block by number, as `block6` and `block12`.
        """
        grid = (pictures.shape[2] // self.patch, pictures.shape[3] // self.patch)
        windows = count_windows(grid, self.window)
        found = {"image_tokens": self.patch_embed(pictures)}
        x = found["tokens_with_position"] = found["image_tokens"] + added + self.positions(grid)
        depth, in_windows, everywhere = len(self.blocks), False, global_blocks(len(self.blocks))
        for number, block in enumerate(self.blocks, 1):
            if in_windows != (number not in everywhere):
                in_windows = not in_windows
                x = split_windows(x, grid, windows) if in_windows else join_windows(x, grid, windows)
            x = block(x)
            if number == 1:
                found["block1_windowed"] = x
            if number in (depth // 2, depth):
                found[f"block{number}"] = x
        found["backbone_map"] = x.transpose(1, 2).reshape(len(x), -1, *grid)
        return found


def split_windows(x: Tensor, grid: Size, windows: Size) -> Tensor:
    """Tokens (B, h * w, C) -> (B * windows, tokens of a window, C)."""
    rows, columns = grid[0] // windows[0], grid[1] // windows[1]
    cut = x.reshape(len(x), windows[0], rows, windows[1], columns, -1).transpose(2, 3)
    return cut.reshape(-1, rows * columns, x.shape[-1])


def join_windows(x: Tensor, grid: Size, windows: Size) -> Tensor:
    """The inverse of `split_windows`."""
    rows, columns = grid[0] // windows[0], grid[1] // windows[1]
    cut = x.reshape(-1, windows[0], windows[1], rows, columns, x.shape[-1]).transpose(2, 3)
    return cut.reshape(-1, grid[0] * grid[1], x.shape[-1])


class SimplePyramid(nn.Module):
    """Maps of `widths` channels at 1/4, 1/8, 1/16 and 1/32 (for patches of 16 pixels), each of the last map alone."""

    def __init__(self, width: int, widths: Sequence[int]) -> None:
        super().__init__()
        quarter, eighth, half = max(2 * widths[0], width // 2), max(widths[1], width // 2), max(widths[3], 2 * width)
        self.down_4 = nn.Sequential(
            nn.ConvTranspose2d(width, quarter, 2, 2),
            nn.GroupNorm(1, quarter),
            nn.GELU(),
            nn.ConvTranspose2d(quarter, quarter // 2, 2, 2),
            nn.GroupNorm(1, quarter // 2),
            *_finish(quarter // 2, widths[0]),
        )
        self.down_8 = nn.Sequential(
            nn.ConvTranspose2d(width, eighth, 2, 2), nn.GroupNorm(1, eighth), *_finish(eighth, widths[1])
        )
        self.down_16 = nn.Sequential(*_finish(width, widths[2]))
        self.down_32 = nn.Sequential(nn.Conv2d(width, half, 2, 2), nn.GroupNorm(1, half), *_finish(half, widths[3]))

    def forward(self, x: Tensor) -> list[Tensor]:
        """Four maps, the finest first."""
        return [level(x) for level in (self.down_4, self.down_8, self.down_16, self.down_32)]


def _finish(inputs: int, outputs: int) -> Iterator[nn.Module]:
    yield from (nn.Conv2d(inputs, outputs, 1), nn.GroupNorm(1, outputs), nn.GELU())


def read_backbone(arguments: Mapping[str, Any], state: Mapping[str, Tensor]) -> dict[str, Any]:
    """Arguments of the backbone in a checkpoint: shapes tell all but the number of heads, which settings may tell."""
    embedding = state["backbone.patch_embed.proj.weight"]
    width, patch = embedding.shape[0], embedding.shape[2]
    depth = len({name.split(".")[2] for name in state if name.startswith("backbone.blocks.")})
    if not depth or not patch:
        raise ValueError("it has no blocks of a transformer, or patches of no pixels")
    told = arguments.get("backbone_params")
    heads = told.get("num_heads") if isinstance(told, Mapping) else None
    if not isinstance(heads, int) or heads < 1 or width % heads:
        usual = {size["width"]: size["heads"] for size in VIT_SIZES.values()}
        heads = usual.get(width, max(1, width // 64))
    side = round((state["backbone.pos_embed"].shape[1] - 1) ** 0.5) * patch
    return {"patch": patch, "width": width, "depth": depth, "heads": heads, "side": side}


def read_pyramid(state: Mapping[str, Tensor], prefix: str) -> tuple[int, ...]:
    """Widths of the pyramid in a checkpoint, by the shapes of the norms that end its levels."""
    ends = ("down_4.6", "down_8.3", "down_16.1", "down_32.3")
    return tuple(state[f"{prefix}{end}.weight"].shape[0] for end in ends)
