"""ProtoNet. Snell, Swersky and Zemel, Prototypical Networks for Few-shot Learning, NeurIPS 2017."""

from __future__ import annotations

from torch import Tensor

from hardlook.networks.few_shot.method import Episodes, FewShotMethod, squared_distances


class ProtoNet(FewShotMethod):
    """Minus the squared Euclidean distance to the mean of each class; maps are flattened."""

    def score(self, features: Episodes) -> Tensor:
        """(tasks, queries, ways) scores."""
        return -squared_distances(features.query.flatten(2), features.support.mean(2).flatten(2))
