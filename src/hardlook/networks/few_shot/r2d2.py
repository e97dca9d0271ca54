"""R2D2. Bertinetto et al., Meta-learning with differentiable closed-form solvers, ICLR 2019."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.few_shot.method import Episodes, FewShotMethod
from hardlook.networks.precision import full_precision


class RidgeClassifier(nn.Module):
    """Ridge regression of one-hot labels in its dual form, with learned scale, offset and regularisation."""

    def __init__(self, regularisation: float) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.ones(1))
        self.beta = nn.Parameter(torch.zeros(1))
        self.gamma = nn.Parameter(torch.full((1,), float(regularisation)))

    @full_precision
    def forward(self, query: Tensor, support: Tensor, labels: Tensor) -> Tensor:
        """(tasks, queries, ways) scores; `query` (tasks, q, d), `support` (tasks, n, d), `labels` (n,)."""
        targets = functional.one_hot(labels).to(support.dtype).expand(len(support), -1, -1)
        gram = support @ support.mT + self.gamma * torch.eye(len(labels), dtype=support.dtype, device=support.device)
        weights = support.mT @ torch.linalg.solve(gram, targets)
        return torch.as_tensor(self.alpha * (query @ weights) + self.beta)


class R2D2(FewShotMethod):
    """Ridge regression on the support in closed form, differentiable; maps are flattened.

    >>> method = R2D2()
    >>> episodes = Episodes(torch.tensor([[[[1.0]], [[-1.0]]]]), torch.tensor([[[2.0]]]))
    >>> [round(score, 7) for score in method.classify(episodes)[0, 0].tolist()]
    [0.0384615, -0.0384615]
    """

    def __init__(self, backbone: nn.Module | None = None, *, regularisation: float = 50.0) -> None:
        super().__init__(backbone)
        self.classifier = RidgeClassifier(regularisation)

    def score(self, features: Episodes) -> Tensor:
        """(tasks, queries, ways) scores."""
        support = features.support.flatten(1, 2).flatten(2)
        return self.classifier(features.query.flatten(2), support, features.support_labels())  # type: ignore[no-any-return]
