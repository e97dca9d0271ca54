"""AdaptiveClick. Lin et al., AdaptiveClick: Click-Aware Transformer with Adaptive Focal Loss, TNNLS 2024.

SimpleClick's backbone and pyramid, then the two decoders of Cheng et al., Masked-attention Mask Transformer for
Universal Image Segmentation, CVPR 2022: maps whose pixels attend to few learnt places on three levels (Zhu et al.,
Deformable DETR, ICLR 2021), and ten queries that attend to the pixels of the masks they drew so far. Here a query may
also attend to the positive clicks if it takes itself for one of the object.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.interactive.click_maps import ClickMaps
from hardlook.networks.interactive.plain_vit import (
    TRAINED_SIDE,
    VIT_SIZES,
    PatchEmbedding,
    PlainViT,
    SimplePyramid,
    Size,
    read_backbone,
    read_pyramid,
)
from hardlook.networks.interactive.ritm import normalise
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

SIZES: Mapping[str, Mapping[str, Any]] = {
    "vit_base": {**VIT_SIZES["vit_base"], "pyramid": (256, 512, 1024, 2048)},
    "vit_huge": {**VIT_SIZES["vit_huge"], "pyramid": (512, 1024, 2048, 4096)},
}
"""Arguments of the published sizes."""

QUERIES = 10
ENCODER_LAYERS, DECODER_LAYERS = 4, 9


class _LevelTransformer(nn.Module):
    """Three maps (B, WIDTH, h, w), which exchange what they see."""

    def __init__(self) -> None:
        super().__init__()
        self.level_embed = nn.Parameter(torch.empty(LEVELS, WIDTH).normal_())
        self.encoder = Encoder(ENCODER_LAYERS)

    def forward(self, maps: Sequence[Tensor]) -> list[Tensor]:
        sizes = [(level.shape[2], level.shape[3]) for level in maps]
        x = torch.cat([level.flatten(2).transpose(1, 2) for level in maps], 1)
        exact = torch.promote_types(x.dtype, torch.float32)
        positions = torch.cat(
            [
                sine_positions(size, device=x.device, dtype=exact) + self.level_embed[place]
                for place, size in enumerate(sizes)
            ],
            1,
        )
        places = centres(sizes, device=x.device, dtype=exact)
        for layer in self.encoder.layers:
            x = layer(x, positions, places, sizes)
        levels = torch.split(x, [height * width for height, width in sizes], 1)
        return [
            level.transpose(1, 2).reshape(len(level), WIDTH, *size) for level, size in zip(levels, sizes, strict=True)
        ]


def _projection(inputs: int, kernel: int = 1, *, active: bool = True) -> nn.Sequential:
    layers = [nn.Conv2d(inputs, WIDTH, kernel, padding=kernel // 2), nn.GroupNorm(32, WIDTH)]
    return nn.Sequential(*layers, nn.ReLU()) if active else nn.Sequential(*layers)


class PixelDecoder(nn.Module):
    """Maps of masks (B, WIDTH, H / 4, W / 4), and of three levels, the coarsest first, for the queries."""

    def __init__(self, width: int, pyramid: Sequence[int]) -> None:
        super().__init__()
        self.input_proj = nn.ModuleList(_projection(inputs, active=False) for inputs in pyramid[:0:-1])
        self.transformer = _LevelTransformer()
        self.mask_features = nn.Conv2d(WIDTH, WIDTH, 1)
        # Published files have these two layers twice, by two names.
        self.adapter_1 = _projection(pyramid[0])
        self.layer_1 = _projection(WIDTH, 3)
        self.lateral_convs = nn.ModuleList([self.adapter_1])
        self.output_convs = nn.ModuleList([self.layer_1])
        self.neck = SimplePyramid(width, pyramid)

    def forward(self, x: Tensor) -> tuple[list[Tensor], Tensor, list[Tensor]]:
        """The pyramid of a map (B, C, h, w), the finest level first, then maps of masks and of levels."""
        levels = self.neck(x)
        projected = [layer(level) for layer, level in zip(self.input_proj, levels[:0:-1], strict=True)]
        mixed = self.transformer(projected)
        fine = self.adapter_1(levels[0])
        fine = fine + functional.interpolate(mixed[-1], size=fine.shape[2:], mode="bilinear", align_corners=False)
        return levels, self.mask_features(self.layer_1(fine)), mixed


class ClickAwareDecoder(nn.Module):
    """Queries that look at the pixels of their masks, and of positive clicks, level by level."""

    def __init__(self) -> None:
        super().__init__()
        self.transformer_self_attention_layers = nn.ModuleList(SelfAttention() for _ in range(DECODER_LAYERS))
        self.transformer_cross_attention_layers = nn.ModuleList(CrossAttention() for _ in range(DECODER_LAYERS))
        self.transformer_ffn_layers = nn.ModuleList(FeedForward() for _ in range(DECODER_LAYERS))
        self.decoder_norm = nn.LayerNorm(WIDTH)
        self.query_feat = nn.Embedding(QUERIES, WIDTH)
        self.query_embed = nn.Embedding(QUERIES, WIDTH)
        self.level_embed = nn.Embedding(LEVELS, WIDTH)
        self.class_embed = nn.Linear(WIDTH, 2)
        self.mask_embed = MLP(WIDTH)

    def forward(self, levels: Sequence[Tensor], mask_maps: Tensor, clicked: Tensor) -> tuple[Tensor, Tensor]:
        """Logits of classes (B, queries, 2) and of masks (B, queries, h, w); `clicked` (B, H, W) are positive disks."""
        sizes = [(level.shape[2], level.shape[3]) for level in levels]
        values = [
            level.flatten(2).transpose(1, 2) + self.level_embed.weight[place] for place, level in enumerate(levels)
        ]
        keys = [
            value + sine_positions(size, device=value.device, dtype=torch.promote_types(value.dtype, torch.float32))
            for value, size in zip(values, sizes, strict=True)
        ]
        at_clicks = [pool_clicks(clicked, size) for size in sizes]
        positions = self.query_embed.weight[None]
        x = self.query_feat.weight[None].expand(len(mask_maps), -1, -1)
        classes, masks = self._predict(x, mask_maps)
        for number in range(DECODER_LAYERS):
            level = number % LEVELS
            hidden = hide_pixels(classes, masks, at_clicks[level], sizes[level])
            x = self.transformer_cross_attention_layers[number](x, positions, keys[level], values[level], hidden)
            x = self.transformer_self_attention_layers[number](x, positions)
            x = self.transformer_ffn_layers[number](x)
            classes, masks = self._predict(x, mask_maps)
        return classes, masks

    def _predict(self, x: Tensor, mask_maps: Tensor) -> tuple[Tensor, Tensor]:
        normed = self.decoder_norm(x)
        return self.class_embed(normed), torch.einsum("bqc,bchw->bqhw", self.mask_embed(normed), mask_maps)


def pool_clicks(clicked: Tensor, size: Size) -> Tensor:
    """(B, h * w) bool: where disks (B, H, W) are seen at a level, after as many halvings as the width has."""
    pooled = clicked[:, None]
    for _ in range(int(math.log2(clicked.shape[2] / size[1]))):
        pooled = functional.max_pool2d(pooled, 3, 2, 1)
    return functional.interpolate(pooled, size=size, mode="bilinear", align_corners=False).flatten(1) >= 0.5


def hide_pixels(classes: Tensor, masks: Tensor, at_clicks: Tensor, size: Size) -> Tensor:
    """(B, queries, h * w) bool: pixels outside a query's mask and not at a click that it may see; never all of them."""
    shown = functional.interpolate(masks, size=size, mode="bilinear", align_corners=False).sigmoid().flatten(2) >= 0.5
    shown = shown | ((classes.argmax(2) == 1)[:, :, None] & at_clicks[:, None])
    return ~(shown | ~shown.any(2, keepdim=True))


class _Criterion(nn.Module):
    """Weights of the classes in the loss of training, which published files hold."""

    empty_weight: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("empty_weight", torch.tensor([1.0, 0.1]))


class AdaptiveClick(nn.Module):
    """SimpleClick's backbone with two decoders; the logits are the queries' masks, weighted by their class.

    The released code swaps height and width when it enlarges the masks (reading `released`), so pictures that are not
    square have logits (B, 1, W, H); with `ours` they have (B, 1, H, W). Square ones have the same logits in both.
    """

    def __init__(
        self,
        patch: int = 16,
        width: int = 768,
        depth: int = 12,
        heads: int = 12,
        pyramid: Sequence[int] = (256, 512, 1024, 2048),
        *,
        side: int = TRAINED_SIDE,
        with_prev_mask: bool = True,
        norm_radius: float = 5,
        use_disks: bool = True,
        reading: Literal["released", "ours"] = "released",
    ) -> None:
        super().__init__()
        self.with_prev_mask, self.side, self.reading = with_prev_mask, side, reading
        self.click_maps = ClickMaps(norm_radius, use_disks=use_disks)
        self.patch_embed_coords = PatchEmbedding(3 if with_prev_mask else 2, width, patch)
        self.backbone = PlainViT(patch, width, depth, heads, side)
        self.pixel_decoder = PixelDecoder(width, pyramid)
        self.click_aware_decoder = ClickAwareDecoder()
        self.criterion = _Criterion()

    @classmethod
    def build(cls, size: str, **options: Any) -> Self:
        """A published size: vit_base or vit_huge."""
        return cls(**SIZES[size], **options)

    @classmethod
    def from_checkpoint(cls, arguments: Mapping[str, Any], state: Mapping[str, Tensor]) -> Self:
        """The network that a checkpoint's tensors fit; its arguments say how clicks are drawn."""
        settings = {name: arguments[name] for name in ("norm_radius", "use_disks") if arguments.get(name) is not None}
        return cls(
            **read_backbone(arguments, state),
            pyramid=read_pyramid(state, "pixel_decoder.neck."),
            with_prev_mask=state["patch_embed_coords.proj.weight"].shape[1] == 3,
            **settings,
        )

    def features(self, inputs: Tensor, points: Tensor) -> dict[str, Tensor]:
        """All maps by name: those of `PlainViT`, `neck_0` to `neck_3`, `pixel_decoder_0`, `instances`, ...

        Arguments as of `forward`.
        """
        size = (inputs.shape[2], inputs.shape[3])
        found = {"click_maps": self.click_maps(points, size, inputs.dtype)}
        given = [inputs[:, 3:4]] if self.with_prev_mask else []
        found["coord_tokens"] = self.patch_embed_coords(torch.cat([*given, found["click_maps"]], 1))
        found |= self.backbone.features(normalise(inputs[:, :3]), found["coord_tokens"])
        pyramid, found["pixel_decoder_0"], levels = self.pixel_decoder(found["backbone_map"])
        found |= {f"neck_{place}": level for place, level in enumerate(pyramid)}
        found["pixel_decoder_1"] = levels[0]
        classes, masks = self.click_aware_decoder(levels, found["pixel_decoder_0"], found["click_maps"][:, 0])
        found |= {"pred_logits": classes, "pred_masks": masks}
        enlarged = functional.interpolate(
            masks, size=size[::-1] if self.reading == "released" else size, mode="bilinear", align_corners=True
        )
        found["instances"] = torch.einsum("bq,bqhw->bhw", classes[..., 1].sigmoid(), enlarged)[:, None]
        return found

    def forward(self, inputs: Tensor, points: Tensor) -> dict[str, Tensor]:
        """Logits `instances` (B, 1, H, W).

        Of inputs (B, 4, H, W) in 0..1 (R, G, B, last probabilities; 3 channels without `with_prev_mask`) and points
        (B, 2n, 3).
        """
        return {"instances": self.features(inputs, points)["instances"]}
