"""The mask decoder of FC-CLIP: queries that draw masks and name them by text vectors.

Yu et al., Convolutions Die Hard: Open-Vocabulary Segmentation with Single Frozen Convolutional CLIP, NeurIPS 2023, on
the decoder of Cheng et al., Masked-attention Mask Transformer for Universal Image Segmentation, CVPR 2022.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.mask_transformer import (
    LEVELS,
    MLP,
    WIDTH,
    CrossAttention,
    FeedForward,
    SelfAttention,
    sine_positions,
)
from hardlook.networks.open_vocabulary.clip_convnext import pool_regions
from hardlook.networks.open_vocabulary.clip_text import take_best_names

LARGEST_SCALE = 100.0


@dataclass(frozen=True)
class Step:
    """One of the decoder's predictions: states and masks of the queries.

    `queries` (B, Q, 256) before and `normed` after normalisation, `masks` (B, Q, h, w) logits, `blocked` (B, Q, N) bool
    the pixels that the layer before did not attend to, None before the first layer.
    """

    queries: Tensor
    normed: Tensor
    masks: Tensor
    blocked: Tensor | None = None


class MaskDecoder(nn.Module):
    """Queries that attend, level by level, to the pixels of the masks they drew so far.

    `output` is the length of CLIP's vectors.
    """

    def __init__(self, output: int, *, queries: int = 250, layers: int = 9) -> None:
        super().__init__()
        self.logit_scale = nn.Parameter(torch.tensor(1 / 0.07).log())
        self.transformer_self_attention_layers = nn.ModuleList(SelfAttention() for _ in range(layers))
        self.transformer_cross_attention_layers = nn.ModuleList(CrossAttention() for _ in range(layers))
        self.transformer_ffn_layers = nn.ModuleList(FeedForward() for _ in range(layers))
        self.decoder_norm = nn.LayerNorm(WIDTH)
        self.query_feat = nn.Embedding(queries, WIDTH)
        self.query_embed = nn.Embedding(queries, WIDTH)
        self.level_embed = nn.Embedding(LEVELS, WIDTH)
        self.mask_embed = MLP(WIDTH)
        self._mask_pooling_proj = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH))
        self.class_embed = MLP(output)

    def draw(self, levels: Sequence[Tensor], mask_features: Tensor) -> Iterator[Step]:
        """The predictions before the first layer and after each, of the pixel decoder's maps (B, 256, h, w)."""
        values = [
            level.flatten(2).transpose(1, 2) + place
            for level, place in zip(levels, self.level_embed.weight, strict=True)
        ]
        keys = [
            # Sines stay float32 for features of any type, as released: their rounding shows in float64.
            value + sine_positions((level.shape[2], level.shape[3]), device=value.device, dtype=torch.float32)
            for value, level in zip(values, levels, strict=True)
        ]
        positions = self.query_embed.weight[None]
        x = self.query_feat.weight[None].expand(len(mask_features), -1, -1)
        yield (step := self._predict(x, mask_features))
        layers = zip(
            self.transformer_cross_attention_layers,
            self.transformer_self_attention_layers,
            self.transformer_ffn_layers,
            strict=True,
        )
        for number, (look, exchange, transform) in enumerate(layers):
            level = number % LEVELS
            blocked = block_pixels(step.masks, (levels[level].shape[2], levels[level].shape[3]))
            x = look(x, positions, keys[level], values[level], blocked)
            x = transform(exchange(x, positions))
            yield (step := self._predict(x, mask_features, blocked))

    def classify(self, step: Step, mask_features: Tensor, text: Tensor, counts: Sequence[int]) -> Tensor:
        """Logits (B, Q, classes + 1), void last; `text` (names + 1, D) are unit rows, that of void last."""
        regions = self._mask_pooling_proj(pool_regions(mask_features, step.masks > 0))
        return compare(self.class_embed(regions + step.normed), text, counts, self.logit_scale)

    def forward(
        self, levels: Sequence[Tensor], mask_features: Tensor, text: Tensor, counts: Sequence[int]
    ) -> tuple[Tensor, Tensor]:
        """Logits of classes (B, Q, classes + 1) and of masks (B, Q, h, w) after the last layer."""
        *_, step = self.draw(levels, mask_features)
        return self.classify(step, mask_features, text, counts), step.masks

    def _predict(self, x: Tensor, mask_features: Tensor, blocked: Tensor | None = None) -> Step:
        normed = self.decoder_norm(x)
        masks = torch.einsum("bqc,bchw->bqhw", self.mask_embed(normed), mask_features)
        return Step(x, normed, masks, blocked)


def block_pixels(masks: Tensor, size: tuple[int, int]) -> Tensor:
    """(B, Q, h * w) bool: pixels of a level outside of a query's mask; none where all would be."""
    shown = functional.interpolate(masks, size, mode="bilinear", align_corners=False).flatten(2).sigmoid() >= 0.5
    return ~(shown | ~shown.any(2, keepdim=True))


def compare(vectors: Tensor, text: Tensor, counts: Sequence[int], logit_scale: Tensor) -> Tensor:
    """Scaled cosines (B, Q, classes + 1) of vectors (B, Q, D) with unit rows of text; a class has its best name's.

    `counts` are the names of each class, whose rows lie side by side; the last row, the void's, is a class by itself.

    >>> text = torch.tensor([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0], [-1.0, 0.0]])
    >>> compare(torch.tensor([[[0.0, 3.0]]]), text, [2, 1], torch.tensor(0.0))
    tensor([[[0.8000, 1.0000, 0.0000]]])
    """
    if sum(counts) + 1 != len(text):
        raise ValueError(f"{len(text)} rows of text for {sum(counts)} names and the void")
    cosines = functional.normalize(vectors, dim=-1) @ text.to(vectors.dtype).T
    logits = logit_scale.exp().clamp(max=LARGEST_SCALE) * cosines
    return take_best_names(logits, [*counts, 1])
