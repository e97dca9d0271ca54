"""MSCAN, the backbone of SegNeXt: blocks that weigh each place by strip convolutions of three lengths.

Parts carry the names that MMSegmentation gives them, so that its weights fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hardlook.models.click_models.clickability.architecture import Architecture

if TYPE_CHECKING:
    from torch import Tensor, nn

STRIPS = (7, 11, 21)
LAYER_SCALE = 0.01


def build_mscan(architecture: Architecture) -> nn.Module:
    """The backbone; its call takes (N, 3, S, S) and what is added after the stem, and gives the four stages' maps.

    >>> tiny = Architecture(dims=(8, 8, 16, 16), depths=(1, 1, 1, 1), mlp_ratios=(2, 2, 2, 2), head=32)
    >>> import torch
    >>> maps = build_mscan(tiny)(torch.zeros(1, 3, 64, 64), torch.zeros(1, 8, 16, 16))
    >>> [tuple(one.shape) for one in maps]
    [(1, 8, 16, 16), (1, 8, 8, 8), (1, 16, 4, 4), (1, 16, 2, 2)]
    """
    import torch
    from torch import nn

    def depthwise(channels: int, kernel: tuple[int, int]) -> nn.Conv2d:
        padding = (kernel[0] // 2, kernel[1] // 2)
        return nn.Conv2d(channels, channels, kernel, padding=padding, groups=channels)

    class GatingUnit(nn.Module):
        """What is around a place, near and along rows and columns, multiplied with the place."""

        def __init__(self, channels: int) -> None:
            super().__init__()
            self.conv0 = depthwise(channels, (5, 5))
            for number, length in enumerate(STRIPS):
                self.add_module(f"conv{number}_1", depthwise(channels, (1, length)))
                self.add_module(f"conv{number}_2", depthwise(channels, (length, 1)))
            self.conv3 = nn.Conv2d(channels, channels, 1)

        def forward(self, x: Tensor) -> Tensor:
            """(N, C, H, W) to the same."""
            near = self.conv0(x)
            around = near
            for number in range(len(STRIPS)):
                row, column = getattr(self, f"conv{number}_1"), getattr(self, f"conv{number}_2")
                around = around + column(row(near))
            gated: Tensor = self.conv3(around) * x
            return gated

    class Attention(nn.Module):
        """The gating unit between two channel mixes, with a shortcut."""

        def __init__(self, channels: int) -> None:
            super().__init__()
            self.proj_1 = nn.Conv2d(channels, channels, 1)
            self.activation = nn.GELU()
            self.spatial_gating_unit = GatingUnit(channels)
            self.proj_2 = nn.Conv2d(channels, channels, 1)

        def forward(self, x: Tensor) -> Tensor:
            """(N, C, H, W) to the same."""
            attended: Tensor = self.proj_2(self.spatial_gating_unit(self.activation(self.proj_1(x)))) + x
            return attended

    class Mlp(nn.Module):
        """Widen, filter by depth, narrow."""

        def __init__(self, channels: int, wide: int) -> None:
            super().__init__()
            self.fc1 = nn.Conv2d(channels, wide, 1)
            self.dwconv = depthwise(wide, (3, 3))
            self.act = nn.GELU()
            self.fc2 = nn.Conv2d(wide, channels, 1)

        def forward(self, x: Tensor) -> Tensor:
            """(N, C, H, W) to the same."""
            mixed: Tensor = self.fc2(self.act(self.dwconv(self.fc1(x))))
            return mixed

    class DropPath(nn.Module):
        """Leaves a branch out for some samples of a training batch, and makes up for it in the others."""

        def __init__(self, rate: float) -> None:
            super().__init__()
            self.rate = rate

        def forward(self, x: Tensor) -> Tensor:
            """(N, C, H, W) to the same, whole samples 0."""
            if not self.training or self.rate == 0:
                return x
            kept = torch.rand((len(x), 1, 1, 1), device=x.device) >= self.rate
            return x * (kept.to(x.dtype) / (1 - self.rate))

    class Block(nn.Module):
        """Attention and mixing, each normalised before and scaled after."""

        def __init__(self, channels: int, ratio: int, rate: float) -> None:
            super().__init__()
            self.norm1, self.attn = nn.BatchNorm2d(channels), Attention(channels)
            self.norm2, self.mlp = nn.BatchNorm2d(channels), Mlp(channels, channels * ratio)
            self.drop_path = DropPath(rate)
            self.layer_scale_1 = nn.Parameter(torch.full((channels,), LAYER_SCALE))
            self.layer_scale_2 = nn.Parameter(torch.full((channels,), LAYER_SCALE))

        def forward(self, x: Tensor) -> Tensor:
            """(N, C, H, W) to the same."""
            x = x + self.drop_path(self.layer_scale_1[:, None, None] * self.attn(self.norm1(x)))
            out: Tensor = x + self.drop_path(self.layer_scale_2[:, None, None] * self.mlp(self.norm2(x)))
            return out

    class Stem(nn.Module):
        """The image at a quarter of its size."""

        def __init__(self, channels: int) -> None:
            super().__init__()
            half = channels // 2
            first, second = nn.Conv2d(3, half, 3, 2, 1), nn.Conv2d(half, channels, 3, 2, 1)
            self.proj = nn.Sequential(first, nn.BatchNorm2d(half), nn.GELU(), second, nn.BatchNorm2d(channels))

        def forward(self, x: Tensor) -> Tensor:
            """(N, 3, S, S) to (N, C, S / 4, S / 4)."""
            small: Tensor = self.proj(x)
            return small

    class Halving(nn.Module):
        """Overlapping patches of a stage become the places of the next."""

        def __init__(self, inputs: int, outputs: int) -> None:
            super().__init__()
            self.proj, self.norm = nn.Conv2d(inputs, outputs, 3, 2, 1), nn.BatchNorm2d(outputs)

        def forward(self, x: Tensor) -> Tensor:
            """(N, C, H, W) to (N, D, H / 2, W / 2)."""
            half: Tensor = self.norm(self.proj(x))
            return half

    class Mscan(nn.Module):
        """Four stages, each normalised over its channels at the end."""

        def __init__(self) -> None:
            super().__init__()
            rates = iter(np.linspace(0, architecture.drop_path, sum(architecture.depths)).tolist())
            for stage, channels in enumerate(architecture.dims):
                embed = Halving(architecture.dims[stage - 1], channels) if stage else Stem(channels)
                ratio, depth = architecture.mlp_ratios[stage], architecture.depths[stage]
                blocks = nn.ModuleList([Block(channels, ratio, next(rates)) for _ in range(depth)])
                self.add_module(f"patch_embed{stage + 1}", embed)
                self.add_module(f"block{stage + 1}", blocks)
                self.add_module(f"norm{stage + 1}", nn.LayerNorm(channels))

        def forward(self, image: Tensor, added: Tensor) -> list[Tensor]:
            """Maps (N, dims[i], S / 2^(i+2), S / 2^(i+2)) from an image (N, 3, S, S) and (N, dims[0], S/4, S/4)."""
            x, maps = image, []
            for stage in range(len(architecture.dims)):
                x = getattr(self, f"patch_embed{stage + 1}")(x)
                x = x if stage else x + added
                for block in getattr(self, f"block{stage + 1}"):
                    x = block(x)
                x = getattr(self, f"norm{stage + 1}")(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2).contiguous()
                maps.append(x)
            return maps

    return Mscan()
