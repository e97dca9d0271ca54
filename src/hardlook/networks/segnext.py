"""SegNeXt: the backbone MSCAN and the decoder LightHam, with the architecture's settings.

Guo and others, "SegNeXt: Rethinking convolutional attention design for semantic segmentation", NeurIPS 2022; the
decoder is of Geng and others, "Is attention better than matrix decomposition?", ICLR 2021. Parts have the names that
MMSegmentation gives them, so that its weights fit.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hardlook.randomness import generator

if TYPE_CHECKING:
    from torch import Tensor, nn

STAGES = 4
_MAX_COUNT = 1 << 16


@dataclass(frozen=True)
class Architecture:
    """One entry per stage in `dims`, `depths` and `mlp_ratios`; strides of the stages are 4, 8, 16 and 32.

    `head` channels in the decoder, normalised in `groups`; the factorisation has `rank` bases and takes
    `train_steps` or `eval_steps`. `drop_path` is the rate of the last block (the first has 0), `dropout` that of
    the last layer; both act in training only.

    >>> Architecture() == Architecture.from_json(Architecture().to_json())
    True
    """

    dims: tuple[int, ...] = (64, 128, 320, 512)
    depths: tuple[int, ...] = (3, 3, 12, 3)
    mlp_ratios: tuple[int, ...] = (8, 8, 4, 4)
    head: int = 512
    groups: int = 32
    rank: int = 16
    train_steps: int = 6
    eval_steps: int = 7
    drop_path: float = 0.1
    dropout: float = 0.1

    def __post_init__(self) -> None:
        counts: tuple[object, ...] = (*self.dims, *self.depths, *self.mlp_ratios, self.head, self.groups, self.rank)
        if not all(isinstance(count, int) and 0 < count <= _MAX_COUNT for count in counts):
            raise ValueError(f"expected whole numbers from 1 to {_MAX_COUNT} in every field")
        lengths = {len(self.dims), len(self.depths), len(self.mlp_ratios)}
        if lengths != {STAGES}:
            raise ValueError(f"expected {STAGES} stages in dims, depths and mlp_ratios, got lengths {sorted(lengths)}")
        if self.head % self.groups:
            raise ValueError(f"expected the head's channels to be a multiple of {self.groups} groups, got {self.head}")

    def count_least_parameters(self) -> int:
        """A lower bound of the number of parameters: the blocks' two linear layers and the decoder's own.

        >>> Architecture().count_least_parameters()
        17367040
        """
        blocks = zip(self.dims, self.depths, self.mlp_ratios, strict=True)
        return sum(2 * depth * ratio * channels**2 for channels, depth, ratio in blocks) + self.head**2

    def to_json(self) -> dict[str, Any]:
        """The fields as JSON values."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Architecture:
        """The same from `to_json`; names that are not known are an error."""
        if unknown := sorted(set(values) - {field.name for field in fields(cls)}):
            raise ValueError(f"expected the fields of an architecture, got {', '.join(unknown)} as well")
        settings: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in values.items()
        }
        return cls(**settings)


SEGNEXT_B = Architecture()

STRIPS = (7, 11, 21)
LAYER_SCALE = 0.01


def build_mscan(architecture: Architecture) -> nn.Module:
    """The backbone: blocks that weigh each place by strip convolutions of three lengths.

    Its call takes (N, 3, S, S) and what is added after the stem, and gives the four stages' maps.

    >>> tiny = Architecture(dims=(8, 8, 16, 16), depths=(1, 1, 1, 1), mlp_ratios=(2, 2, 2, 2), head=32)
    >>> import torch
    >>> maps = build_mscan(tiny)(torch.zeros(1, 3, 64, 64), torch.zeros(1, 8, 16, 16))
    >>> [tuple(one.shape) for one in maps]
    [(1, 8, 16, 16), (1, 8, 8, 8), (1, 16, 4, 4), (1, 16, 2, 2)]
    """
    import torch
    from torch import nn

    def depthwise(channels: int, kernel: tuple[int, int]) -> nn.Conv2d:
        return nn.Conv2d(channels, channels, kernel, padding=(kernel[0] // 2, kernel[1] // 2), groups=channels)

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

    def mlp(channels: int, wide: int) -> nn.Module:
        """Widen, filter by depth, narrow: (N, C, H, W) to the same."""
        widen, filter_ = nn.Conv2d(channels, wide, 1), depthwise(wide, (3, 3))
        return nn.Sequential(OrderedDict(fc1=widen, dwconv=filter_, act=nn.GELU(), fc2=nn.Conv2d(wide, channels, 1)))

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
            self.norm2, self.mlp = nn.BatchNorm2d(channels), mlp(channels, channels * ratio)
            self.drop_path = DropPath(rate)
            self.layer_scale_1 = nn.Parameter(torch.full((channels,), LAYER_SCALE))
            self.layer_scale_2 = nn.Parameter(torch.full((channels,), LAYER_SCALE))

        def forward(self, x: Tensor) -> Tensor:
            """(N, C, H, W) to the same."""
            x = x + self.drop_path(self.layer_scale_1[:, None, None] * self.attn(self.norm1(x)))
            out: Tensor = x + self.drop_path(self.layer_scale_2[:, None, None] * self.mlp(self.norm2(x)))
            return out

    def stem(channels: int) -> nn.Module:
        """The image at a quarter of its size: (N, 3, S, S) to (N, C, S / 4, S / 4)."""
        half = channels // 2
        first, second = nn.Conv2d(3, half, 3, 2, 1), nn.Conv2d(half, channels, 3, 2, 1)
        layers = nn.Sequential(first, nn.BatchNorm2d(half), nn.GELU(), second, nn.BatchNorm2d(channels))
        return nn.Sequential(OrderedDict(proj=layers))

    def downsample(inputs: int, outputs: int) -> nn.Module:
        """Overlapping patches of a stage become the places of the next: (N, C, H, W) to (N, D, H / 2, W / 2)."""
        return nn.Sequential(OrderedDict(proj=nn.Conv2d(inputs, outputs, 3, 2, 1), norm=nn.BatchNorm2d(outputs)))

    class Mscan(nn.Module):
        """Four stages, each normalised over its channels at the end."""

        def __init__(self) -> None:
            super().__init__()
            rates = iter(np.linspace(0, architecture.drop_path, sum(architecture.depths)).tolist())
            for stage, channels in enumerate(architecture.dims):
                embed = downsample(architecture.dims[stage - 1], channels) if stage else stem(channels)
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


EPSILON = 1e-6


def first_bases(channels: int, rank: int, seed: int) -> NDArray[np.float32]:
    """(channels, rank) float32 columns of length 1, uniform before: where every factorisation starts.

    >>> bases = first_bases(4, 2, seed=0)
    >>> bases.shape, np.allclose((bases**2).sum(0), 1), bool((bases >= 0).all())
    ((4, 2), True, True)
    """
    drawn = generator(seed, "clickability", "bases").random((channels, rank))
    return np.asarray((drawn / np.sqrt((drawn**2).sum(0))).astype(np.float32))


def build_light_ham(architecture: Architecture, seed: int) -> nn.Module:
    """The decoder, of low rank: the four stages' maps to one value per place of the finest, (N, 1, h, w)."""
    import torch
    import torch.nn.functional as functional
    from torch import nn

    def conv_norm(inputs: int, outputs: int) -> nn.Module:
        """A channel mix, normalised in groups: (N, inputs, H, W) to (N, outputs, H, W)."""
        convolution = nn.Conv2d(inputs, outputs, 1, bias=False)
        return nn.Sequential(OrderedDict(conv=convolution, gn=nn.GroupNorm(architecture.groups, outputs)))

    class Factorisation(nn.Module):
        """Non-negative matrix factorisation; bases drawn at every call would give many answers: a saved buffer."""

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer(
                "bases", torch.from_numpy(first_bases(architecture.head, architecture.rank, seed))[None]
            )

        def forward(self, x: Tensor) -> Tensor:
            """(N, C, H, W) at least 0, to its approximation of rank `rank`; always in float32."""
            with torch.autocast(x.device.type, enabled=False):
                columns = x.float().flatten(2)
                rows = columns.transpose(1, 2)
                bases = self.get_buffer("bases").expand(len(x), -1, -1)
                shares = torch.softmax(rows @ bases, -1)
                for _ in range(architecture.train_steps if self.training else architecture.eval_steps):
                    shares = updated(shares, rows @ bases, bases)
                    bases = updated(bases, columns @ shares, shares)
                shares = updated(shares, rows @ bases, bases)
                return (bases @ shares.transpose(1, 2)).view(x.shape)

    def updated(factor: Tensor, numerator: Tensor, other: Tensor) -> Tensor:
        """One multiplicative update of a factor against the other."""
        return factor * numerator / (factor @ (other.transpose(1, 2) @ other) + EPSILON)

    class Hamburger(nn.Module):
        """The factorisation between two channel mixes, with a shortcut."""

        def __init__(self) -> None:
            super().__init__()
            self.ham_in = nn.Sequential(OrderedDict(conv=nn.Conv2d(architecture.head, architecture.head, 1)))
            self.ham = Factorisation()
            self.ham_out = conv_norm(architecture.head, architecture.head)

        def forward(self, x: Tensor) -> Tensor:
            """(N, C, H, W) to the same."""
            return functional.relu(x + self.ham_out(self.ham(functional.relu(self.ham_in(x)))))

    class LightHam(nn.Module):
        """Stages joined, squeezed, factorised, aligned and read out."""

        def __init__(self) -> None:
            super().__init__()
            self.squeeze = conv_norm(sum(architecture.dims), architecture.head)
            self.hamburger = Hamburger()
            self.align = conv_norm(architecture.head, architecture.head)
            self.dropout = nn.Dropout2d(architecture.dropout)
            self.conv_seg = nn.Conv2d(architecture.head, 1, 1)

        def forward(self, maps: Sequence[Tensor]) -> Tensor:
            """(N, 1, h, w) from maps (N, C_i, h_i, w_i), the first the finest."""
            finest = maps[0].shape[2:]
            coarse = [functional.interpolate(one, size=finest, mode="bilinear") for one in maps[1:]]
            x = functional.relu(self.squeeze(torch.cat([maps[0], *coarse], dim=1)))
            x = functional.relu(self.align(self.hamburger(x)))
            read: Tensor = self.conv_seg(self.dropout(x))
            return read

    return LightHam()
