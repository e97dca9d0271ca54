"""FEAT. Ye et al., Few-Shot Learning via Embedding Adaptation with Set-to-Set Functions, CVPR 2020."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.few_shot.method import ClassClassifier, Episodes, cross_entropy, squared_distances


class SetAttention(nn.Module):
    """Attention of one head among the vectors of a set, added to them and normalised."""

    def __init__(self, channels: int, attention_dropout: float = 0.1, dropout: float = 0.5) -> None:
        super().__init__()
        self.w_qs, self.w_ks, self.w_vs = (nn.Linear(channels, channels, bias=False) for _ in range(3))
        self.layer_norm = nn.LayerNorm(channels)
        self.fc = nn.Linear(channels, channels)
        self.attention_dropout, self.dropout = attention_dropout, dropout
        for layer in (self.w_qs, self.w_ks, self.w_vs):
            nn.init.normal_(layer.weight, std=math.sqrt(1 / channels))
        nn.init.xavier_normal_(self.fc.weight)

    def forward(self, vectors: Tensor, together: Tensor | None = None) -> Tensor:
        """Vectors (..., n, D) after attention; `together` (..., n, n) says which of them see each other, else all."""
        scores = self.w_qs(vectors) @ self.w_ks(vectors).transpose(-1, -2) / math.sqrt(vectors.shape[-1])
        if together is not None:
            scores = scores.masked_fill(~together, -math.inf)
        shares = functional.dropout(scores.softmax(-1), self.attention_dropout, self.training)
        change = functional.dropout(self.fc(shares @ self.w_vs(vectors)), self.dropout, self.training)
        return self.layer_norm(vectors + change)  # type: ignore[no-any-return]


class FEAT(ClassClassifier):
    """Class means see each other through attention; minus the squared distance to them over `temperature`.

    First a linear classifier of all training `classes` (without one for 0), then episodes, with a regulariser: the
    images of a class see each other through the same attention, and each image should lie nearest to the mean that
    comes out for its class (distances over `temperature2`), weighted by `balance`. With `released` the balance
    multiplies the main loss instead, and the classes asked of the regulariser are in the order supports, then queries,
    while its rows are sorted by class: most rows are asked for a wrong class.
    """

    stages = ("classes", "episodes")
    class_layer = "train_classifier"

    def __init__(
        self,
        backbone: nn.Module | None = None,
        *,
        channels: int = 64,
        classes: int = 0,
        temperature: float = 64.0,
        temperature2: float = 32.0,
        balance: float = 0.1,
        attention_dropout: float = 0.1,
        dropout: float = 0.5,
        released: bool = False,
    ) -> None:
        super().__init__(backbone)
        self.temperature, self.temperature2, self.balance = temperature, temperature2, balance
        self.released = released
        self.slf_attn = SetAttention(channels, attention_dropout, dropout)
        self.train_classifier = nn.Linear(channels, classes) if classes else None

    def score(self, features: Episodes) -> Tensor:
        """(tasks, queries, ways) scores."""
        return -squared_distances(features.query, self.slf_attn(features.support.mean(2))) / self.temperature

    def loss(self, episodes: Episodes) -> tuple[Tensor, Tensor]:
        """Cross-entropy and the regulariser."""
        features, labels = self.embed(episodes), episodes.require_labels()
        scores = self.score(features)
        main, extra = cross_entropy(scores, labels), self.regulariser(features, labels)
        return self.balance * main + extra if self.released else main + self.balance * extra, scores

    def regulariser(self, features: Episodes, labels: Tensor) -> Tensor:
        """Cross-entropy of all images of the tasks at the means of their own classes after attention."""
        images = torch.cat([features.support.flatten(1, 2), features.query], 1)
        targets = torch.cat([features.support_labels().expand(len(labels), -1), labels], 1)
        adapted = self.slf_attn(images, targets[:, :, None] == targets[:, None, :])
        members = functional.one_hot(targets, features.ways).to(images)
        centres = members.transpose(1, 2) @ adapted / members.sum(1)[:, :, None]
        scores = -squared_distances(images, centres) / self.temperature2
        if self.released:
            rows = targets.argsort(dim=1, stable=True)
            asked = torch.cat([targets[:, : features.ways * features.shots], labels.sort(1).values], 1)
            targets = torch.empty_like(targets).scatter_(1, rows, asked)
        return cross_entropy(scores, targets)
