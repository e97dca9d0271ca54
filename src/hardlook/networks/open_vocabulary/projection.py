"""Pixel features projected into a space of word vectors: any word is a class.

The semantic projection of zero-shot segmentation: Xian et al., Semantic Projection Network for Zero- and Few-Label
Semantic Segmentation, CVPR 2019. What is learnt maps features of a frozen encoder to vectors; a cell has the word whose
vector is nearest by the cosine.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

FIRST_SCALE = 10.0
LEAST_DEVIATION = 1e-6


class SemanticProjection(nn.Module):
    """Features (..., C) to vectors (..., D) of length 1, and these to scores of words.

    `hidden` 0 is one linear map, above 0 a layer of so many units comes before it; `dropout` is the share of features
    that are left out in training. `mean` and `deviation` (C,) of the training features are part of the weights. The
    vector of the background is learnt: it stands for all that the training images do not name.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, channels: int, dimension: int, *, hidden: int = 0, dropout: float = 0.0) -> None:
        super().__init__()
        self.channels, self.dimension = channels, dimension
        self.register_buffer("mean", torch.zeros(channels))
        self.register_buffer("deviation", torch.ones(channels))
        self.dropout = nn.Dropout(dropout)
        layers: list[nn.Module] = [nn.Linear(channels, hidden), nn.ReLU()] if hidden else []
        self.project = nn.Sequential(*layers, nn.Linear(hidden or channels, dimension))
        self.background = nn.Parameter(functional.normalize(torch.randn(dimension), dim=0))
        self.log_scale = nn.Parameter(torch.tensor(math.log(FIRST_SCALE)))

    def set_statistics(self, mean: Tensor, deviation: Tensor) -> None:
        """Set mean and deviation (C,) of the features; a feature that never changes stays at its mean."""
        self.mean.copy_(mean)
        self.deviation.copy_(torch.where(deviation > LEAST_DEVIATION, deviation, torch.ones_like(deviation)))

    def forward(self, features: Tensor) -> Tensor:
        """(..., C) to (..., D) of length 1."""
        standard = (features - self.mean) / self.deviation
        return functional.normalize(self.project(self.dropout(standard)), dim=-1)

    def score(self, features: Tensor, words: Tensor, background: Tensor | None = None) -> Tensor:
        """(..., K): scaled cosines of features (..., C) with words (K, D) of length 1.

        `background` (K,) bool marks words that stand for the background: they have the learnt vector.
        """
        if background is not None:
            own = functional.normalize(self.background, dim=0)
            words = torch.where(background[:, None], own, words)
        vectors: Tensor = self(features)
        return self.log_scale.exp() * (vectors @ words.T)
