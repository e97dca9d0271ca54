"""Plain convolutional backbones: four blocks of convolution, batch normalisation, activation and max pooling.

Conv64F: Vinyals et al., Matching Networks for One Shot Learning, NeurIPS 2016. The embedding of R2D2: Bertinetto et
al., Meta-learning with differentiable closed-form solvers, ICLR 2019.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class Conv64F(nn.Module):
    """Four blocks of 3 x 3 convolutions with `channels` filters; 84 pixels give maps of 5 x 5, vectors of 1,600.

    `slope` is that of a leaky ReLU, 0 for ReLU. Without `last_pool` block 4 is not pooled (10 x 10), without
    `pool_third` block 3 is not either.
    """

    def __init__(
        self,
        output: str = "vectors",
        *,
        channels: int = 64,
        slope: float = 0.0,
        last_pool: bool = True,
        pool_third: bool = True,
    ) -> None:
        super().__init__()
        self.output, self.channels = output, channels
        self.slope = slope
        self.pooled = (True, True, pool_third, last_pool)
        for number, width in enumerate((3, channels, channels, channels), start=1):
            block = nn.Sequential(nn.Conv2d(width, channels, 3, padding=1), nn.BatchNorm2d(channels))
            self.add_module(f"layer{number}", block)

    def forward(self, images: Tensor) -> Tensor:
        """Vectors (n, C h w) or maps (n, C, h, w) of images (n, 3, H, W)."""
        x = images
        for number, pooled in enumerate(self.pooled, start=1):
            x = functional.leaky_relu(self.get_submodule(f"layer{number}")(x), self.slope)
            x = functional.max_pool2d(x, 2) if pooled else x
        return x.flatten(1) if self.output == "vectors" else x


class Conv32F(Conv64F):
    """Conv64F with 32 filters; vectors of 800."""

    def __init__(self, output: str = "vectors", *, channels: int = 32, slope: float = 0.0) -> None:
        super().__init__(output, channels=channels, slope=slope)


class R2D2Embedding(nn.Module):
    """Four wider blocks; the vector joins the flattened maps of blocks 3 and 4 (79,872 numbers at 84 pixels).

    Blocks are activated after pooling; the last one only with `last_activation`. `dropout` acts on blocks 3 and 4.
    """

    def __init__(self, output: str = "vectors", *, last_activation: bool = False, dropout: float = 0.1) -> None:
        super().__init__()
        if output != "vectors":
            raise ValueError(f"the embedding of R2D2 gives vectors, not {output}")
        self.last_activation, self.dropout, self.channels = last_activation, dropout, 384 * 100 + 512 * 81
        widths = (3, 96, 192, 384, 512)
        for number in range(1, 5):
            convolution = nn.Conv2d(widths[number - 1], widths[number], 3, padding=1)
            self.add_module(f"block{number}", nn.Sequential(convolution, nn.BatchNorm2d(widths[number])))

    def forward(self, images: Tensor) -> Tensor:
        """Vectors (n, D) of images (n, 3, H, W)."""
        x, kept = images, []
        for number, stride in enumerate((2, 2, 2, 1), start=1):
            x = functional.max_pool2d(self.get_submodule(f"block{number}")(x), 2, stride)
            if number < 4 or self.last_activation:
                x = functional.leaky_relu(x, 0.1)
            if number > 2:
                x = functional.dropout(x, self.dropout, self.training)
                kept.append(x.flatten(1))
        return torch.cat(kept, 1)
