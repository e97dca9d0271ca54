"""RITM's design on a ResNet: DeepLabV3+ that gets clicks and last probabilities after its stem.

Sofiiuk et al., Reviving Iterative Training with Mask Guidance for Interactive Segmentation, ICIP 2022; Chen et al.,
Encoder-Decoder with Atrous Separable Convolution for Semantic Image Segmentation, ECCV 2018. No checkpoint of it is
published: `hardlook train ritm` makes them.

>>> network = RITMDeepLab(stages=1, width=8).eval()
>>> network(torch.zeros(1, 4, 32, 40), torch.full((1, 2, 3), -1.0))["instances"].shape
torch.Size([1, 1, 32, 40])
"""

from __future__ import annotations

from typing import Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.interactive.click_maps import ClickMaps
from hardlook.networks.interactive.deeplab import DeepLab
from hardlook.networks.interactive.ritm import Scale, normalise
from hardlook.networks.one_shot.backbones import DEPTHS, ResNet

STEM_WIDTH = 64
DILATIONS = (1, 1, 2, 4)  # the last two stages stay at 1/8 of the picture


class StemmedResNet(ResNet):
    """Keras's ResNet-50 with maps added after its stem; `stages` below 4 leaves the last ones out.

    With `frozen_norm` batch normalisation keeps its statistics in training, as small batches need it.
    """

    def __init__(self, stages: int = 4, *, frozen_norm: bool = True) -> None:
        super().__init__(DEPTHS["resnet50"], "keras", dilations=DILATIONS, stages=stages)
        self.widths, self.frozen_norm = self.channels, frozen_norm

    def train(self, mode: bool = True) -> Self:
        """Training mode, but for normalisations that are frozen."""
        super().train(mode)
        if self.frozen_norm:
            for part in self.modules():
                if isinstance(part, nn.BatchNorm2d):
                    part.training = False
        return self

    def forward(self, images: Tensor, stem: Tensor) -> list[Tensor]:  # type: ignore[override]
        """Maps of the stages, at 1/4 and 1/8; `stem` (B, 64, h, w) at 1/2 is added after the stem."""
        x = functional.relu(self.bn1(self.conv1(self.recode(images)))) + stem
        x = self.pool(x)
        found = []
        for number in range(1, self.stages + 1):
            x = self.get_submodule(f"layer{number}")(x)
            found.append(x)
        return found


class RITMDeepLab(nn.Module):
    """DeepLabV3+ of `width` channels on the first `stages` stages of Keras's ResNet-50.

    Clicks, as disks of `norm_radius` pixels, and the last probabilities go through RITM's two convolutions, times a
    learnt number that begins as `first_scale`: short trainings need a larger one than the published .05.
    """

    with_prev_mask = True

    def __init__(
        self,
        stages: int = 4,
        width: int = 256,
        *,
        norm_radius: float = 5,
        first_scale: float = 0.05,
        dropout: float = 0.1,
        frozen_norm: bool = True,
    ) -> None:
        super().__init__()
        self.click_maps = ClickMaps(norm_radius)
        self.maps_transform = nn.Sequential(
            nn.Conv2d(3, 16, 1), nn.LeakyReLU(0.2), nn.Conv2d(16, STEM_WIDTH, 3, 2, 1), Scale(float(first_scale))
        )
        backbone = StemmedResNet(stages, frozen_norm=frozen_norm)
        self.feature_extractor = DeepLab(backbone, width, 1, dropout=dropout)

    def forward(self, inputs: Tensor, points: Tensor) -> dict[str, Tensor]:
        """Logits `instances` (B, 1, H, W).

        Of inputs (B, 4, H, W) in 0..1 (R, G, B, last probabilities) and points (B, 2n, 3).
        """
        size = (inputs.shape[2], inputs.shape[3])
        clicks = self.click_maps(points, size, inputs.dtype)
        stem = self.maps_transform(torch.cat([inputs[:, 3:4], clicks], 1))
        found = self.feature_extractor.encode(normalise(inputs[:, :3]), stem)
        logits = self.feature_extractor.decode(found["aspp"], found["backbone_0"])
        return {"instances": functional.interpolate(logits, size=size, mode="bilinear", align_corners=True)}
