"""TinyViT as MobileSAM's image encoder: convolutions first, then attention in windows.

Wu et al., "TinyViT: Fast pretraining distillation for small vision transformers", ECCV 2022; Zhang et al., "Faster
Segment Anything", 2023, who keep stride 16 at the last stage and add SAM's neck. Modules are named as in the
published weights.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from hardlook.networks.sam import build_channel_norm

if TYPE_CHECKING:
    from torch import Tensor, nn

WIDTHS = (64, 128, 160, 320)
DEPTHS = (2, 2, 6, 2)
HEADS = (2, 4, 5, 10)
WINDOWS = (7, 7, 14, 7)

STRIDES = (2, 2, 1)
"""Of the downsampling layers between stages; the last one keeps the resolution."""

EXPANSION = 4
CHANNELS = 256
CLASSES = 1000


def compute_relative_position_index(side: int) -> list[list[int]]:
    """Which learnt bias each pair of window cells uses, (side^2, side^2): one per distance in rows and columns.

    >>> compute_relative_position_index(2)
    [[0, 1, 2, 3], [1, 0, 3, 2], [2, 3, 0, 1], [3, 2, 1, 0]]
    """
    cells = [(row, column) for row in range(side) for column in range(side)]
    return [[abs(r - s) * side + abs(c - d) for s, d in cells] for r, c in cells]


def build_tiny_vit() -> nn.Module:
    """The encoder with random weights: (N, 3, 16 h, 16 w) to (N, 256, h, w)."""
    import torch
    from torch import nn
    from torch.nn.functional import gelu, pad

    def conv_norm(inputs: int, outputs: int, kernel: int = 1, stride: int = 1, groups: int = 1) -> nn.Module:
        convolution = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
        return nn.Sequential(OrderedDict(c=convolution, bn=nn.BatchNorm2d(outputs)))

    def mlp(width: int) -> nn.Module:
        wide, narrow = nn.Linear(width, EXPANSION * width), nn.Linear(EXPANSION * width, width)
        return nn.Sequential(OrderedDict(norm=nn.LayerNorm(width), fc1=wide, act=nn.GELU(), fc2=narrow))

    class MBConv(nn.Module):
        """1x1, depthwise 3x3 and 1x1 convolutions; with a shortcut it is a block, without one a downsampling layer."""

        def __init__(self, inputs: int, wide: int, outputs: int, stride: int, shortcut: bool) -> None:
            super().__init__()
            self.conv1 = conv_norm(inputs, wide)
            self.conv2 = conv_norm(wide, wide, 3, stride, groups=wide)
            self.conv3 = conv_norm(wide, outputs)
            self.shortcut = shortcut

        def forward(self, x: Tensor) -> Tensor:
            """(N, inputs, H, W) to (N, outputs, H / stride, W / stride)."""
            y: Tensor = self.conv3(gelu(self.conv2(gelu(self.conv1(x)))))
            return gelu(x + y) if self.shortcut else y

    class WindowAttention(nn.Module):
        """Every cell of a window attends to all of them, with a learnt bias for each relative position."""

        def __init__(self, width: int, heads: int, side: int) -> None:
            super().__init__()
            self.heads = heads
            self.norm = nn.LayerNorm(width)
            self.qkv = nn.Linear(width, 3 * width)
            self.proj = nn.Linear(width, width)
            self.attention_biases = nn.Parameter(torch.zeros(heads, side * side))
            index = torch.tensor(compute_relative_position_index(side))
            self.register_buffer("relative_position_index", index, persistent=False)

        def forward(self, x: Tensor) -> Tensor:
            """(windows, side^2, width) to the same."""
            # Channels are ordered by head, then query, key and value, so heads are split first.
            query, key, value = self.qkv(self.norm(x)).unflatten(2, (self.heads, -1)).transpose(1, 2).chunk(3, dim=-1)
            biases = self.attention_biases[:, self.get_buffer("relative_position_index")]
            weights = (query @ key.mT * query.shape[-1] ** -0.5 + biases).softmax(-1)
            out: Tensor = self.proj((weights @ value).transpose(1, 2).flatten(2))
            return out

    class WindowBlock(nn.Module):
        """Attention in windows, a depthwise convolution across them, and an MLP."""

        def __init__(self, width: int, heads: int, side: int) -> None:
            super().__init__()
            self.side = side
            self.attn = WindowAttention(width, heads, side)
            self.local_conv = conv_norm(width, width, 3, groups=width)
            self.mlp = mlp(width)

        def forward(self, x: Tensor) -> Tensor:
            """(N, width, H, W) to the same."""
            x = self.local_conv(x + self.attend_in_windows(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2))
            cells = x.permute(0, 2, 3, 1)
            out: Tensor = (cells + self.mlp(cells)).permute(0, 3, 1, 2)
            return out

        def attend_in_windows(self, x: Tensor) -> Tensor:
            """Attention within each window, (N, H, W, width) to the same; zero-padded to whole windows inside."""
            height, width = x.shape[1:3]
            x = pad(x, (0, 0, 0, -width % self.side, 0, -height % self.side))
            down, across = x.shape[1] // self.side, x.shape[2] // self.side
            grid = x.view(len(x), down, self.side, across, self.side, -1).transpose(2, 3)
            cells = self.attn(grid.flatten(3, 4).flatten(0, 2)).view(grid.shape)
            whole: Tensor = cells.transpose(2, 3).flatten(3, 4).flatten(1, 2)
            return whole[:, :height, :width]

    def stage(number: int) -> nn.Module:
        """Blocks, then downsampling to the next width: (N, width, H, W) to (N, next width, H / stride, W / stride)."""
        width = WIDTHS[number]
        blocks = nn.Sequential()
        for _ in range(DEPTHS[number]):
            if number == 0:
                blocks.append(MBConv(width, EXPANSION * width, width, 1, shortcut=True))
            else:
                blocks.append(WindowBlock(width, HEADS[number], WINDOWS[number]))
        if number == len(WIDTHS) - 1:
            return nn.Sequential(OrderedDict(blocks=blocks))
        following = WIDTHS[number + 1]
        step = MBConv(width, following, following, STRIDES[number], shortcut=False)
        return nn.Sequential(OrderedDict(blocks=blocks, downsample=step))

    def stem() -> nn.Module:
        """Two strided convolutions: (N, 3, H, W) to (N, 64, H / 4, W / 4)."""
        half = WIDTHS[0] // 2
        layers = nn.Sequential(conv_norm(3, half, 3, 2), nn.GELU(), conv_norm(half, WIDTHS[0], 3, 2))
        return nn.Sequential(OrderedDict(seq=layers))

    class TinyViT(nn.Module):
        """Stem, four stages, neck; the ImageNet classifier of the weights is kept and never used."""

        def __init__(self) -> None:
            super().__init__()
            self.patch_embed = stem()
            self.layers = nn.Sequential(*(stage(number) for number in range(len(WIDTHS))))
            self.norm_head, self.head = nn.LayerNorm(WIDTHS[-1]), nn.Linear(WIDTHS[-1], CLASSES)
            self.neck = nn.Sequential(
                nn.Conv2d(WIDTHS[-1], CHANNELS, 1, bias=False),
                build_channel_norm(CHANNELS),
                nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1, bias=False),
                build_channel_norm(CHANNELS),
            )

        def forward(self, x: Tensor) -> Tensor:
            """(N, 3, 16 h, 16 w), normalised, to (N, 256, h, w)."""
            out: Tensor = self.neck(self.layers(self.patch_embed(x)))
            return out

    return TinyViT()
