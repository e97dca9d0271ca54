"""DeepBDC. Xie et al., Joint Distribution Matters: Deep Brownian Distance Covariance for Few-Shot Classification.

CVPR 2022. The pooling itself is `hardlook.networks.backbones.bdc`.
"""

from __future__ import annotations

from typing import Any, Self

from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.backbones.bdc import BdcPooling
from hardlook.networks.few_shot.method import ClassClassifier, Episodes, squared_distances
from hardlook.networks.few_shot.rfs import Rfs
from hardlook.networks.precision import full_precision


class PooledBackbone(nn.Module):
    """A backbone of maps followed by BDC of `r` channels, for backbones that do not end in it."""

    def __init__(self, trunk: nn.Module, channels: int, r: int, positions: int) -> None:
        super().__init__()
        self.trunk, self.bdc_pool, self.channels = trunk, BdcPooling(channels, r, positions), r * (r + 1) // 2

    def forward(self, images: Tensor) -> Tensor:
        """Vectors (n, r (r + 1) / 2)."""
        return self.bdc_pool(self.trunk(images))  # type: ignore[no-any-return]


def pool_backbone(backbone: nn.Module, channels: int, side: int, r: int) -> tuple[nn.Module, int]:
    """The backbone with BDC of `r` channels, unless it ends in BDC, and the width of its vectors."""
    if not hasattr(backbone, "bdc_pool"):
        backbone = PooledBackbone(backbone, channels, r, side * side)
    return backbone, int(backbone.channels)  # type: ignore[arg-type]


class DeepBDC(ClassClassifier):
    """Distances of BDC vectors to class means: the inner product of one shot, minus the squared distance of more.

    First a linear classifier of all training `classes` (without one for 0) with dropout, then episodes.
    """

    inputs = "maps"
    stages = ("classes", "episodes")

    def __init__(
        self, backbone: nn.Module | None = None, *, channels: int = 528, classes: int = 0, dropout: float = 0.5
    ) -> None:
        super().__init__(backbone)
        self.dropout = dropout
        self.classifier = nn.Linear(channels, classes) if classes else None

    @classmethod
    def build(
        cls, backbone: nn.Module, *, channels: int, classes: int, ways: int, side: int, r: int = 64, **options: Any
    ) -> Self:
        """The method on a backbone that ends in BDC, or on one of maps, whose channels are reduced to `r` first."""
        backbone, width = pool_backbone(backbone, channels, side, r)
        return cls(backbone, channels=width, classes=classes, **options)

    @full_precision
    def score(self, features: Episodes) -> Tensor:
        """(tasks, queries, ways) scores."""
        means = features.support.mean(2)
        return features.query @ means.mT if features.shots == 1 else -squared_distances(features.query, means)

    def score_classes(self, features: Tensor) -> Tensor:
        """(n, training classes) scores by the classifier of the first stage."""
        return super().score_classes(functional.dropout(features, self.dropout, self.training))


class DeepBDCSTL(Rfs):
    """The simple form: a classifier of BDC vectors with dropout; at test time logistic regression on unit vectors.

    The published inverse penalty of the regression is in `penalty`. With `distilled` it learns from a teacher as RFS
    does; the released code of that generation reads a layer that it never sets and cannot run, so there is none to
    compare with.
    """

    inputs = "maps"

    def __init__(self, backbone: nn.Module | None = None, *, dropout: float = 0.5, **options: Any) -> None:
        super().__init__(backbone, **options)
        self.dropout = dropout

    @classmethod
    def build(
        cls, backbone: nn.Module, *, channels: int, classes: int, ways: int, side: int, r: int = 64, **options: Any
    ) -> Self:
        """The method on a backbone that ends in BDC, or on one of maps, whose channels are reduced to `r` first."""
        backbone, width = pool_backbone(backbone, channels, side, r)
        return cls(backbone, channels=width, classes=classes, **options)

    @staticmethod
    def penalty(shots: int) -> float:
        """The option `c` of the learner `logistic` for so many shots."""
        return 0.1 if shots == 1 else 2.0

    def score_classes(self, features: Tensor) -> Tensor:
        """(n, training classes) scores."""
        return super().score_classes(functional.dropout(features, self.dropout, self.training))
