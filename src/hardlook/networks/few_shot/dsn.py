"""DSN. Simon et al., Adaptive Subspaces for Few-Shot Learning, CVPR 2020."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from hardlook.networks.few_shot.method import Episodes, FewShotMethod, cross_entropy
from hardlook.networks.precision import full_precision


class DSN(FewShotMethod):
    """Minus the squared distance of a query to the affine subspace through the supports of a class, over D.

    A single support is doubled by its mirror image. Trained with label smoothing, and with `discriminative` times the
    overlap of the subspaces of different classes. With `released` the mean of a class is not subtracted: the subspace
    is spanned by the first shots - 1 left singular vectors of the supports as they are; and a single support is doubled
    by a copy with its colours (the channel axis) in reverse order, not mirrored.
    """

    def __init__(
        self,
        backbone: nn.Module | None = None,
        *,
        smoothing: float = 0.1,
        discriminative: float = 0.03,
        released: bool = False,
    ) -> None:
        super().__init__(backbone)
        self.smoothing, self.discriminative, self.released = smoothing, discriminative, released
        self.scale = nn.Parameter(torch.ones(1))

    def embed(self, episodes: Episodes) -> Episodes:
        """Features of the episodes, a single support and its mirror image."""
        if episodes.shots == 1:
            # The channel axis is 3 in images, maps and vectors.
            flipped = episodes.support.flip(3 if self.released else -1)
            episodes = replace(episodes, support=torch.cat([episodes.support, flipped], 2))
        return super().embed(episodes)

    @full_precision
    def subspaces(self, support: Tensor) -> tuple[Tensor, Tensor]:
        """Offsets (tasks, ways, D) and orthonormal bases (tasks, ways, shots - 1, D) for (tasks, ways, shots, D)."""
        dimensions = support.shape[2] - 1
        if self.released:
            left, _, _ = torch.linalg.svd(support.double().mT, full_matrices=False)
            return torch.zeros_like(support[:, :, 0]), left[..., :dimensions].mT.to(support)
        offset = support.mean(2)
        # All of these but one span the subspace. Orthonormal by the Cholesky factor of their products, whose gradient
        # exists where singular values are equal; the small addition keeps it where supports are.
        spanning = support[:, :, :dimensions] - offset[:, :, None]
        gram = (spanning @ spanning.mT).double()
        little = 1e-6 * gram.diagonal(dim1=2, dim2=3).mean(-1) + 1e-12
        factor = torch.linalg.cholesky(gram + little[..., None, None] * torch.eye(dimensions).to(gram))
        return offset, torch.linalg.solve_triangular(factor, spanning.double(), upper=False).to(support)

    def score(self, features: Episodes) -> Tensor:
        """(tasks, queries, ways) scores; maps are flattened."""
        offset, basis = self.subspaces(features.support.flatten(3))
        return self.residuals(features.query.flatten(2), offset, basis)

    @full_precision
    def residuals(self, query: Tensor, offset: Tensor, basis: Tensor) -> Tensor:
        """(tasks, queries, ways) minus `scale` times the mean squared residual of queries (tasks, queries, D)."""
        centred = query[:, None] - offset[:, :, None]
        residual = centred - centred @ basis.mT @ basis
        return -self.scale * residual.square().mean(-1).mT

    def loss(self, episodes: Episodes) -> tuple[Tensor, Tensor]:
        """Smoothed cross-entropy and the overlap of the subspaces."""
        features = self.embed(episodes)
        offset, basis = self.subspaces(features.support.flatten(3))
        scores = self.residuals(features.query.flatten(2), offset, basis)
        main = cross_entropy(scores, episodes.require_labels(), smoothing=self.smoothing)
        return main + self.discriminative * measure_overlap(basis), scores


@full_precision
def measure_overlap(basis: Tensor) -> Tensor:
    """Mean over tasks of the sum of squared products between the bases (tasks, ways, n, D) of different classes."""
    rows = basis.flatten(1, 2)
    return ((rows @ rows.mT).square().sum((1, 2)) - (basis @ basis.mT).square().sum((1, 2, 3))).mean()
