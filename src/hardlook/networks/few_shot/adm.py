"""ADM. Li et al., Asymmetric Distribution Measure for Few-shot Learning, IJCAI 2020."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from hardlook.networks.few_shot.descriptors import as_descriptors, class_descriptors, image_to_class
from hardlook.networks.few_shot.method import Episodes, FewShotMethod
from hardlook.networks.precision import full_precision

RIDGE = 0.01
"""Added to the diagonals of covariances, which few descriptors leave without full rank."""


def fit_gaussians(descriptors: Tensor) -> tuple[Tensor, Tensor]:
    """Means (..., C) and covariances (..., C, C) of descriptors (..., n, C)."""
    means = descriptors.mean(-2)
    centred = descriptors - means[..., None, :]
    covariances = centred.mT @ centred / max(descriptors.shape[-2] - 1, 1)
    return means, covariances + RIDGE * torch.eye(means.shape[-1], dtype=means.dtype, device=means.device)


def divergences(query: Tensor, classes: Tensor) -> Tensor:
    """(tasks, queries, ways) divergences KL(query || class) of Gaussians fitted to descriptors.

    Descriptors of queries (tasks, queries, n, C) and of classes (tasks, ways, m, C). In float64: covariances of fewer
    descriptors than channels are close to singular.
    """
    (means, covariances), (centres, spreads) = fit_gaussians(query.double()), fit_gaussians(classes.double())
    factors = torch.linalg.cholesky(spreads)
    inverses = torch.cholesky_inverse(factors)
    traces = covariances.flatten(2) @ inverses.flatten(2).mT
    apart = means[:, :, None] - centres[:, None]
    distances = torch.einsum("tqwc,twcd,tqwd->tqw", apart, inverses, apart)
    of_queries = 2 * torch.linalg.cholesky(covariances).diagonal(dim1=2, dim2=3).log().sum(-1)
    of_classes = 2 * factors.diagonal(dim1=2, dim2=3).log().sum(-1)
    found = (traces + distances - means.shape[-1] + of_classes[:, None] - of_queries[:, :, None]) / 2
    return torch.as_tensor(found.to(query.dtype))


class ADMKL(FewShotMethod):
    """Minus the divergence from the Gaussian of the local descriptors of a query to that of a class.

    With `contrastive` plus the divergence to the Gaussian of all other classes together (CMS in the paper).
    """

    inputs = "maps"

    def __init__(self, backbone: nn.Module | None = None, *, contrastive: bool = True) -> None:
        super().__init__(backbone)
        self.contrastive = contrastive

    @full_precision
    def score(self, features: Episodes) -> Tensor:
        """(tasks, queries, ways) scores."""
        query, classes = as_descriptors(features.query), class_descriptors(features.support)
        scores = -divergences(query, classes)
        if not self.contrastive:
            return scores
        ways = torch.arange(features.ways, device=classes.device)
        others = ways.expand(len(ways), -1)[ways[:, None] != ways].reshape(len(ways), -1)
        return scores + divergences(query, classes[:, others].flatten(2, 3))


class FusionLayer(nn.Module):
    """Two scores of each class as one: batch normalisation of both, then a weight for each."""

    def __init__(self, ways: int) -> None:
        super().__init__()
        self.normLayer = nn.BatchNorm1d(2 * ways)
        self.fcLayer = nn.Conv1d(1, 1, 2, dilation=ways, bias=False)
        # A random start may count the likelier class as the less likely one.
        nn.init.ones_(self.fcLayer.weight)

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """(tasks, queries, ways) of two scores of that shape."""
        joined = torch.cat([first, second], -1)
        if joined.shape[-1] != self.normLayer.num_features:
            ways = self.normLayer.num_features // 2
            raise ValueError(f"ADM was built for {ways} ways and got {first.shape[-1]}; pass ways={first.shape[-1]}")
        return self.fcLayer(self.normLayer(joined.flatten(0, 1))[:, None])[:, 0].reshape(first.shape)  # type: ignore[no-any-return]


class ADM(FewShotMethod):
    """The divergence of `ADMKL` and the local cosines of DN4, joined by a layer made for so many `ways`."""

    inputs = "maps"
    fixed_ways = True

    def __init__(self, backbone: nn.Module | None = None, *, ways: int = 5, neighbours: int = 3) -> None:
        super().__init__(backbone)
        self.neighbours = neighbours
        self.adm_layer = FusionLayer(ways)

    @full_precision
    def score(self, features: Episodes) -> Tensor:
        """(tasks, queries, ways) scores."""
        query, classes = as_descriptors(features.query), class_descriptors(features.support)
        local = image_to_class(features.support, features.query, self.neighbours)
        return self.adm_layer(-divergences(query, classes), local)  # type: ignore[no-any-return]
