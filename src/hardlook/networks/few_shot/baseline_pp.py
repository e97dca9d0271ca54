"""Baseline++. Chen et al., A Closer Look at Few-shot Classification, ICLR 2019."""

from __future__ import annotations

from torch import Tensor, nn

from hardlook.networks.few_shot.baseline import Baseline
from hardlook.networks.few_shot.support_heads import HeadTraining, WeightNormLinear

SCALE, LARGE_SCALE, MANY_CLASSES = 2.0, 10.0, 200


class CosineLayer(nn.Module):
    """The classifier, under the names of published files."""

    def __init__(self, channels: int, classes: int) -> None:
        super().__init__()
        self.fc = WeightNormLinear(channels, classes)
        self.scale = LARGE_SCALE if classes > MANY_CLASSES else SCALE

    def forward(self, features: Tensor) -> Tensor:
        """(n, classes) scores."""
        return self.scale * self.fc(features)  # type: ignore[no-any-return]


class BaselinePlusPlus(Baseline):
    """Baseline with cosines in place of inner products, in training and for the layer trained on each support.

    Each class learns a length beside its direction, as in the released code; the paper describes pure cosines:
    `head=HeadTraining("cosine", scale=2)`.
    """

    layer = CosineLayer

    def __init__(
        self,
        backbone: nn.Module | None = None,
        *,
        channels: int = 64,
        classes: int = 64,
        head: HeadTraining | None = None,
    ) -> None:
        head = head or HeadTraining("weight-norm", scale=SCALE)
        super().__init__(backbone, channels=channels, classes=classes, head=head)
