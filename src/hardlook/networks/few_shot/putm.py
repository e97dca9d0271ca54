"""PUTM. Tian et al., Prototypes-oriented Transductive Few-shot Learning with Conditional Transport, ICCV 2023."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.few_shot.baseline import Baseline
from hardlook.networks.few_shot.method import Episodes, squared_distances


def navigate(query: Tensor, prototypes: Tensor, prior: Tensor, sharpness: float) -> tuple[Tensor, Tensor]:
    """Conditional transport of queries (tasks, q, d) to prototypes (tasks, ways, d) and back, (tasks, q, ways) each.

    Forward: the share of a query that goes to each prototype, by distance and by the classes' `prior` (tasks, ways).
    Backward: the share of a prototype that goes to each query, by distance alone.
    """
    nearness = -sharpness * squared_distances(query, prototypes)
    return (nearness + prior[:, None].log()).softmax(-1), nearness.softmax(-2)


class Putm(Baseline):
    """Baseline's training; at test time class means move to the queries that are transported to them; transductive.

    Features are centred at the mean of the task and have length 1. Each of `steps` rounds: shares forward and backward
    at `sharpness` (over squared distances), the classes' prior as the mean of the forward shares, then class means as
    the maximum a posteriori: the mean of supports and queries, where a query counts `adaptive` of its forward share
    (classes as large as the data say) and the rest of its backward share times queries per class (classes of equal
    size). Scores are logarithms of forward shares. No released code was compared.
    """

    transductive = True

    def __init__(
        self,
        backbone: nn.Module | None = None,
        *,
        channels: int = 64,
        classes: int = 64,
        steps: int = 20,
        sharpness: float = 10.0,
        adaptive: float = 0.5,
    ) -> None:
        super().__init__(backbone, channels=channels, classes=classes)
        self.steps, self.sharpness, self.adaptive = steps, sharpness, adaptive

    def score(self, features: Episodes) -> Tensor:
        """(tasks, queries, ways) log probabilities; maps are flattened."""
        support, query = features.support.flatten(3), features.query.flatten(2)
        # Features after a ReLU lie close together: seen from their middle they do not.
        middle = torch.cat([support.flatten(1, 2), query], 1).mean(1, keepdim=True)
        support = functional.normalize(support - middle[:, None], dim=-1)
        query = functional.normalize(query - middle, dim=-1)
        prototypes, prior = self.refine(support, query)
        nearness = -self.sharpness * squared_distances(query, prototypes)
        return (nearness + prior[:, None].log()).log_softmax(-1)

    def refine(self, support: Tensor, query: Tensor) -> tuple[Tensor, Tensor]:
        """Class means (tasks, ways, d) and the prior (tasks, ways), of (tasks, ways, shots, d) and (tasks, q, d)."""
        tasks, ways, shots, _ = support.shape
        prototypes = support.mean(2)
        prior = torch.full((tasks, ways), 1 / ways, dtype=support.dtype, device=support.device)
        for _ in range(self.steps):
            forward, backward = navigate(query, prototypes, prior, self.sharpness)
            prior = forward.mean(1).clamp(min=math.exp(-60))
            shares = self.adaptive * forward + (1 - self.adaptive) * backward * (query.shape[1] / ways)
            total = support.sum(2) + shares.mT @ query
            prototypes = total / (shots + shares.sum(1))[..., None]
        return prototypes, prior
