"""MCL. Liu et al., Learning to Affiliate: Mutual Centralized Learning for Few-shot Classification, CVPR 2022."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from hardlook.networks.few_shot.descriptors import as_descriptors, cosines
from hardlook.networks.few_shot.method import Episodes, FewShotMethod, cross_entropy
from hardlook.networks.few_shot.r2d2 import RidgeClassifier
from hardlook.networks.precision import full_precision


@full_precision
def katz_centrality(found: Tensor, gamma: float, gamma2: float, factor: float) -> tuple[Tensor, Tensor]:
    """Katz centralities (..., q) and (..., s) of the nodes of a bipartite graph, from cosines (..., q, s).

    A walk goes from a node q to s with the softmax over s of `gamma` times the cosines, and from s to q with that over
    q of `gamma2` times them; each step is discounted by `factor`.
    """
    to_support = factor * (gamma * found).softmax(-1).mT
    to_query = factor * (gamma2 * found).softmax(-2)
    # With x, y the centralities: x = to_query (1 + y), y = to_support (1 + x). One system of q x q is left.
    direct = to_query.sum(-1, keepdim=True)
    around = to_query @ to_support
    identity = torch.eye(around.shape[-1], dtype=found.dtype, device=found.device)
    query = torch.linalg.solve(identity - around, direct + around.sum(-1, keepdim=True))
    return query[..., 0], (to_support @ (1 + query))[..., 0]


class MCL(FewShotMethod):
    """Random walks between the positions of a query and those of all classes; a class scores its share of the visits.

    Classes are the mean maps of their supports. Nothing is learnt beside the backbone.
    """

    inputs = "maps"

    def __init__(
        self,
        backbone: nn.Module | None = None,
        *,
        gamma: float = 20.0,
        gamma2: float = 10.0,
        katz: float = 0.5,
    ) -> None:
        super().__init__(backbone)
        self.gamma, self.gamma2, self.katz = gamma, gamma2, katz

    @full_precision
    def score(self, features: Episodes) -> Tensor:
        """(tasks, queries, ways) probabilities."""
        _, visits = self.visits(features)
        shares = torch.unflatten(visits, -1, (features.ways, -1)).sum(-1)
        return shares / shares.sum(-1, keepdim=True)

    def visits(self, features: Episodes) -> tuple[Tensor, Tensor]:
        """Centralities of the positions of queries (tasks, queries, h w) and classes (tasks, queries, ways h w)."""
        classes = as_descriptors(features.support.mean(2)).flatten(1, 2)
        found = cosines(as_descriptors(features.query), classes[:, None])
        return katz_centrality(found, self.gamma, self.gamma2, self.katz)

    def loss(self, episodes: Episodes) -> tuple[Tensor, Tensor]:
        """Minus the mean logarithm of the probability of the true class."""
        scores = self.classify(episodes)
        return cross_entropy(scores.log(), episodes.require_labels()), scores


class R2D2MCL(MCL):
    """R2D2 on mean supports; a query is the sum of its positions weighted by their shares of the visits."""

    adapts = True

    def __init__(
        self,
        backbone: nn.Module | None = None,
        *,
        gamma: float = 20.0,
        gamma2: float = 10.0,
        katz: float = 0.5,
        regularisation: float = 50.0,
    ) -> None:
        super().__init__(backbone, gamma=gamma, gamma2=gamma2, katz=katz)
        self.classifier = RidgeClassifier(regularisation)

    @full_precision
    def score(self, features: Episodes) -> Tensor:
        """(tasks, queries, ways) scores of the ridge regression."""
        visits, _ = self.visits(features)
        shares = visits / visits.sum(-1, keepdim=True)
        pooled = (shares[..., None] * as_descriptors(features.query)).sum(2)
        support = features.support.mean((-1, -2)).flatten(1, 2)
        return self.classifier(pooled, support, features.support_labels())  # type: ignore[no-any-return]

    def loss(self, episodes: Episodes) -> tuple[Tensor, Tensor]:
        """Cross-entropy of the scores."""
        return FewShotMethod.loss(self, episodes)
