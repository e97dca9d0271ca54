"""TPN. Liu et al., Learning to Propagate Labels: Transductive Propagation Network for Few-Shot Learning, ICLR 2019."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.few_shot.method import Episodes, FewShotMethod, cross_entropy
from hardlook.networks.precision import full_precision


class Tpn(FewShotMethod):
    """Labels propagate over a graph of all supports and queries whose edges are learned; transductive.

    Features are divided by a learned width per image; `neighbours` edges of each image are kept, and `alpha` is how far
    labels travel. The loss is over supports and queries, as in the paper. No released code was compared.
    """

    transductive = True

    def __init__(
        self,
        backbone: nn.Module | None = None,
        *,
        channels: int = 64,
        alpha: float = 0.99,
        neighbours: int = 20,
    ) -> None:
        super().__init__(backbone)
        hidden = max(8, channels // 4)
        self.width = nn.Sequential(nn.Linear(channels, hidden), nn.ReLU(), nn.Linear(hidden, 1))
        self.alpha, self.neighbours = alpha, neighbours

    @full_precision
    def propagate(self, features: Episodes) -> Tensor:
        """(tasks, supports + queries, ways) labels after propagation."""
        images = torch.cat([features.support.flatten(1, 2), features.query], 1)
        # Softplus keeps the width positive; the offset keeps it away from 0.
        scaled = images / (functional.softplus(self.width(images)) + 1e-3)
        distances = torch.cdist(scaled, scaled).square() / images.shape[-1]
        itself = torch.eye(images.shape[1], dtype=torch.bool, device=images.device)
        edges = (-distances / 2).masked_fill(itself, float("-inf"))
        count = min(self.neighbours, images.shape[1] - 1)
        kept = torch.zeros_like(itself.expand_as(edges)).scatter(-1, edges.topk(count, dim=-1).indices, True)
        # In logarithms: the edges of an image far from all others keep their shares and do not vanish.
        edges = edges.masked_fill(~(kept | kept.mT), float("-inf"))
        degrees = edges.logsumexp(-1) / 2
        graph = (edges - degrees[:, :, None] - degrees[:, None, :]).exp()
        known = functional.one_hot(features.support_labels(), features.ways).to(images.dtype)
        labels = functional.pad(known, (0, 0, 0, features.query.shape[1])).expand(len(images), -1, -1)
        identity = torch.eye(images.shape[1], dtype=graph.dtype, device=graph.device)
        return torch.as_tensor(torch.linalg.solve(identity - self.alpha * graph, labels))

    def score(self, features: Episodes) -> Tensor:
        """(tasks, queries, ways) scores."""
        return self.propagate(features)[:, features.ways * features.shots :]

    def loss(self, episodes: Episodes) -> tuple[Tensor, Tensor]:
        """Cross-entropy of the propagated labels of supports and queries."""
        labels = self.propagate(self.embed(episodes))
        supports = episodes.ways * episodes.shots
        shown = episodes.support_labels().expand(len(episodes), -1)
        loss = cross_entropy(labels, torch.cat([shown, episodes.require_labels()], 1))
        return loss, labels[:, supports:]
