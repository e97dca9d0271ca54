"""SAM's prompt encoder (clicks to tokens, a mask to a feature map) and mask decoder (tokens to masks and their IoUs).

Kirillov et al., "Segment Anything", ICCV 2023. Module names are those of the published weights.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor, nn

EPSILON = 1e-6


def build_channel_norm(channels: int) -> nn.Module:
    """A layer norm over the channels of (N, C, H, W), separately at each pixel.

    >>> import torch
    >>> norm = build_channel_norm(2)
    >>> [round(value, 3) for value in norm(torch.tensor([1.0, 5.0]).view(1, 2, 1, 1)).flatten().tolist()]
    [-1.0, 1.0]
    """
    from torch import nn

    class ChannelNorm(nn.LayerNorm):
        """A layer norm over axis 1 instead of the last axis."""

        def forward(self, input: Tensor) -> Tensor:
            """Map (N, C, H, W) to (N, C, H, W)."""
            return super().forward(input.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)

    return ChannelNorm(channels, eps=EPSILON)


CHANNELS = 256
GRID_SIZE = 64

INPUT_SIZE = 1024
"""Side of the square input in pixels; a cell of the feature grid covers 16 x 16 of them."""

NUM_POINT_EMBEDDINGS = 4


def build_prompt_encoder() -> nn.Module:
    """The prompt encoder with random weights; its methods are `tokens`, `mask` and `grid`."""
    import torch
    from torch import nn

    class PositionEncoding(nn.Module):
        """Positions in the unit square, encoded as sines and cosines of random frequencies."""

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("positional_encoding_gaussian_matrix", torch.randn(2, CHANNELS // 2))

        def forward(self, positions: Tensor) -> Tensor:
            """Map (..., 2), x and y in [0, 1], to (..., 256)."""
            angles = 2 * math.pi * ((2 * positions - 1) @ self.get_buffer("positional_encoding_gaussian_matrix"))
            return torch.cat([angles.sin(), angles.cos()], dim=-1)

    class PromptEncoder(nn.Module):
        """A token is a learnt embedding of its type plus the encoding of its position."""

        def __init__(self) -> None:
            super().__init__()
            self.pe_layer = PositionEncoding()
            self.point_embeddings = nn.ModuleList(nn.Embedding(1, CHANNELS) for _ in range(NUM_POINT_EMBEDDINGS))
            self.not_a_point_embed = nn.Embedding(1, CHANNELS)
            self.no_mask_embed = nn.Embedding(1, CHANNELS)
            self.mask_downscaling = nn.Sequential(
                nn.Conv2d(1, 4, 2, 2),
                build_channel_norm(4),
                nn.GELU(),
                nn.Conv2d(4, 16, 2, 2),
                build_channel_norm(16),
                nn.GELU(),
                nn.Conv2d(16, CHANNELS, 1),
            )

        def tokens(self, points: Tensor, positive: Tensor, boxes: Tensor | None = None) -> Tensor:
            """Tokens of points (N, n, 2) in input pixels, `positive` (N, n) bool, and of boxes (N, 4).

            (N, n + 2, 256) with the two corners of a box, (N, n + 1, 256) without: the last one says so.
            """
            zero = torch.zeros(1, dtype=torch.long, device=points.device)
            negative_label, positive_label = (self.point_embeddings[label](zero) for label in (0, 1))
            # A pixel's index is its corner; its centre is half a pixel further.
            labels = torch.where(positive[..., None], positive_label, negative_label)
            clicks = self.pe_layer((points + 0.5) / INPUT_SIZE) + labels
            if boxes is None:
                return torch.cat([clicks, self.not_a_point_embed.weight.expand(len(points), 1, CHANNELS)], dim=1)
            corners = self.pe_layer((boxes.view(-1, 2, 2) + 0.5) / INPUT_SIZE)
            kinds = torch.cat([self.point_embeddings[label](zero) for label in (2, 3)])
            return torch.cat([clicks, corners + kinds], dim=1)

        def mask(self, logits: Tensor | None) -> Tensor:
            """Features (N, 4096, 256) of mask logits (N, 256, 256); without logits, (1, 1, 256) for all."""
            if logits is None:
                return self.no_mask_embed.weight[None]
            cells: Tensor = self.mask_downscaling(logits[:, None]).flatten(2).mT
            return cells

        def grid(self) -> Tensor:
            """The position encodings (4096, 256) of the cells of the image's feature map, row by row."""
            centres = (torch.arange(GRID_SIZE, device=self.no_mask_embed.weight.device) + 0.5) / GRID_SIZE
            rows, columns = torch.meshgrid(centres, centres, indexing="ij")
            encodings: Tensor = self.pe_layer(torch.stack([columns, rows], dim=-1).flatten(0, 1))
            return encodings

    return PromptEncoder()


NUM_LAYERS = 2
NUM_HEADS = 8
MLP_CHANNELS = 2048

NUM_MASKS = 4
"""The single-mask output, then the three of the multimask output."""


def build_mask_decoder() -> nn.Module:
    """The mask decoder with random weights; see its `forward`."""
    import torch
    from torch import nn
    from torch.nn.functional import relu

    def build_mlp() -> nn.Module:
        expand, project = nn.Linear(CHANNELS, MLP_CHANNELS), nn.Linear(MLP_CHANNELS, CHANNELS)
        return nn.Sequential(OrderedDict(lin1=expand, act=nn.ReLU(), lin2=project))

    class Attention(nn.Module):
        """Attention with eight heads over `inner` channels (fewer than 256 for cross-attention with the image)."""

        def __init__(self, inner: int) -> None:
            super().__init__()
            self.q_proj, self.k_proj, self.v_proj = (nn.Linear(CHANNELS, inner) for _ in range(3))
            self.out_proj = nn.Linear(inner, CHANNELS)

        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            """Map q (N, n, 256), k and v (N, m, 256) to (N, n, 256); a first axis of 1 is broadcast."""
            query, key, value = (
                part.unflatten(-1, (NUM_HEADS, -1)).transpose(1, 2)
                for part in (self.q_proj(q), self.k_proj(k), self.v_proj(v))
            )
            weights = (query @ key.mT * query.shape[-1] ** -0.5).softmax(-1)
            out: Tensor = self.out_proj((weights @ value).transpose(1, 2).flatten(2))
            return out

    class TwoWayLayer(nn.Module):
        """Self-attention of tokens, attention of tokens to the image, an MLP, attention of the image to tokens."""

        def __init__(self, first: bool) -> None:
            super().__init__()
            self.first = first
            self.self_attn = Attention(CHANNELS)
            self.cross_attn_token_to_image = Attention(CHANNELS // 2)
            self.cross_attn_image_to_token = Attention(CHANNELS // 2)
            self.mlp = build_mlp()
            self.norm1, self.norm2, self.norm3, self.norm4 = (nn.LayerNorm(CHANNELS) for _ in range(4))

        def forward(self, tokens: Tensor, image: Tensor, start: Tensor, grid: Tensor) -> tuple[Tensor, Tensor]:
            """Updated tokens (N, n, 256) and image features (N or 1, 4096, 256).

            `start` (the tokens before the first layer) and `grid` are their position encodings.
            """
            if self.first:  # the tokens still equal `start`: nothing to add, and no residual connection
                tokens = self.self_attn(tokens, tokens, tokens)
            else:
                with_positions = tokens + start
                tokens = tokens + self.self_attn(with_positions, with_positions, tokens)
            tokens = self.norm1(tokens)
            image_with_positions = image + grid
            tokens = self.norm2(tokens + self.cross_attn_token_to_image(tokens + start, image_with_positions, image))
            tokens = self.norm3(tokens + self.mlp(tokens))
            image = self.norm4(image + self.cross_attn_image_to_token(image_with_positions, tokens + start, tokens))
            return tokens, image

    class TwoWayTransformer(nn.Module):
        """Two such layers, then a last attention of the tokens to the image."""

        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(TwoWayLayer(first=number == 0) for number in range(NUM_LAYERS))
            self.final_attn_token_to_image = Attention(CHANNELS // 2)
            self.norm_final_attn = nn.LayerNorm(CHANNELS)

        def forward(self, start: Tensor, image: Tensor, grid: Tensor) -> tuple[Tensor, Tensor]:
            """Updated tokens (N, n, 256) and image (N or 1, 4096, 256); `grid` (4096, 256) encodes positions."""
            tokens = start
            for layer in self.layers:
                tokens, image = layer(tokens, image, start, grid)
            attended = self.final_attn_token_to_image(tokens + start, image + grid, image)
            return self.norm_final_attn(tokens + attended), image

    class Head(nn.Module):
        """An MLP of three layers, applied to one token."""

        def __init__(self, outputs: int) -> None:
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(CHANNELS, size) for size in (CHANNELS, CHANNELS, outputs))

        def forward(self, x: Tensor) -> Tensor:
            """Map (N, 256) to (N, outputs)."""
            first, second, last = self.layers
            out: Tensor = last(relu(second(relu(first(x)))))
            return out

    class MaskDecoder(nn.Module):
        """Learnt tokens: one for the predicted IoUs and one per mask."""

        def __init__(self) -> None:
            super().__init__()
            self.transformer = TwoWayTransformer()
            self.iou_token, self.mask_tokens = nn.Embedding(1, CHANNELS), nn.Embedding(NUM_MASKS, CHANNELS)
            self.output_upscaling = nn.Sequential(
                nn.ConvTranspose2d(CHANNELS, CHANNELS // 4, 2, 2),
                build_channel_norm(CHANNELS // 4),
                nn.GELU(),
                nn.ConvTranspose2d(CHANNELS // 4, CHANNELS // 8, 2, 2),
                nn.GELU(),
            )
            self.output_hypernetworks_mlps = nn.ModuleList(Head(CHANNELS // 8) for _ in range(NUM_MASKS))
            self.iou_prediction_head = Head(NUM_MASKS)

        def forward(self, prompt: Tensor, image: Tensor, grid: Tensor) -> tuple[Tensor, Tensor]:
            """Logits (N, 4, 256, 256) and predicted IoUs (N, 4).

            `prompt` (N, n, 256); `image` (N or 1, 4096, 256) with the mask prompt added; `grid` (4096, 256) from
            the prompt encoder.
            """
            learnt = torch.cat([self.iou_token.weight, self.mask_tokens.weight]).expand(len(prompt), -1, -1)
            tokens, image = self.transformer(torch.cat([learnt, prompt], dim=1), image, grid)
            upscaled = self.output_upscaling(image.mT.reshape(-1, CHANNELS, GRID_SIZE, GRID_SIZE))
            mask_weights = [head(tokens[:, 1 + mask]) for mask, head in enumerate(self.output_hypernetworks_mlps)]
            logits = (torch.stack(mask_weights, dim=1) @ upscaled.flatten(2)).view(-1, NUM_MASKS, *upscaled.shape[2:])
            return logits, self.iou_prediction_head(tokens[:, 0])

    return MaskDecoder()
