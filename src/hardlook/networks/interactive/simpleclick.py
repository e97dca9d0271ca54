"""SimpleClick. Liu et al., SimpleClick: Interactive Image Segmentation with Simple Vision Transformers, ICCV 2023."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

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
    read_backbone,
    read_pyramid,
)
from hardlook.networks.interactive.ritm import normalise

SIZES: Mapping[str, Mapping[str, Any]] = {
    "vit_xtiny": {**VIT_SIZES["vit_xtiny"], "pyramid": (96, 192, 288, 384), "head_width": 128},
    "vit_base": {**VIT_SIZES["vit_base"], "pyramid": (128, 256, 512, 1024)},
    "vit_large": {**VIT_SIZES["vit_large"], "pyramid": (192, 384, 768, 1536)},
    "vit_huge": {**VIT_SIZES["vit_huge"], "pyramid": (240, 480, 960, 1920)},
}
"""Arguments of the published sizes."""


class _Convolution(nn.Module):
    """A convolution of single pixels, then ReLU."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Maps of as many pixels."""
        return functional.relu(self.conv(x))


def _upsampling(width: int) -> nn.Sequential:
    half = width // 2
    return nn.Sequential(
        nn.ConvTranspose2d(width, half, 2, 2), nn.GroupNorm(1, half), nn.Conv2d(half, half, 1), nn.GroupNorm(1, half)
    )


class MlpHead(nn.Module):
    """All levels at the finest one's size, mixed pixel by pixel to one logit.

    `up_conv1` and `up_conv2` are in the published files but take no part.
    """

    def __init__(self, widths: Sequence[int], width: int) -> None:
        super().__init__()
        self.conv_seg = nn.Conv2d(width, 1, 1)
        self.dropout = nn.Dropout2d(0.1)
        self.convs = nn.ModuleList(_Convolution(inputs, width) for inputs in widths)
        self.fusion_conv = _Convolution(4 * width, width)
        self.up_conv1 = _upsampling(width)
        self.up_conv2 = _upsampling(width // 2)

    def forward(self, levels: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """Fused maps (B, width, h, w) and logits (B, 1, h, w) of four levels, the finest first."""
        size = levels[0].shape[2:]
        alike = [
            functional.interpolate(conv(level), size=size, mode="bilinear", align_corners=False)
            for conv, level in zip(self.convs, levels, strict=True)
        ]
        fused = self.fusion_conv(torch.cat(alike, 1))
        return fused, self.conv_seg(self.dropout(fused))


class SimpleClick(nn.Module):
    """A plain ViT whose tokens are of the picture plus of clicks and last mask, a simple pyramid and an MLP head.

    Pictures of `side` pixels squared have the trained position embedding; for another size it is resized.
    """

    def __init__(
        self,
        patch: int = 16,
        width: int = 768,
        depth: int = 12,
        heads: int = 12,
        pyramid: Sequence[int] = (128, 256, 512, 1024),
        head_width: int = 256,
        *,
        side: int = TRAINED_SIDE,
        with_prev_mask: bool = True,
        norm_radius: float = 5,
        use_disks: bool = True,
    ) -> None:
        super().__init__()
        self.with_prev_mask, self.side = with_prev_mask, side
        self.click_maps = ClickMaps(norm_radius, use_disks=use_disks)
        self.patch_embed_coords = PatchEmbedding(3 if with_prev_mask else 2, width, patch)
        self.backbone = PlainViT(patch, width, depth, heads, side)
        self.neck = SimplePyramid(width, pyramid)
        self.head = MlpHead(pyramid, head_width)

    @classmethod
    def build(cls, size: str, **options: Any) -> Self:
        """A published size: vit_xtiny, vit_base, vit_large or vit_huge."""
        return cls(**SIZES[size], **options)

    @classmethod
    def from_checkpoint(cls, arguments: Mapping[str, Any], state: Mapping[str, Tensor]) -> Self:
        """The network that a checkpoint's tensors fit; heads and click maps are told by its arguments."""
        told = {name: arguments[name] for name in ("norm_radius", "use_disks") if arguments.get(name) is not None}
        return cls(
            **read_backbone(arguments, state),
            pyramid=read_pyramid(state, "neck."),
            head_width=state["head.conv_seg.weight"].shape[1],
            with_prev_mask=state["patch_embed_coords.proj.weight"].shape[1] == 3,
            **told,
        )

    @property
    def logit_layer(self) -> nn.Conv2d:
        """The layer whose answer is the logits."""
        return self.head.conv_seg

    def features(self, inputs: Tensor, points: Tensor) -> dict[str, Tensor]:
        """All maps by name: `click_maps`, `coord_tokens`, those of `PlainViT`, `neck_0` to `neck_3`, `instances`, ...

        Arguments as of `forward`.
        """
        size = (inputs.shape[2], inputs.shape[3])
        found = {"click_maps": self.click_maps(points, size, inputs.dtype)}
        given = [inputs[:, 3:4]] if self.with_prev_mask else []
        found["coord_tokens"] = self.patch_embed_coords(torch.cat([*given, found["click_maps"]], 1))
        found |= self.backbone.features(normalise(inputs[:, :3]), found["coord_tokens"])
        levels = self.neck(found["backbone_map"])
        found |= {f"neck_{place}": level for place, level in enumerate(levels)}
        found["head_fused"], found["logits_quarter"] = self.head(levels)
        found["instances"] = functional.interpolate(
            found["logits_quarter"], size=size, mode="bilinear", align_corners=True
        )
        return found

    def forward(self, inputs: Tensor, points: Tensor) -> dict[str, Tensor]:
        """Logits `instances` (B, 1, H, W).

        Of inputs (B, 4, H, W) in 0..1 (R, G, B, last probabilities; 3 channels without `with_prev_mask`) and points
        (B, 2n, 3).
        """
        return {"instances": self.features(inputs, points)["instances"]}
