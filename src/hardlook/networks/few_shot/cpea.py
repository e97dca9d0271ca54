"""CPEA. Hao et al., Class-Aware Patch Embedding Adaptation for Few-Shot Image Classification, ICCV 2023."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.few_shot.descriptors import as_descriptors
from hardlook.networks.few_shot.method import Episodes, FewShotMethod, cross_entropy
from hardlook.networks.precision import full_precision


class Mlp(nn.Module):
    """Two linear layers with GELU between them and dropout after each."""

    def __init__(self, inputs: int, hidden: int, outputs: int, dropout: float) -> None:
        super().__init__()
        self.fc1, self.fc2, self.dropout = nn.Linear(inputs, hidden), nn.Linear(hidden, outputs), dropout

    def forward(self, x: Tensor) -> Tensor:
        """(..., outputs) of (..., inputs)."""
        x = functional.dropout(functional.gelu(self.fc1(x)), self.dropout, self.training)
        return functional.dropout(self.fc2(x), self.dropout, self.training)


class PatchAdaptation(nn.Module):
    """Patches that know of their image, and one number for two images from the products of their patches."""

    def __init__(self, channels: int, patches: int, weight: float, dropout: float) -> None:
        super().__init__()
        self.weight = weight
        self.fc1 = Mlp(channels, channels // 4, channels, dropout)
        self.fc_norm1 = nn.LayerNorm(channels)
        self.fc2 = Mlp(patches * patches, 256, 1, dropout)

    def adapt(self, tokens: Tensor) -> Tensor:
        """Patches (..., patches, C) of tokens (..., 1 + patches, C), the class token first."""
        tokens = self.fc_norm1(tokens + self.fc1(tokens.mean(-2, keepdim=True)))
        return tokens[..., 1:, :] + self.weight * tokens[..., :1, :]

    @full_precision
    def forward(self, query: Tensor, classes: Tensor) -> Tensor:
        """(tasks, queries, ways) scores of patches (tasks, queries, patches, C) and (tasks, ways, patches, C)."""
        query, classes = (functional.normalize(given, dim=-1) for given in (query, classes))
        query, classes = (given - given.mean(-1, keepdim=True) for given in (query, classes))
        products = torch.einsum("tqac,twbc->tqwba", query, classes)
        return self.fc2(products.square().flatten(3))[..., 0]  # type: ignore[no-any-return]


class CPEA(FewShotMethod):
    """Squared products of all patches of a query with all of a class, read by a small network.

    Every token gets the mean token through a network added, and every patch `weight` times the class token; a class is
    the mean of its supports. Trained with label smoothing. `patches` is their number in an image: 196 at 224 pixels.
    """

    inputs = "tokens"

    def __init__(
        self,
        backbone: nn.Module | None = None,
        *,
        channels: int = 384,
        patches: int = 196,
        weight: float = 2.0,
        dropout: float = 0.1,
        smoothing: float = 0.1,
    ) -> None:
        super().__init__(backbone)
        self.smoothing = smoothing
        self.CPEA = PatchAdaptation(channels, patches, weight, dropout)

    @classmethod
    def build(cls, backbone: nn.Module, *, channels: int, classes: int, ways: int, side: int, **options: Any) -> Self:
        """The method for `side` x `side` patches."""
        return cls(backbone, channels=channels, patches=side * side, **options)

    def embed(self, episodes: Episodes) -> Episodes:
        """Tokens; those of a backbone of maps are its positions, after their mean as class token."""
        features = super().embed(episodes)
        if features.query.ndim == 4:
            return features
        support, query = (as_descriptors(maps) for maps in (features.support, features.query))
        support, query = (torch.cat([given.mean(-2, keepdim=True), given], -2) for given in (support, query))
        return replace(features, support=support, query=query)

    def score(self, features: Episodes) -> Tensor:
        """(tasks, queries, ways) scores."""
        query, support = self.CPEA.adapt(features.query), self.CPEA.adapt(features.support)
        return self.CPEA(query, support.mean(2))  # type: ignore[no-any-return]

    def loss(self, episodes: Episodes) -> tuple[Tensor, Tensor]:
        """Smoothed cross-entropy."""
        scores = self.classify(episodes)
        return cross_entropy(scores, episodes.require_labels(), smoothing=self.smoothing), scores
