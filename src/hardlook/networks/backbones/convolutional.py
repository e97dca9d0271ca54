"""Plain convolutional backbones: four blocks of convolution, batch normalisation, activation and max pooling.

Conv64F: Vinyals et al., Matching Networks for One Shot Learning, NeurIPS 2016. The embedding of R2D2: Bertinetto et
al., Meta-learning with differentiable closed-form solvers, ICLR 2019.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from hardlook.networks.kernels.fused_norm import FusedNorm, is_plain


def activate(slope: float) -> nn.Module:
    """ReLU, leaky with a `slope` above 0."""
    return nn.LeakyReLU(slope) if slope else nn.ReLU()


class ConvolutionBlock(nn.Sequential):
    """A convolution, batch normalisation, an activation and, in most blocks, max pooling by 2."""

    fused_norms = False
    """Whether a training step on a GPU takes all but the convolution in one (`fuse_norms`)."""

    def forward(self, x: Tensor) -> Tensor:
        """Maps of maps or images (n, C, h, w)."""
        layers = list(self)
        if self._fits(x, layers):
            return self._apply_at_once(x, layers)
        return super().forward(x)  # type: ignore[no-any-return, no-untyped-call]

    def call_with(self, x: Tensor, pooling: nn.Module) -> Tensor:
        """What `pooling`, a layer behind the block, makes of the block's maps."""
        layers = [*self, pooling]
        # What listens to the block expects its own maps.
        if is_plain(self, ConvolutionBlock) and self._fits(x, layers):
            return self._apply_at_once(x, layers)
        return pooling(self(x))  # type: ignore[no-any-return]

    def _fits(self, x: Tensor, layers: Sequence[nn.Module]) -> bool:
        """Whether all layers but the first can be taken in one."""
        if not self.fused_norms or not 3 <= len(layers) <= 4:
            return False
        convolution, norm, activation, *pool = layers
        return (
            is_plain(convolution, nn.Conv2d)
            and is_plain(activation, nn.ReLU, nn.LeakyReLU)
            and _slope_of(activation) >= 0
            and all(map(_halves, pool))
            and FusedNorm.fits(x, norm)
        )

    @staticmethod
    def _apply_at_once(x: Tensor, layers: Sequence[Any]) -> Tensor:
        convolution, norm, activation, *pool = layers
        maps = convolution._conv_forward(x, convolution.weight, None)
        return FusedNorm.apply(maps, norm, slope=_slope_of(activation), pool=bool(pool), bias=convolution.bias)


def _slope_of(activation: nn.Module) -> float:
    return activation.negative_slope if isinstance(activation, nn.LeakyReLU) else 0.0


def _halves(pool: Any) -> bool:
    """Whether a layer is max pooling of squares of 2 x 2, those at the edge left out where they are not whole."""
    if not is_plain(pool, nn.MaxPool2d) or pool.ceil_mode or pool.return_indices:
        return False
    sizes = ((pool.kernel_size, 2), (pool.stride, 2), (pool.padding, 0), (pool.dilation, 1))
    return all(found in (wanted, (wanted, wanted)) for found, wanted in sizes)


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
            block = ConvolutionBlock(nn.Conv2d(width, channels, 3, padding=1), norm, activate(slope))
            self.add_module(f"layer{number}", block)
            if number <= self.pooled_within:
                block.append(nn.MaxPool2d(2))
            elif pool:
                self.add_module(f"layer{number}_maxpool", nn.MaxPool2d(2))

    def forward(self, images: Tensor) -> Tensor:
        """Vectors (n, C h w) or maps (n, C, h, w) of images (n, 3, H, W)."""
        x = images
        layers = list(self.children())
        while layers:
            layer = layers.pop(0)
            if isinstance(layer, ConvolutionBlock) and layers and isinstance(layers[0], nn.MaxPool2d):
                x = layer.call_with(x, layers.pop(0))
            else:
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
