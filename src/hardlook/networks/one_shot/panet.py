"""PANet. Wang et al., PANet: Few-Shot Image Semantic Segmentation with Prototype Alignment, ICCV 2019."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.one_shot.backbones import VGG16, build_backbone, run_stages
from hardlook.networks.one_shot.network import IGNORED, Features, OneShotNetwork

TEMPERATURE = 20.0
TINY = 1e-5


class PANet(OneShotNetwork):
    """Cosines of the query's features with the mean features of class and background.

    There are no parameters beside the backbone's: VGG16 as published, at an eighth of the size and without its last
    ReLU, or the last stage of a ResNet. Several supports are averaged, each with the same weight. In training the
    query's prediction is taken as its mask and has to find the class in the supports again, weighted by `alignment`; a
    query in which nothing is predicted has no part in that.
    """

    def __init__(self, backbone: str = "resnet50", *, alignment: float = 1.0) -> None:
        super().__init__()
        self.alignment = alignment
        options = {"dilated": True} if backbone.startswith("vgg16") else {"dilations": (1, 1, 2, 4)}
        self.encoder = build_backbone(backbone, "plain", **options)

    def encode(self, images: Tensor) -> Features:
        """One map (B, C, h, w)."""
        *stages, last = self.encoder.list_stages()
        if isinstance(self.encoder, VGG16):
            last = nn.Sequential(*list(last.children())[:-1])
        return (run_stages([*stages, last], images)[-1],)

    def describe(self, features: Features, masks: Tensor) -> Features:
        """The mean features (B, C) of background and class."""
        (maps,) = features
        return average_resized(maps, masks == 0), average_resized(maps, masks == 1)

    def match(
        self, query: Features, supports: Features, size: tuple[int, int], query_mask: Tensor | None = None
    ) -> Tensor:
        """Logits (B, 2, H, W): 20 times the cosines."""
        return resize(compare(query[0], [means.mean(1) for means in supports]), size)

    def loss(self, query: Tensor, labels: Tensor, supports: Tensor, masks: Tensor) -> tuple[Tensor, Tensor]:
        """Cross-entropy of the query by the supports, and of the supports by the query's prediction."""
        batch, shots = masks.shape[:2]
        known = self.encode(supports.flatten(0, 1))
        described = tuple(one.view(batch, shots, -1) for one in self.describe(known, masks.flatten(0, 1)))
        (maps,) = self.encode(query)
        scores = compare(maps, [means.mean(1) for means in described])
        logits = resize(scores, (labels.shape[-2], labels.shape[-1]))
        loss = functional.cross_entropy(logits, labels.long(), ignore_index=IGNORED)
        aligned = self.align(maps, scores, known[0].view(batch, shots, *known[0].shape[1:]), masks)
        return loss + self.alignment * aligned, logits

    def align(self, query: Tensor, scores: Tensor, supports: Tensor, masks: Tensor) -> Tensor:
        """The mean over supports of the cross-entropy with which the query's predicted mask segments them.

        Maps (B, C, h, w) with scores (B, 2, h, w), maps (B, K, C, h, w) of supports with masks (B, K, H, W).
        """
        predicted = scores.argmax(1, keepdim=True)
        means = []
        for label in (0, 1):
            chosen = (predicted == label).to(query.dtype)
            means.append((query * chosen).sum((2, 3)) / (chosen.sum((2, 3)) + TINY))
        shots = masks.shape[1]
        repeated = [one.repeat_interleave(shots, 0) for one in means]
        found = resize(compare(supports.flatten(0, 1), repeated), (masks.shape[-2], masks.shape[-1]))
        truth = masks.flatten(0, 1).long()
        losses = functional.cross_entropy(found, truth, ignore_index=IGNORED, reduction="none").sum((1, 2))
        losses = losses / (truth != IGNORED).sum((1, 2)).clamp_min(1)
        return (losses * predicted.flatten(1).any(1).repeat_interleave(shots, 0)).mean()


def compare(maps: Tensor, means: list[Tensor]) -> Tensor:
    """20 cos (B, n, h, w) of maps (B, C, h, w) with each of n vectors (B, C)."""
    return TEMPERATURE * torch.stack(
        [functional.cosine_similarity(maps, mean[:, :, None, None], dim=1) for mean in means], 1
    )


def average_resized(maps: Tensor, masks: Tensor) -> Tensor:
    """(B, C): the mean over masks (B, H, W) of maps (B, C, h, w) resized to their size; 0 where a mask is empty.

    The maps stay small: resizing is linear, so that its transpose makes of each mask the weights of the positions.
    """
    kind = torch.promote_types(maps.dtype, torch.float32)
    with torch.autocast(maps.device.type, enabled=False):
        maps, weights = maps.to(kind), masks.to(kind)
        sizes = zip(maps.shape[2:], masks.shape[1:], strict=True)
        rows, columns = (resize_matrix(few, many, maps) for few, many in sizes)
        summed = torch.einsum("bchw,bhw->bc", maps, rows.mT @ weights @ columns)
        return summed / (weights.sum((1, 2)) + TINY)[:, None]


def resize_matrix(few: int, many: int, like: Tensor) -> Tensor:
    """(many, few): bilinear resizing of one axis as a matrix."""
    unit = torch.eye(few, dtype=like.dtype, device=like.device)[None]
    return functional.interpolate(unit, many, mode="linear", align_corners=False)[0].mT


def resize(scores: Tensor, size: tuple[int, int]) -> Tensor:
    """Bilinear, by the areas of pixels."""
    return functional.interpolate(scores, size, mode="bilinear", align_corners=False)
