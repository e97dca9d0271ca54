"""SAM's prompt encoder: clicks become tokens, a mask becomes a map.

Kirillov et al., "Segment Anything", ICCV 2023. The names of the parts are those of the published weights; the two
corners of a box are among them and never used here.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hardlook.models.interactive.channel_norm import channel_norm

if TYPE_CHECKING:
    from torch import Tensor, nn

CHANNELS = 256
GRID = 64
SIDE = 1024
"""Of the square that images are fitted into, in pixels; the grid has a cell of 16 x 16 of them."""
LABELS = 4


def build_prompt_encoder() -> nn.Module:
    """The encoder with random weights; its methods are `tokens`, `mask` and `grid`."""
    import torch
    from torch import nn

    class Positions(nn.Module):
        """Places in the unit square as sines and cosines of random frequencies."""

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("positional_encoding_gaussian_matrix", torch.randn(2, CHANNELS // 2))

        def forward(self, places: Tensor) -> Tensor:
            """(..., 2) as x, y in [0, 1] to (..., 256)."""
            frequencies = self.get_buffer("positional_encoding_gaussian_matrix")
            angles = 2 * math.pi * ((2 * places - 1) @ frequencies)
            return torch.cat([angles.sin(), angles.cos()], dim=-1)

    class PromptEncoder(nn.Module):
        """Learnt vectors for what a token is, beside the sines for where it is."""

        def __init__(self) -> None:
            super().__init__()
            self.pe_layer = Positions()
            self.point_embeddings = nn.ModuleList(nn.Embedding(1, CHANNELS) for _ in range(LABELS))
            self.not_a_point_embed = nn.Embedding(1, CHANNELS)
            self.no_mask_embed = nn.Embedding(1, CHANNELS)
            self.mask_downscaling = nn.Sequential(
                nn.Conv2d(1, 4, 2, 2),
                channel_norm(4),
                nn.GELU(),
                nn.Conv2d(4, 16, 2, 2),
                channel_norm(16),
                nn.GELU(),
                nn.Conv2d(16, CHANNELS, 1),
            )

        def tokens(self, points: Tensor, positive: Tensor) -> Tensor:
            """Points (N, n, 2) in pixels of the square and signs (N, n) bool to (N, n + 1, 256).

            The last token says that no box follows.
            """
            zero = torch.zeros(1, dtype=torch.long, device=points.device)
            surplus, wanted = (self.point_embeddings[label](zero) for label in (0, 1))
            # A pixel's number is its corner to the network: half a pixel on is its centre.
            places = self.pe_layer((points + 0.5) / SIDE)
            clicked = places + torch.where(positive[..., None], wanted, surplus)
            return torch.cat([clicked, self.not_a_point_embed.weight.expand(len(points), 1, CHANNELS)], dim=1)

        def mask(self, logits: Tensor | None) -> Tensor:
            """Logits (N, 256, 256) of masks to (N, 4096, 256); without any, one vector for all (1, 1, 256)."""
            if logits is None:
                return self.no_mask_embed.weight[None]
            cells: Tensor = self.mask_downscaling(logits[:, None]).flatten(2).mT
            return cells

        def grid(self) -> Tensor:
            """Where the cells of the image's map are, (4096, 256), row by row."""
            centres = (torch.arange(GRID, device=self.no_mask_embed.weight.device) + 0.5) / GRID
            rows, columns = torch.meshgrid(centres, centres, indexing="ij")
            places: Tensor = self.pe_layer(torch.stack([columns, rows], dim=-1).flatten(0, 1))
            return places

    return PromptEncoder()
