"""The decoders of FC-CLIP: one makes maps of pixels, the other has queries that draw masks and name them by text.

Yu et al., Convolutions Die Hard: Open-Vocabulary Segmentation with Single Frozen Convolutional CLIP, NeurIPS 2023, on
those of Cheng et al., Masked-attention Mask Transformer for Universal Image Segmentation, CVPR 2022. In the pixel
decoder, pixels of three maps attend to few learnt places on all of them (Zhu et al., Deformable DETR, ICLR 2021).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.mask_transformer import (
    LEVELS,
    MLP,
    WIDTH,
    CrossAttention,
    Encoder,
    FeedForward,
    SelfAttention,
    centres,
    sine_positions,
)
from hardlook.networks.open_vocabulary.clip_convnext import pool_regions
from hardlook.networks.open_vocabulary.clip_text import take_best_names

LARGEST_SCALE = 100.0


class _LevelTransformer(nn.Module):
    def __init__(self, layers: int) -> None:
        super().__init__()
        self.level_embed = nn.Parameter(torch.randn(LEVELS, WIDTH))
        self.encoder = Encoder(layers)

    def forward(self, maps: Sequence[Tensor]) -> list[Tensor]:
        sizes = [(level.shape[2], level.shape[3]) for level in maps]
        x = torch.cat([level.flatten(2).transpose(1, 2) for level in maps], 1)
        # Sines stay float32 for features of any type, as released: their rounding shows in float64.
        positions = torch.cat(
            [
                sine_positions(size, device=x.device, dtype=torch.float32) + level
                for level, size in zip(self.level_embed, sizes, strict=True)
            ],
            1,
        )
        places = centres(sizes, device=x.device, dtype=torch.promote_types(x.dtype, torch.float32))
        for layer in self.encoder.layers:
            x = layer(x, positions, places, sizes)
        levels = torch.split(x.transpose(1, 2), [height * width for height, width in sizes], 2)
        return [level.reshape(*level.shape[:2], *size) for level, size in zip(levels, sizes, strict=True)]


class _NormedConvolution(nn.Conv2d):
    """A convolution without bias, then group normalisation, under detectron2's names."""

    def __init__(self, inputs: int, side: int) -> None:
        super().__init__(inputs, WIDTH, side, padding=side // 2, bias=False)
        self.norm = nn.GroupNorm(32, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(super().forward(x))  # type: ignore[no-any-return]


class PixelDecoder(nn.Module):
    """Maps at strides 32, 16 and 8 for the queries, and one at stride 4 of which masks are made.

    `channels` are those of res2 to res5. Pixels that pad an image are attended to like all others.
    """

    def __init__(self, channels: Sequence[int], *, layers: int = 6) -> None:
        super().__init__()
        self.input_proj = nn.ModuleList(
            nn.Sequential(nn.Conv2d(inputs, WIDTH, 1), nn.GroupNorm(32, WIDTH)) for inputs in channels[:0:-1]
        )
        self.transformer = _LevelTransformer(layers)
        self.mask_features = nn.Conv2d(WIDTH, WIDTH, 1)
        self.adapter_1 = _NormedConvolution(channels[0], 1)
        self.layer_1 = _NormedConvolution(WIDTH, 3)

    def forward(self, maps: Mapping[str, Tensor]) -> tuple[list[Tensor], Tensor]:
        """Three levels (B, 256, h, w), the coarsest first, and the map of masks (B, 256, H / 4, W / 4)."""
        coarse = (maps[name] for name in ("res5", "res4", "res3"))
        levels = self.transformer([project(one) for project, one in zip(self.input_proj, coarse, strict=True)])
        fine = self.adapter_1(maps["res2"])
        fine = fine + functional.interpolate(levels[-1], fine.shape[2:], mode="bilinear", align_corners=False)
        return levels, self.mask_features(functional.relu(self.layer_1(fine)))


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
