"""CovaMNet. Li et al., Distribution Consistency based Covariance Metric Networks for Few-shot Learning, AAAI 2019."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from hardlook.networks.few_shot.descriptors import as_descriptors, class_descriptors
from hardlook.networks.few_shot.method import Episodes, FewShotMethod
from hardlook.networks.precision import full_precision


class LocationWeights(nn.Module):
    """One number per class from the similarities of all locations: dropout, then one weight per location."""

    def __init__(self, locations: int, dropout: float) -> None:
        super().__init__()
        weigh = nn.Conv1d(1, 1, locations, stride=locations)
        self.conv1dLayer = nn.Sequential(nn.LeakyReLU(0.2), nn.Dropout(dropout), weigh)
        # All locations alike at first: weights of random signs would score by their differences.
        nn.init.constant_(weigh.weight, 1 / locations)

    def forward(self, similarities: Tensor) -> Tensor:
        """(..., ways) of similarities (..., ways, locations)."""
        rows = similarities.flatten(0, -3).flatten(1)[:, None]
        return self.conv1dLayer(rows)[:, 0].unflatten(0, similarities.shape[:-2])  # type: ignore[no-any-return]


class CovaMNet(FewShotMethod):
    """A descriptor x of a query scores x' C x, with the covariance C of the descriptors of a class.

    Queries are centred per image. `side` is that of the maps. A covariance of n descriptors is divided by n - 1; with
    `released` by h w - 1, however many shots there are.
    """

    inputs = "maps"

    def __init__(
        self, backbone: nn.Module | None = None, *, side: int = 5, dropout: float = 0.5, released: bool = False
    ) -> None:
        super().__init__(backbone)
        self.released = released
        self.convm_layer = LocationWeights(side * side, dropout)

    @full_precision
    def score(self, features: Episodes) -> Tensor:
        """(tasks, queries, ways) scores."""
        query = as_descriptors(features.query)
        query = query - query.mean(2, keepdim=True)
        support = class_descriptors(features.support)
        support = support - support.mean(2, keepdim=True)
        count = query.shape[2] if self.released else support.shape[2]
        covariances = support.transpose(2, 3) @ support / max(count - 1, 1)
        similarities = torch.einsum("tqlc,twcd,tqld->tqwl", query, covariances, query)
        return self.convm_layer(similarities)  # type: ignore[no-any-return]
