"""SimPropNet as TOSS's Baseline: dense matching, prediction of both masks, attention to the background.

Gairola et al., SimPropNet: Improved Similarity Propagation for Few-shot Image Segmentation, IJCAI 2020; dense matching
after Zhang et al., CANet, CVPR 2019; as the Baseline of TOSS it is described in one sentence.

No code was released and the texts leave layers open: this is a reconstruction. What the texts say is here (features of
two stages, a class vector by masked pooling that is compared densely, a background vector with an attention of its own,
a decoder that is shared by query and support and predicts the masks of both, refinement with its own last prediction);
widths, the number of blocks and the temperature of the attention are ours.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.one_shot.backbones import VGG16, build_backbone, freeze, run_stages
from hardlook.networks.one_shot.network import IGNORED, Features, OneShotNetwork, average_masked

WIDTH = 256
ATROUS = (6, 12, 18)


class SimPropNet(OneShotNetwork):
    """Query and support masks from one decoder, by the similarity of each pixel to foreground and background.

    `rounds` is how often a prediction is refined with itself; `scale` sharpens the attention; `width` is the number of
    channels behind the backbone, `dropout` the share of them that a step of training leaves out. The backbone is
    frozen, as CANet's is.
    """

    frozen = True

    def __init__(
        self,
        backbone: str = "resnet50-keras",
        *,
        rounds: int = 2,
        scale: float = 10.0,
        width: int = WIDTH,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        self.backbone = build_backbone(backbone, "caffe", dilations=(1, 1, 2, 1), stages=3)
        freeze(self.backbone)
        self.rounds, self.scale = rounds, scale
        first = 2 if isinstance(self.backbone, VGG16) else 1
        wide = sum(self.backbone.channels[first : first + 2])
        self.reduce = nn.Sequential(
            nn.Conv2d(wide, width, 3, padding=2, dilation=2), nn.BatchNorm2d(width), nn.ReLU(), nn.Dropout2d(dropout)
        )
        self.fuse = nn.Sequential(nn.Conv2d(4 * width + 2, width, 3, padding=2, dilation=2), nn.ReLU())
        self.first = _Residual(width + 2, width)
        self.second, self.third = _Residual(width, width), _Residual(width, width)
        self.pyramid = _Pyramid(width)
        self.answer = nn.Conv2d(width, 2, 1)

    def train(self, mode: bool = True) -> SimPropNet:
        """Training mode of all but the frozen backbone, whose statistics stay those of its weights."""
        super().train(mode)
        self.backbone.eval()
        return self

    def encode(self, images: Tensor) -> Features:
        """Maps (B, width, h, w) at an eighth of the image's size."""
        return self.encode_features(self.run_backbone(images))

    @torch.no_grad()
    def run_backbone(self, images: Tensor) -> Features:
        """The outputs of the second and the third stage."""
        return run_stages(self.backbone.list_stages(), images)[2:4]

    def encode_features(self, features: Features) -> Features:
        """Both stages in one map (B, width, h, w)."""
        first, second = features
        if second.shape[-2:] != first.shape[-2:]:
            second = _resize(second, (first.shape[-2], first.shape[-1]))
        return (self.reduce(torch.cat([first, second], 1)),)

    def describe(self, features: Features, masks: Tensor) -> Features:
        """The support's maps, its mask at their size, and the mean vectors of foreground and background."""
        (maps,) = features
        shown = _resize((masks == 1).to(maps.dtype)[:, None], (maps.shape[-2], maps.shape[-1]))
        around = _resize((masks == 0).to(maps.dtype)[:, None], (maps.shape[-2], maps.shape[-1]))
        return maps, average_masked(maps, shown), average_masked(maps, around)

    def match(
        self, query: Features, supports: Features, size: tuple[int, int], query_mask: Tensor | None = None
    ) -> Tensor:
        """Logits (B, 2, H, W); the vectors of several supports are averaged."""
        _, shown, around = supports
        return _resize(self._decode(query[0], shown.mean(1), around.mean(1)), size)

    def compute_feature_loss(
        self, query: Features, labels: Tensor, supports: Features, masks: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Cross-entropy of the query's mask, and of the supports' own masks by the same vectors and decoder."""
        batch, shots = masks.shape[:2]
        size = (labels.shape[-2], labels.shape[-1])
        described = self.describe(self.encode_features(supports), masks.flatten(0, 1))
        maps, shown, around = (one.view(batch, shots, *one.shape[1:]) for one in described)
        logits = self.match(self.encode_features(query), (maps, shown, around), size)
        own = [vectors.mean(1).repeat_interleave(shots, 0) for vectors in (shown, around)]
        again = _resize(self._decode(maps.flatten(0, 1), *own), size)
        found = functional.cross_entropy(logits, labels.long(), ignore_index=IGNORED)
        return found + functional.cross_entropy(again, masks.flatten(0, 1).long(), ignore_index=IGNORED), logits

    def _decode(self, maps: Tensor, shown: Tensor, around: Tensor) -> Tensor:
        """Logits (B, 2, h, w) of maps by the vectors (B, width, 1, 1) of foreground and background."""
        cosines = [functional.cosine_similarity(maps, vector, dim=1) for vector in (around, shown)]
        shares = torch.softmax(self.scale * torch.stack(cosines, 1), 1)
        attended = [maps * shares[:, 1:], maps * shares[:, :1]]
        tiled = [vector.expand_as(maps) for vector in (shown, around)]
        fused = self.fuse(torch.cat([*attended, *tiled, shares], 1))
        history = torch.zeros_like(shares)
        logits = history
        for _ in range(self.rounds):
            x = fused + self.first(torch.cat([fused, history], 1))
            x = x + self.second(x)
            x = x + self.third(x)
            logits = self.answer(self.pyramid(x))
            history = torch.softmax(logits, 1)
        return logits

    @classmethod
    def build(cls, backbone: str = "resnet50-keras", **options: Any) -> SimPropNet:
        """The network on a backbone of that name, with random weights."""
        return cls(backbone, **options)


class _Residual(nn.Sequential):
    """Two 3 x 3 convolutions behind ReLUs, to `width` channels."""

    def __init__(self, inputs: int, width: int) -> None:
        first, second = nn.Conv2d(inputs, width, 3, padding=1), nn.Conv2d(width, width, 3, padding=1)
        super().__init__(nn.ReLU(), first, nn.ReLU(), second)


class _Pyramid(nn.Module):
    """Atrous convolutions of several reaches beside the mean of the whole map, reduced to its number of channels."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.whole = nn.Conv2d(width, width, 1)
        self.point = nn.Conv2d(width, width, 1)
        self.atrous = nn.ModuleList(nn.Conv2d(width, width, 3, padding=reach, dilation=reach) for reach in ATROUS)
        self.reduce = nn.Conv2d((2 + len(ATROUS)) * width, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Maps (B, width, h, w) of the same size."""
        whole = self.whole(x.mean((2, 3), keepdim=True)).expand(-1, -1, *x.shape[-2:])
        parts = [whole, self.point(x), *(layer(x) for layer in self.atrous)]
        return functional.relu(self.reduce(functional.relu(torch.cat(parts, 1))))


def _resize(x: Tensor, size: tuple[int, int]) -> Tensor:
    return functional.interpolate(x, size, mode="bilinear", align_corners=True)
