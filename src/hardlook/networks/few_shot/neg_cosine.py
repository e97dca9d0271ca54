"""Neg-Cosine. Liu et al., Negative Margin Matters: Understanding Margin in Few-shot Classification, ECCV 2020."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.few_shot.method import ClassClassifier, Episodes
from hardlook.networks.few_shot.support_heads import HeadTraining


class CosineWeights(nn.Module):
    """One direction per class."""

    def __init__(self, channels: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(nn.init.kaiming_uniform_(torch.empty(classes, channels), a=math.sqrt(5)))

    def forward(self, features: Tensor) -> Tensor:
        """(n, classes) cosines."""
        return functional.normalize(features, dim=-1) @ functional.normalize(self.weight, dim=1).mT


class NegCosine(ClassClassifier):
    """A cosine classifier whose true class is given a margin below 0 in training (`margin`, `scale`).

    At test time a cosine layer without margin is trained on each support.
    """

    def __init__(
        self,
        backbone: nn.Module | None = None,
        *,
        channels: int = 64,
        classes: int = 64,
        margin: float = -0.02,
        scale: float = 30.0,
        head: HeadTraining | None = None,
    ) -> None:
        super().__init__(backbone)
        self.NegLayer = CosineWeights(channels, classes)
        self.margin, self.scale = margin, scale
        self.head = head or HeadTraining("cosine", scale=5.0)

    def score(self, features: Episodes) -> Tensor:
        """(tasks, queries, ways) scores."""
        return self.head.classify(features)

    def class_loss(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Cross-entropy of the scaled cosines, that of the true class less the margin."""
        cosines = self.NegLayer(self.emb_func(images))
        scores = self.scale * (cosines - self.margin * functional.one_hot(labels, cosines.shape[1]).to(cosines))
        return functional.cross_entropy(scores, labels), scores
