"""Versa. Gordon et al., Meta-Learning Probabilistic Inference For Prediction, ICLR 2019."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.few_shot.method import Episodes, FewShotMethod, Noise, open_noise
from hardlook.networks.precision import full_precision


class AmortisedLayers(nn.Module):
    """Three linear layers with ELU between them."""

    def __init__(self, width: int, outputs: int) -> None:
        super().__init__()
        layers = nn.Linear(width, width), nn.ELU(), nn.Linear(width, width), nn.ELU(), nn.Linear(width, outputs)
        self.layers = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        """(..., outputs) of (..., width)."""
        return self.layers(x)  # type: ignore[no-any-return]


class Versa(FewShotMethod):
    """A distribution over the weights of a linear classifier, inferred from class means by a network.

    Scores are Gaussian; `samples` of them are drawn, and the score of a class is the logarithm of the mean of their
    exponentials. `noise` draws the numbers of a batch; without it they follow from the tasks' keys.
    """

    def __init__(
        self,
        backbone: nn.Module | None = None,
        *,
        channels: int = 64,
        width: int = 256,
        samples: int = 10,
        dropout: float = 0.7,
        noise: Noise | None = None,
    ) -> None:
        super().__init__(backbone)
        self.samples, self.noise = samples, noise
        self.h = nn.Sequential(nn.Linear(channels, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(dropout))
        self.weight_mean, self.weight_logvar = AmortisedLayers(width, width), AmortisedLayers(width, width)
        self.bias_mean, self.bias_logvar = AmortisedLayers(width, 1), AmortisedLayers(width, 1)

    @full_precision
    def sample_scores(self, features: Episodes) -> Tensor:
        """(samples, tasks, queries, ways) scores."""
        tasks, ways, shots = features.support.shape[:3]
        joined = torch.cat([features.support.flatten(1, 2), features.query], 1)
        hidden = self.h(joined.flatten(0, 1)).unflatten(0, (tasks, -1))
        means = hidden[:, : ways * shots].unflatten(1, (ways, shots)).mean(2)
        query = hidden[:, ways * shots :]
        scores = query @ self.weight_mean(means).mT + self.bias_mean(means).mT
        variances = query.square() @ self.weight_logvar(means).exp().mT + self.bias_logvar(means).exp().mT
        noise = open_noise(self.noise, features, "versa")
        drawn = noise((tasks, self.samples, *scores.shape[1:]), dtype=scores.dtype, device=scores.device)
        return torch.as_tensor(scores + variances.sqrt() * drawn.transpose(0, 1))

    def score(self, features: Episodes) -> Tensor:
        """(tasks, queries, ways) scores."""
        return self.sample_scores(features).logsumexp(0) - math.log(self.samples)

    def loss(self, episodes: Episodes) -> tuple[Tensor, Tensor]:
        """Minus the logarithm of the mean likelihood over the samples, and the scores."""
        drawn = self.sample_scores(self.embed(episodes))
        labels = episodes.require_labels().expand(self.samples, -1, -1)
        likelihoods = functional.log_softmax(drawn, -1).gather(-1, labels[..., None])[..., 0]
        loss = -(likelihoods.logsumexp(0) - math.log(self.samples)).mean()
        return loss, drawn.logsumexp(0) - math.log(self.samples)
