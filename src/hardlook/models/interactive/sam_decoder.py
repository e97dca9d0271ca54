"""SAM's mask decoder: tokens and image attend to each other, then each mask token draws its mask.

Kirillov et al., "Segment Anything", ICCV 2023. The names of the parts are those of the published weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hardlook.models.interactive.channel_norm import channel_norm
from hardlook.models.interactive.sam_prompts import CHANNELS, GRID

if TYPE_CHECKING:
    from torch import Tensor, nn

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

    class Perceptron(nn.Module):
        """Two layers on each token."""

        def __init__(self) -> None:
            super().__init__()
            self.lin1, self.lin2 = nn.Linear(CHANNELS, HIDDEN), nn.Linear(HIDDEN, CHANNELS)

        def forward(self, x: Tensor) -> Tensor:
            """(..., 256) to the same."""
            out: Tensor = self.lin2(relu(self.lin1(x)))
            return out

    class TwoWayLayer(nn.Module):
        """Tokens among themselves, tokens to the image, tokens alone, the image to the tokens."""

        def __init__(self, first: bool) -> None:
            super().__init__()
            self.first = first
            self.self_attn = Attention(CHANNELS)
            self.cross_attn_token_to_image = Attention(CHANNELS // 2)
            self.cross_attn_image_to_token = Attention(CHANNELS // 2)
            self.mlp = Perceptron()
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
        """One token for the predicted IoUs, one a mask."""

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

            `prompt` (N, n, 256) are the prompts' tokens, `image` (N or 1, 4096, 256) the image's cells with the mask
            prompt added, `grid` (4096, 256) their places.
            """
            own = torch.cat([self.iou_token.weight, self.mask_tokens.weight]).expand(len(prompt), -1, -1)
            tokens, image = self.transformer(torch.cat([own, prompt], dim=1), image, grid)
            fine = self.output_upscaling(image.mT.reshape(-1, CHANNELS, GRID, GRID))
            brushes = [head(tokens[:, 1 + mask]) for mask, head in enumerate(self.output_hypernetworks_mlps)]
            logits = (torch.stack(brushes, dim=1) @ fine.flatten(2)).view(-1, MASKS, *fine.shape[2:])
            return logits, self.iou_prediction_head(tokens[:, 0])

    return MaskDecoder()
