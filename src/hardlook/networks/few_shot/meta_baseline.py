"""Meta-Baseline. Chen et al., Meta-Baseline: Exploring Simple Meta-Learning for Few-Shot Learning, ICCV 2021.

DiffKendall. Zheng et al., DiffKendall: A Novel Approach for Few-Shot Learning with Differentiable Kendall's Rank
Correlation, NeurIPS 2023.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.few_shot.method import ClassClassifier, Episodes
from hardlook.networks.precision import full_precision

BLOCK = 1 << 22  # products of pairs of channels that are held at a time


class MetaBaseline(ClassClassifier):
    """A classifier of the training classes; then cosines with class means times a learned temperature, on episodes."""

    stages = ("classes", "episodes")

    def __init__(
        self,
        backbone: nn.Module | None = None,
        *,
        channels: int = 64,
        classes: int | None = None,
        temperature: float = 10.0,
    ) -> None:
        super().__init__(backbone)
        self.temp = nn.Parameter(torch.tensor(float(temperature)))
        if classes is not None:
            self.classifier = nn.Linear(channels, classes)

    @full_precision
    def score(self, features: Episodes) -> Tensor:
        """(tasks, queries, ways) scores."""
        means = functional.normalize(features.support.mean(2), dim=-1)
        return torch.as_tensor(self.temp * (functional.normalize(features.query, dim=-1) @ means.mT))


class DiffKendall(MetaBaseline):
    """Meta-Baseline with Kendall's rank correlation over channels in place of the cosine.

    In training the sign of a product is smoothed to 2 sigmoid(`beta` product) - 1, and the correlation divided by
    `temperature`.
    """

    def __init__(
        self,
        backbone: nn.Module | None = None,
        *,
        channels: int = 64,
        classes: int | None = None,
        beta: float = 1.0,
        temperature: float = 0.0125,
    ) -> None:
        super().__init__(backbone, channels=channels, classes=classes)
        del self.temp
        self.beta, self.temperature = beta, temperature

    @full_precision
    def score(self, features: Episodes) -> Tensor:
        """(tasks, queries, ways) rank correlations, in training divided by the temperature."""
        means, query = features.support.mean(2), features.query
        first, second = torch.triu_indices(query.shape[-1], query.shape[-1], 1, device=query.device)
        size = max(1, BLOCK // (means.shape[1] * query.shape[1] * len(query)))
        total = query.new_zeros(*query.shape[:2], means.shape[1])
        for rows, columns in zip(first.split(size), second.split(size), strict=True):
            products = (query[..., rows] - query[..., columns])[:, :, None] * (means[..., rows] - means[..., columns])[
                :, None
            ]
            signs = 2 * (self.beta * products).sigmoid() - 1 if self.training else products.sign()
            total = total + signs.sum(-1)
        mean = total / len(first)
        return mean / self.temperature if self.training else mean
