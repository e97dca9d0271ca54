"""Baseline and k-NN. Chen et al., A Closer Look at Few-shot Classification, ICLR 2019."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor, nn

from hardlook.networks.few_shot.method import ClassClassifier, Episodes
from hardlook.networks.few_shot.support_heads import HeadTraining


class Baseline(ClassClassifier):
    """A classifier of the training classes; at test time a linear layer is trained on each support (`head`)."""

    layer: ClassVar[type[nn.Module]] = nn.Linear

    def __init__(
        self,
        backbone: nn.Module | None = None,
        *,
        channels: int = 64,
        classes: int = 64,
        head: HeadTraining | None = None,
    ) -> None:
        super().__init__(backbone)
        self.classifier = self.layer(channels, classes)
        self.head = head or HeadTraining()

    def score(self, features: Episodes) -> Tensor:
        """(tasks, queries, ways) scores."""
        return self.head.classify(features)


class KNearestNeighbours(Baseline):
    """Baseline's training; at test time the nearest supports vote (the registered learner `k-nn`)."""

    learner = "k-nn"
