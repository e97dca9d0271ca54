"""SAM's prompt encoder (clicks become tokens, a mask becomes a map) and mask decoder (each mask token draws its mask).

Kirillov et al., "Segment Anything", ICCV 2023. The names of the parts are those of the published weights; the two
corners of a box are among them and never used here.
"""

from __future__ import annotations

import math
from collections import OrderedDict
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
            angles = 2 * math.pi * ((2 * places - 1) @ self.get_buffer("positional_encoding_gaussian_matrix"))
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
            """Points (N, n, 2) in the square's pixels, signs (N, n) bool, to (N, n + 1, 256), the last for no box."""
            zero = torch.zeros(1, dtype=torch.long, device=points.device)
            surplus, wanted = (self.point_embeddings[label](zero) for label in (0, 1))
            # A pixel's number is its corner to the network: half a pixel on is its centre.
            clicked = self.pe_layer((points + 0.5) / SIDE) + torch.where(positive[..., None], wanted, surplus)
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


LAYERS = 2
HEADS = 8
HIDDEN = 2048

MASKS = 4
"""The single mask, then the three among which the predicted IoU chooses."""


def build_mask_decoder() -> nn.Module:
    """The decoder with random weights; see its `forward`."""
    import torch
    from torch import nn
    from torch.nn.functional import relu

    def mlp() -> nn.Module:
        wide, narrow = nn.Linear(CHANNELS, HIDDEN), nn.Linear(HIDDEN, CHANNELS)
        return nn.Sequential(OrderedDict(lin1=wide, act=nn.ReLU(), lin2=narrow))

    class Attention(nn.Module):
        """Attention of eight heads, narrower inside than outside where it looks at the image."""

        def __init__(self, inner: int) -> None:
            super().__init__()
            self.q_proj, self.k_proj, self.v_proj = (nn.Linear(CHANNELS, inner) for _ in range(3))
            self.out_proj = nn.Linear(inner, CHANNELS)

        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            """(N, n, 256), (N, m, 256) twice, to (N, n, 256); a first axis of 1 serves all of the other's."""
            query, key, value = (
                part.unflatten(-1, (HEADS, -1)).transpose(1, 2)
                for part in (self.q_proj(q), self.k_proj(k), self.v_proj(v))
            )
            weights = (query @ key.mT * query.shape[-1] ** -0.5).softmax(-1)
            out: Tensor = self.out_proj((weights @ value).transpose(1, 2).flatten(2))
            return out

    class TwoWayLayer(nn.Module):
        """Tokens among themselves, tokens to the image, tokens alone, the image to the tokens."""

        def __init__(self, first: bool) -> None:
            super().__init__()
            self.first = first
            self.self_attn = Attention(CHANNELS)
            self.cross_attn_token_to_image = Attention(CHANNELS // 2)
            self.cross_attn_image_to_token = Attention(CHANNELS // 2)
            self.mlp = mlp()
            self.norm1, self.norm2, self.norm3, self.norm4 = (nn.LayerNorm(CHANNELS) for _ in range(4))

        def forward(self, tokens: Tensor, image: Tensor, start: Tensor, grid: Tensor) -> tuple[Tensor, Tensor]:
            """Tokens (N, n, 256) and image (N or 1, 4096, 256); `start` and `grid` say what and where they are."""
            if self.first:  # the tokens still are what `start` says, and what they learn replaces it
                tokens = self.self_attn(tokens, tokens, tokens)
            else:
                placed = tokens + start
                tokens = tokens + self.self_attn(placed, placed, tokens)
            tokens = self.norm1(tokens)
            placed_image = image + grid
            tokens = self.norm2(tokens + self.cross_attn_token_to_image(tokens + start, placed_image, image))
            tokens = self.norm3(tokens + self.mlp(tokens))
            image = self.norm4(image + self.cross_attn_image_to_token(placed_image, tokens + start, tokens))
            return tokens, image

    class TwoWayTransformer(nn.Module):
        """Two such layers, and a last look of the tokens at the image."""

        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(TwoWayLayer(first=number == 0) for number in range(LAYERS))
            self.final_attn_token_to_image = Attention(CHANNELS // 2)
            self.norm_final_attn = nn.LayerNorm(CHANNELS)

        def forward(self, start: Tensor, image: Tensor, grid: Tensor) -> tuple[Tensor, Tensor]:
            """Tokens (N, n, 256), image (N or 1, 4096, 256) and its places (4096, 256), to tokens and image."""
            tokens = start
            for layer in self.layers:
                tokens, image = layer(tokens, image, start, grid)
            looked = self.final_attn_token_to_image(tokens + start, image + grid, image)
            return self.norm_final_attn(tokens + looked), image

    class Head(nn.Module):
        """Three layers on one token."""

        def __init__(self, outputs: int) -> None:
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(CHANNELS, size) for size in (CHANNELS, CHANNELS, outputs))

        def forward(self, x: Tensor) -> Tensor:
            """(N, 256) to (N, outputs)."""
            first, second, last = self.layers
            out: Tensor = last(relu(second(relu(first(x)))))
            return out

    class MaskDecoder(nn.Module):
        """One token for the predicted IoUs and one per mask."""

        def __init__(self) -> None:
            super().__init__()
            self.transformer = TwoWayTransformer()
            self.iou_token, self.mask_tokens = nn.Embedding(1, CHANNELS), nn.Embedding(MASKS, CHANNELS)
            self.output_upscaling = nn.Sequential(
                nn.ConvTranspose2d(CHANNELS, CHANNELS // 4, 2, 2),
                channel_norm(CHANNELS // 4),
                nn.GELU(),
                nn.ConvTranspose2d(CHANNELS // 4, CHANNELS // 8, 2, 2),
                nn.GELU(),
            )
            self.output_hypernetworks_mlps = nn.ModuleList(Head(CHANNELS // 8) for _ in range(MASKS))
            self.iou_prediction_head = Head(MASKS)

        def forward(self, prompt: Tensor, image: Tensor, grid: Tensor) -> tuple[Tensor, Tensor]:
            """Logits (N, 4, 256, 256) and predicted IoUs (N, 4).

            `prompt` (N, n, 256); `image` (N or 1, 4096, 256) with the mask prompt added; `grid` (4096, 256) its places.
            """
            own = torch.cat([self.iou_token.weight, self.mask_tokens.weight]).expand(len(prompt), -1, -1)
            tokens, image = self.transformer(torch.cat([own, prompt], dim=1), image, grid)
            fine = self.output_upscaling(image.mT.reshape(-1, CHANNELS, GRID, GRID))
            brushes = [head(tokens[:, 1 + mask]) for mask, head in enumerate(self.output_hypernetworks_mlps)]
            logits = (torch.stack(brushes, dim=1) @ fine.flatten(2)).view(-1, MASKS, *fine.shape[2:])
            return logits, self.iou_prediction_head(tokens[:, 0])

    return MaskDecoder()
