"""Backbones that end in Brownian distance covariance.

Xie et al., Joint Distribution Matters: Deep Brownian Distance Covariance for Few-Shot Classification, CVPR 2022.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from hardlook.networks.backbones.resnet import build_trunk
from hardlook.networks.backbones.resnet12 import ResNet12, initialise
from hardlook.networks.precision import full_precision


class BdcPooling(nn.Module):
    """The upper triangle (n, r (r + 1) / 2) of the BDC matrix between the `r` channels of maps (n, C, h, w).

    Maps of other than `r` channels are reduced to `r` by a 1 x 1 convolution. `positions` (h w) is for the start of the
    temperature.
    """

    def __init__(self, inputs: int, r: int, positions: int) -> None:
        super().__init__()
        self.temperature = nn.Parameter(torch.full((1, 1), math.log(1 / (2 * positions))))
        self.conv_dr_block: nn.Module | None = None
        if inputs != r:
            reduction = nn.Conv2d(inputs, r, 1, bias=False)
            self.conv_dr_block = nn.Sequential(reduction, nn.BatchNorm2d(r), nn.ReLU())
            nn.init.kaiming_normal_(reduction.weight, a=0, mode="fan_out", nonlinearity="leaky_relu")

    def forward(self, maps: Tensor) -> Tensor:
        """One vector per map."""
        return self.pool((maps if self.conv_dr_block is None else self.conv_dr_block(maps)).flatten(2))

    @full_precision
    def pool(self, x: Tensor) -> Tensor:
        """The same of the values (n, r, h w) of `r` channels."""
        products = x @ x.transpose(1, 2)
        squares = products.diagonal(dim1=1, dim2=2)
        distances = (squares[:, :, None] + squares[:, None, :] - 2 * products).clamp(min=0)
        roots = (distances * self.temperature.exp() + 1e-5).sqrt()
        centred = roots - roots.mean(1, keepdim=True) - roots.mean(2, keepdim=True) + roots.mean((1, 2), keepdim=True)
        rows, columns = torch.triu_indices(x.shape[1], x.shape[1], device=x.device)
        return centred[:, rows, columns]


class ResNet12Bdc(ResNet12):
    """ResNet12 whose last stage is not pooled, then BDC of `r` channels (640 in the paper)."""

    def __init__(self, output: str = "vectors", *, r: int = 640, drop_rate: float = 0.1) -> None:
        if output != "vectors":
            raise ValueError(f"BDC gives vectors, not {output}")
        super().__init__("maps", drop_rate=drop_rate, pool_last=False)
        self.bdc_pool = BdcPooling(640, r, 100)
        self.channels = r * (r + 1) // 2

    def forward(self, images: Tensor) -> Tensor:
        """Vectors (n, r (r + 1) / 2)."""
        return self.bdc_pool(self.maps(images))  # type: ignore[no-any-return]


class ResNet18Bdc(nn.Module):
    """ResNet18 with a 7 x 7 stem and no stride in its last stage, then BDC of `r` channels."""

    def __init__(self, output: str = "vectors", *, r: int = 256) -> None:
        super().__init__()
        if output != "vectors":
            raise ValueError(f"BDC gives vectors, not {output}")
        self.trunk = build_trunk(2, (1, 2, 2, 1))
        initialise(self, "relu")
        self.bdc_pool = BdcPooling(512, r, 196)
        self.channels = r * (r + 1) // 2

    def forward(self, images: Tensor) -> Tensor:
        """Vectors (n, r (r + 1) / 2)."""
        return self.bdc_pool(self.trunk(images))  # type: ignore[no-any-return]
