"""Plain convolutional backbones: four blocks of convolution, batch normalisation, activation and max pooling.

Conv64F: Vinyals et al., Matching Networks for One Shot Learning, NeurIPS 2016. The embedding of R2D2: Bertinetto et
al., Meta-learning with differentiable closed-form solvers, ICLR 2019.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


def activate(slope: float) -> nn.Module:
    """ReLU, leaky with a `slope` above 0."""
    return nn.LeakyReLU(slope) if slope else nn.ReLU()


class Conv64F(nn.Module):
    """Four blocks of 3 x 3 convolutions with `channels` filters; 84 pixels give maps of 5 x 5, vectors of 1,600.

    `slope` is that of a leaky ReLU, 0 for ReLU. Without `last_pool` block 4 is not pooled (10 x 10), without
    `pool_third` block 3 is not either. Without `running_statistics` batch normalisation keeps none: it goes by those of
    the batch at hand, also at test.
    """

    pooled_within = 2
    """The blocks up to this one end in their pooling; that of later ones is a layer of its own, as published."""

    def __init__(
        self,
        output: str = "vectors",
        *,
        channels: int = 64,
        slope: float = 0.0,
        last_pool: bool = True,
        pool_third: bool = True,
        running_statistics: bool = True,
    ) -> None:
        super().__init__()
        self.output, self.channels = output, channels
        widths, pooled = (3, channels, channels, channels), (True, True, pool_third, last_pool)
        for number, (width, pool) in enumerate(zip(widths, pooled, strict=True), start=1):
            norm = nn.BatchNorm2d(channels, track_running_stats=running_statistics)
            block = nn.Sequential(nn.Conv2d(width, channels, 3, padding=1), norm, activate(slope))
            self.add_module(f"layer{number}", block)
            if number <= self.pooled_within:
                block.append(nn.MaxPool2d(2))
            elif pool:
                self.add_module(f"layer{number}_maxpool", nn.MaxPool2d(2))

    def forward(self, images: Tensor) -> Tensor:
        """Vectors (n, C h w) or maps (n, C, h, w) of images (n, 3, H, W)."""
        x = images
        for layer in self.children():
            x = layer(x)
        return x.flatten(1) if self.output == "vectors" else x


class Conv32F(Conv64F):
    """Conv64F with 32 filters, vectors of 800; blocks 1 to 3 are always pooled."""

    pooled_within = 3

    def __init__(
        self, output: str = "vectors", *, channels: int = 32, slope: float = 0.0, last_pool: bool = True
    ) -> None:
        super().__init__(output, channels=channels, slope=slope, last_pool=last_pool)


class R2D2Embedding(nn.Module):
    """Four wider blocks; the vector joins the flattened maps of blocks 3 and 4 (79,872 numbers at 84 pixels).

    Blocks are activated after pooling; the last one only with `last_activation`. `dropout` acts on blocks 3 and 4.
    """

    def __init__(self, output: str = "vectors", *, last_activation: bool = False, dropout: float = 0.1) -> None:
        super().__init__()
        if output != "vectors":
            raise ValueError(f"the embedding of R2D2 gives vectors, not {output}")
        self.channels = 384 * 100 + 512 * 81
        widths = (3, 96, 192, 384, 512)
        for number, stride in enumerate((2, 2, 2, 1), start=1):
            width = widths[number]
            block = nn.Sequential(nn.Conv2d(widths[number - 1], width, 3, padding=1), nn.BatchNorm2d(width))
            block.append(nn.MaxPool2d(2, stride))
            if number < 4 or last_activation:
                block.append(activate(0.1))
            if number > 2:
                block.append(nn.Dropout(dropout))
            self.add_module(f"block{number}", block)

    def forward(self, images: Tensor) -> Tensor:
        """Vectors (n, D) of images (n, 3, H, W)."""
        x, kept = images, []
        for number, block in enumerate(self.children(), start=1):
            x = block(x)
            if number > 2:
                kept.append(x.flatten(1))
        return torch.cat(kept, 1)
