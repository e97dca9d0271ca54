"""SegNeXt's decoder: all stages on one grid, seen through a matrix of low rank.

Geng and others, "Is attention better than matrix decomposition?", ICLR 2021. Parts carry MMSegmentation's names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hardlook.models.click_models.clickability.architecture import Architecture
from hardlook.randomness import generator

if TYPE_CHECKING:
    from torch import Tensor, nn

EPSILON = 1e-6


def first_bases(channels: int, rank: int, seed: int) -> NDArray[np.float32]:
    """(channels, rank) float32 columns of length 1, uniform before: where every factorisation starts.

    >>> bases = first_bases(4, 2, seed=0)
    >>> bases.shape, np.allclose((bases**2).sum(0), 1), bool((bases >= 0).all())
    ((4, 2), True, True)
    """
    drawn = generator(seed, "clickability", "bases").random((channels, rank))
    bases: NDArray[np.float32] = (drawn / np.sqrt((drawn**2).sum(0))).astype(np.float32)
    return bases


def build_light_ham(architecture: Architecture, seed: int) -> nn.Module:
    """The decoder; its call takes the four stages' maps and gives one value a place of the finest, (N, 1, h, w)."""
    import torch
    import torch.nn.functional as functional
    from torch import nn

    class ConvNorm(nn.Module):
        """A channel mix, normalised in groups unless it has a bias instead."""

        def __init__(self, inputs: int, outputs: int, *, normalised: bool = True) -> None:
            super().__init__()
            self.conv = nn.Conv2d(inputs, outputs, 1, bias=not normalised)
            self.gn: nn.Module | None = nn.GroupNorm(architecture.groups, outputs) if normalised else None

        def forward(self, x: Tensor) -> Tensor:
            """(N, inputs, H, W) to (N, outputs, H, W)."""
            mixed: Tensor = self.conv(x)
            return mixed if self.gn is None else self.gn(mixed)

    class Factorisation(nn.Module):
        """Non-negative matrix factorisation by multiplicative updates.

        The bases at the start are a buffer, drawn once from the seed and saved with the weights: drawn anew at every
        call, they would give one input many answers.
        """

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
            self.ham_in = ConvNorm(architecture.head, architecture.head, normalised=False)
            self.ham = Factorisation()
            self.ham_out = ConvNorm(architecture.head, architecture.head)

        def forward(self, x: Tensor) -> Tensor:
            """(N, C, H, W) to the same."""
            return functional.relu(x + self.ham_out(self.ham(functional.relu(self.ham_in(x)))))

    class LightHam(nn.Module):
        """Stages joined, squeezed, factorised, aligned and read out."""

        def __init__(self) -> None:
            super().__init__()
            self.squeeze = ConvNorm(sum(architecture.dims), architecture.head)
            self.hamburger = Hamburger()
            self.align = ConvNorm(architecture.head, architecture.head)
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
