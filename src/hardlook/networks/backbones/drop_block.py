"""DropBlock: dropout of whole squares of a feature map.

Ghiasi, Lin and Le, DropBlock: a regularization method for convolutional networks, NeurIPS 2018.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

STEPS = 40_000  # training steps over which the share that is dropped grows to its full size


class DropBlock(nn.Module):
    """Drops squares of `size` pixels from maps (n, C, h, w) in training; the share grows with `step` to `rate`.

    The training loop sets `step` (`set_training_step`). Kept values are scaled by all / kept.
    """

    def __init__(self, rate: float, size: int) -> None:
        super().__init__()
        self.rate, self.size, self.step = rate, size, 0

    def forward(self, maps: Tensor) -> Tensor:
        """The maps, in training with squares of zeros."""
        rate = self.rate * min(1.0, self.step / STEPS)
        if not self.training or rate == 0:
            return maps
        height, width = maps.shape[2:]
        size = min(self.size, height, width)
        # The chance that a position is the corner of a square, so that `rate` of all positions are dropped.
        chance = rate / size**2 * height * width / ((height - size + 1) * (width - size + 1))
        corners = torch.rand(*maps.shape[:2], height - size + 1, width - size + 1, device=maps.device) < chance
        dropped = functional.max_pool2d(functional.pad(corners.to(maps.dtype), [size - 1] * 4), size, 1)
        kept = 1 - dropped
        return maps * kept * (kept.numel() / kept.sum().clamp(min=1))


def set_training_step(network: nn.Module, step: int) -> None:
    """Tell every DropBlock of a network which training step, from 0, comes next."""
    for module in network.modules():
        if isinstance(module, DropBlock):
            module.step = step
