"""FRN. Wertheimer et al., Few-Shot Classification with Feature Map Reconstruction Networks, CVPR 2021."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.few_shot.descriptors import as_descriptors, class_descriptors
from hardlook.networks.few_shot.method import Episodes, FewShotMethod, cross_entropy
from hardlook.networks.precision import full_precision

RELEASED_CHANNELS = 640
LEAST_WEIGHT = 1e-6


class ReconstructionLayer(nn.Module):
    """How well the descriptors of a class rebuild those of an image, by ridge regression in closed form."""

    def __init__(self, channels: int, classes: int, positions: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))
        self.r = nn.Parameter(torch.zeros(2))
        self.cat_mat = nn.Parameter(torch.randn(classes, positions, channels)) if classes else None

    @full_precision
    def forward(self, images: Tensor, pools: Tensor, exponents: Tensor) -> Tensor:
        """(..., n, classes) log probabilities of images (..., n, h w, C) and pools (..., classes, m, C).

        `exponents` (alpha, beta): the weight of the ridge is exp(alpha) m / C, the rebuilt is multiplied by exp(beta).
        """
        size, channels = pools.shape[-2:]
        weight = size / channels * exponents[0].exp() + LEAST_WEIGHT
        factor = exponents[1].exp()
        rows = images.flatten(-3, -2)[..., None, :, :]
        # Of two equal systems the smaller one; that of C x C is badly conditioned where m is less than C.
        narrow = size < channels
        gram = pools @ pools.mT if narrow else pools.mT @ pools
        system = gram + weight * torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
        if narrow:
            # With A = Q S' and the weights W = A (S S' + w)^-1 of the rebuilt Q^ = W S: Q.Q^ = A.W and, since
            # W S S' = A - w W, |Q^|^2 = W.(A - w W). Nothing as large as Q^ is made.
            products = rows @ pools.mT
            weights = torch.linalg.solve(system, products, left=False)
            fitted = (products * weights).sum(-1)
            length = fitted - weight * weights.square().sum(-1)
            errors = rows.square().sum(-1) - 2 * factor * fitted + factor.square() * length
        else:
            errors = (factor * (rows @ torch.linalg.solve(system, gram)) - rows).square().sum(-1)
        means = torch.unflatten(errors, -1, images.shape[-3:-1]).mean(-1).transpose(-1, -2)
        return torch.log_softmax(-self.scale * means, -1)


class FRN(FewShotMethod):
    """A query belongs to the class whose supports rebuild its map best; scores are log probabilities.

    First a learnt matrix of `side` x `side` descriptors per training class takes the place of supports (without one for
    0 `classes`), then episodes, with .03 times an auxiliary loss against cosines between different classes.
    Features are divided by the root of their number of channels. With `released` they are divided by the root of 640 in
    training and not at all in testing, and the auxiliary loss divides by the norm of all supports together rather than
    by those of their descriptors, which makes it almost zero.
    """

    inputs = "maps"
    stages = ("classes", "episodes")
    adapts = True

    def __init__(
        self,
        backbone: nn.Module | None = None,
        *,
        channels: int = 640,
        classes: int = 0,
        side: int = 5,
        auxiliary: float = 0.03,
        released: bool = False,
    ) -> None:
        super().__init__(backbone)
        self.auxiliary, self.released = auxiliary, released
        self.frn_layer = ReconstructionLayer(channels, classes, side * side)

    def scaled(self, descriptors: Tensor) -> Tensor:
        """Descriptors (..., C) divided by a root of the number of channels."""
        if self.released:
            return descriptors / math.sqrt(RELEASED_CHANNELS) if self.training else descriptors
        return descriptors / math.sqrt(descriptors.shape[-1])

    @full_precision
    def score(self, features: Episodes) -> Tensor:
        """(tasks, queries, ways) log probabilities."""
        query, support = as_descriptors(features.query), class_descriptors(features.support)
        return self.frn_layer(self.scaled(query), self.scaled(support), self.frn_layer.r)  # type: ignore[no-any-return]

    def loss(self, episodes: Episodes) -> tuple[Tensor, Tensor]:
        """Cross-entropy and the auxiliary loss."""
        features = self.embed(episodes)
        scores = self.score(features)
        extra = self.overlap(self.scaled(class_descriptors(features.support)))
        return cross_entropy(scores, episodes.require_labels()) + self.auxiliary * extra, scores

    @full_precision
    def overlap(self, support: Tensor) -> Tensor:
        """Mean over tasks of the sum over pairs of classes of the mean squared cosine of their descriptors.

        Of supports (tasks, ways, m, C). The sum over descriptors, hundreds of times larger, would outweigh all else.
        """
        if self.released:
            unit = support / torch.linalg.vector_norm(support, dim=(1, 2, 3), keepdim=True)
        else:
            unit = functional.normalize(support, dim=-1) / math.sqrt(support.shape[2])
        rows, (tasks, ways, size) = unit.flatten(1, 2), support.shape[:3]
        pairs = (rows @ rows.mT).square().reshape(tasks, ways, size, ways, size).sum((2, 4))
        return torch.triu(pairs, 1).sum((1, 2)).mean()

    def class_loss(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Cross-entropy of images rebuilt from the learnt matrices, and log probabilities (n, classes)."""
        if self.frn_layer.cat_mat is None:
            raise ValueError("FRN was built without training classes; pass classes=N")
        query = self.scaled(as_descriptors(self.emb_func(images)))
        # The exponents are not trained in this stage.
        scores = self.frn_layer(query, self.frn_layer.cat_mat, self.frn_layer.r.detach())
        return functional.nll_loss(scores, labels), scores
