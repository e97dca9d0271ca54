"""Layer normalisation over the channels of each place of a map, as SAM's convolutions use it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor, nn

EPSILON = 1e-6


def channel_norm(channels: int) -> nn.Module:
    """A module from (N, C, H, W) to the same: mean 0 and variance 1 over C at each place, then scaled and shifted.

    >>> import torch
    >>> norm = channel_norm(2)
    >>> [round(value, 3) for value in norm(torch.tensor([1.0, 5.0]).view(1, 2, 1, 1)).flatten().tolist()]
    [-1.0, 1.0]
    """
    from torch import nn

    class ChannelNorm(nn.LayerNorm):
        """The channels go last for a moment."""

        def forward(self, input: Tensor) -> Tensor:
            """(N, C, H, W) to (N, C, H, W)."""
            return super().forward(input.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)

    return ChannelNorm(channels, eps=EPSILON)
