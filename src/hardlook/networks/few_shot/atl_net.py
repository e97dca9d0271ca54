"""ATL-Net. Dong et al., Learning Task-aware Local Representations for Few-shot Learning, IJCAI 2020."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.few_shot.descriptors import as_descriptors, cosines
from hardlook.networks.few_shot.method import Episodes, FewShotMethod
from hardlook.networks.precision import full_precision


class AdaptiveAttention(nn.Module):
    """Which support descriptors a query descriptor heeds: those above a threshold of its own."""

    def __init__(self, channels: int, lowest: float, interval: float, steepness: float) -> None:
        super().__init__()
        self.lowest, self.interval, self.steepness = lowest, interval, steepness
        hidden = max(channels // 16, 1)
        self.f_psi = nn.Sequential(nn.Linear(channels, hidden), nn.LeakyReLU(0.2), nn.Linear(hidden, 1), nn.Sigmoid())

    @full_precision
    def forward(self, query: Tensor, support: Tensor) -> Tensor:
        """(..., q, s) shares, each row sums to 1, of descriptors (..., q, C) and (..., s, C)."""
        query = functional.normalize(query, dim=-1)
        thresholds = self.lowest + self.interval * self.f_psi(query)
        masks = torch.sigmoid(self.steepness * (cosines(query, support) - thresholds))
        return masks / masks.sum(-1, keepdim=True)


class AdaptiveLayer(nn.Module):
    """The projection in which descriptors are compared for attention, and the attention."""

    def __init__(self, channels: int, lowest: float, interval: float, steepness: float) -> None:
        super().__init__()
        project = nn.Conv2d(channels, channels, 1, bias=False)
        self.W = nn.Sequential(project, nn.BatchNorm2d(channels), nn.LeakyReLU(0.2))
        self.attenLayer = AdaptiveAttention(channels, lowest, interval, steepness)

    def forward(self, query: Tensor, support: Tensor) -> Tensor:
        """(tasks, queries, h w, supports, h w) cosines of maps times shares.

        Of maps (tasks, queries, C, h, w) and (tasks, supports, C, h, w).
        """
        projected = [self.W(maps.flatten(0, 1)).unflatten(0, maps.shape[:2]) for maps in (query, support)]
        shares = self.attenLayer(*(as_descriptors(maps).flatten(1, 2) for maps in projected))
        found = cosines(*(as_descriptors(maps).flatten(1, 2) for maps in (query, support)))
        size = query.shape[-2:].numel()
        return torch.unflatten(torch.unflatten(shares * found, 2, (-1, size)), 1, (-1, size))


class ATLNet(FewShotMethod):
    """Cosines of local descriptors, counted where an attention over all classes of the task finds them relevant.

    The threshold of a query descriptor is learnt, between `lowest` and `lowest` + `interval`; `steepness` is that of
    the mask around it. Scores are means over shots and positions times `scale`.
    """

    inputs = "maps"

    def __init__(
        self,
        backbone: nn.Module | None = None,
        *,
        channels: int = 64,
        scale: float = 30.0,
        lowest: float = 0.4,
        interval: float = 0.5,
        steepness: float = 50.0,
    ) -> None:
        super().__init__(backbone)
        self.scale = scale
        self.atlLayer = AdaptiveLayer(channels, lowest, interval, steepness)

    def score(self, features: Episodes) -> Tensor:
        """(tasks, queries, ways) scores."""
        found = self.atlLayer(features.query, features.support.flatten(1, 2))
        of_supports = found.sum(4).mean(2)
        return self.scale * of_supports.unflatten(2, (features.ways, features.shots)).mean(-1)  # type: ignore[no-any-return]
