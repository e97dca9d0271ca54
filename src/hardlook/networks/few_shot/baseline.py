"""Baseline and k-NN. Chen et al., A Closer Look at Few-shot Classification, ICLR 2019."""

from __future__ import annotations

from typing import Any, Self

from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.few_shot.method import Episodes, FewShotMethod
from hardlook.networks.few_shot.support_heads import HeadTraining


class Baseline(FewShotMethod):
    """A classifier of the training classes; at test time a linear layer is trained on each support (`head`)."""

    stages = ("classes",)

    def __init__(
        self,
        backbone: nn.Module | None = None,
        *,
        channels: int = 64,
        classes: int = 64,
        head: HeadTraining | None = None,
    ) -> None:
        super().__init__(backbone)
        self.classifier = nn.Linear(channels, classes)
        self.head = head or HeadTraining()

    @classmethod
    def build(cls, backbone: nn.Module, *, channels: int, classes: int, ways: int, side: int, **options: Any) -> Self:
        """The method on a backbone, as the training loop makes it."""
        return cls(backbone, channels=channels, classes=classes, **options)

    def score(self, features: Episodes) -> Tensor:
        """(tasks, queries, ways) scores."""
        return self.head.classify(features)

    def class_loss(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Cross-entropy over the training classes."""
        scores = self.classifier(self.emb_func(images))
        return functional.cross_entropy(scores, labels), scores


class KNearestNeighbours(Baseline):
    """Baseline's training; at test time the nearest supports vote (the registered learner `k-nn`)."""

    learner = "k-nn"
