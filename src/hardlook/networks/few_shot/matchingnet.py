"""MatchingNet. Vinyals et al., Matching Networks for One Shot Learning, NeurIPS 2016."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from hardlook.networks.few_shot.descriptors import cosines
from hardlook.networks.few_shot.method import Episodes, FewShotMethod
from hardlook.networks.precision import full_precision


class MatchingNet(FewShotMethod):
    """Supports vote by the softmax of `scale` times their cosines to the query; scores are log probabilities.

    Without the embedding in context. The paper has a scale of 1, with which cosines hardly tell classes apart; later
    code multiplies them, here by 10.
    """

    def __init__(self, backbone: nn.Module | None = None, *, scale: float = 10.0) -> None:
        super().__init__(backbone)
        self.scale = scale

    @full_precision
    def score(self, features: Episodes) -> Tensor:
        """(tasks, queries, ways) log probabilities; maps are flattened."""
        found = cosines(features.query.flatten(2), features.support.flatten(1, 2).flatten(2))
        votes = (self.scale * found).log_softmax(-1)
        return torch.unflatten(votes, -1, (features.ways, features.shots)).logsumexp(-1)
