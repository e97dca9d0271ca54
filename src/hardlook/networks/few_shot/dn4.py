"""DN4. Li et al., Revisiting Local Descriptor based Image-to-Class Measure for Few-shot Learning, CVPR 2019."""

from __future__ import annotations

from torch import Tensor, nn

from hardlook.networks.few_shot.descriptors import image_to_class
from hardlook.networks.few_shot.method import Episodes, FewShotMethod


class DN4(FewShotMethod):
    """Every local descriptor of a query looks for its `neighbours` nearest ones among those of each class.

    The score of a class is the sum of their cosines.
    """

    inputs = "maps"

    def __init__(self, backbone: nn.Module | None = None, *, neighbours: int = 3) -> None:
        super().__init__(backbone)
        self.neighbours = neighbours

    def score(self, features: Episodes) -> Tensor:
        """(tasks, queries, ways) scores, within +- neighbours h w."""
        return image_to_class(features.support, features.query, self.neighbours)
