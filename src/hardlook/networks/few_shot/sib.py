"""SIB. Hu et al., Empirical Bayes Transductive Meta-Learning with Synthetic Gradients, ICLR 2020."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.few_shot.method import ClassClassifier, Episodes
from hardlook.networks.precision import full_precision


class Sib(ClassClassifier):
    """Cosines with class means whose weights then follow synthetic gradients on the queries; transductive.

    A small network turns the scores of a query into the gradient of a loss that its label would have; `steps` steps at
    `inner_rate`. The backbone is trained on classes first and then frozen. No released code was compared.
    """

    stages = ("classes", "episodes")
    transductive = True
    fixed_ways = True

    def __init__(
        self,
        backbone: nn.Module | None = None,
        *,
        channels: int = 64,
        ways: int = 5,
        classes: int | None = None,
        steps: int = 3,
        inner_rate: float = 1e-3,
        scale: float = 10.0,
    ) -> None:
        super().__init__(backbone)
        self.scale = nn.Parameter(torch.tensor(float(scale)))
        self.start = nn.Linear(channels, channels, bias=False)
        nn.init.eye_(self.start.weight)
        self.dni = nn.Sequential(nn.Linear(ways, 8 * ways), nn.ReLU(), nn.Linear(8 * ways, ways))
        self.steps, self.inner_rate = steps, inner_rate
        if classes is not None:
            self.classifier = nn.Linear(channels, classes)

    def start_stage(self, stage: str) -> None:
        """The backbone is trained on classes and then frozen."""
        self.emb_func.requires_grad_(stage == "classes")

    @full_precision
    def score(self, features: Episodes) -> Tensor:
        """(tasks, queries, ways) scores."""
        query = functional.normalize(features.query, dim=-1)
        with torch.enable_grad():
            weight = functional.normalize(self.start(features.support.mean(2)), dim=-1)
            for _ in range(self.steps):
                scores = self._compare(query, weight)
                # The gradient that the scores would pass on, from a network instead of from labels.
                passed = self.dni(scores)
                (move,) = torch.autograd.grad(scores, weight, passed, create_graph=self.training)
                weight = weight - self.inner_rate * move
        return self._compare(query, weight)

    def _compare(self, query: Tensor, weight: Tensor) -> Tensor:
        return torch.as_tensor(self.scale * (query @ functional.normalize(weight, dim=-1).mT))
