"""The rules of registered few-shot learners on tensors, for validation while an encoder is trained.

A method whose test-time rule is a learner of `hardlook.models` is validated by the same rule, on the device and without
what the learners import. Weights are chosen by validation, so it asks the question that the test will ask.

>>> line = torch.tensor([[[[0.0]], [[4.0]]]])
>>> score_by_neighbours(Episodes(line, torch.tensor([[[1.0]]]))).argmax(-1).tolist()
[[0]]
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from hardlook.networks.few_shot.method import Episodes, FewShotMethod

ITERATIONS = 60


def score_by_regression(features: Episodes, c: float = 1.0) -> Tensor:
    """(tasks, queries, ways) logits of multinomial logistic regressions on unit features, as the learner `logistic`.

    The objective is the sum of cross-entropies plus |W|^2 / (2 c), with free intercepts. Each step minimises a bound of
    it, quadratic and of the same curvature in all steps (Boehning, Multinomial logistic regression algorithm, 1992).
    """
    rows, query = features.support.flatten(1, 2).flatten(2), features.query.flatten(2)
    rows, query = (functional.normalize(part.double(), dim=-1) for part in (rows, query))
    # In coordinates of the span of the supports, which the weights never leave.
    squares, turns = torch.linalg.eigh(rows @ rows.mT)
    lengths = squares.clamp(min=0).sqrt()
    inverse = torch.where(squares > 1e-12 * squares[:, -1:], 1 / lengths.clamp(min=1e-12), 0.0)
    shown = functional.pad(turns * lengths[:, None], (0, 1), value=1.0)
    asked = functional.pad(query @ rows.mT @ turns * inverse[:, None], (0, 1), value=1.0)
    decay = torch.full(shown.shape[-1:], 1 / c, dtype=shown.dtype, device=shown.device)
    decay[-1] = 0
    bound = torch.linalg.cholesky(shown.mT @ shown / 2 + torch.diag(decay))
    truth = functional.one_hot(features.support_labels(), features.ways).to(shown)
    weight = shown.new_zeros(len(shown), shown.shape[-1], features.ways)
    for _ in range(ITERATIONS):
        gradient = shown.mT @ ((shown @ weight).softmax(-1) - truth) + decay[:, None] * weight
        weight = weight - torch.cholesky_solve(gradient, bound)
    return torch.as_tensor(asked @ weight)


def score_by_neighbours(features: Episodes, k: int = 1) -> Tensor:
    """(tasks, queries, ways) votes of the `k` nearest supports, less than one for nearness: the learner `k-nn`."""
    distances = torch.cdist(features.query.flatten(2), features.support.flatten(1, 2).flatten(2))
    ranks = torch.unflatten(distances.argsort(stable=True).argsort(), -1, (features.ways, features.shots))
    count = features.ways * features.shots
    votes = (ranks < min(k, count)).sum(-1)
    return votes + 0.5 * (1 - ranks.amin(-1).to(distances) / count)


def score_by_means(features: Episodes) -> Tensor:
    """(tasks, queries, ways) cosines to the class means, where a learner's own rule is not here."""
    query, means = features.query.flatten(2), features.support.mean(2).flatten(2)
    return functional.normalize(query, dim=-1) @ functional.normalize(means, dim=-1).mT


RULES: dict[str, Callable[..., Tensor]] = {"logistic": score_by_regression, "k-nn": score_by_neighbours}


def score_by_learner(method: FewShotMethod, features: Episodes) -> Tensor:
    """(tasks, queries, ways) scores by the rule of the method's learner, with the penalty that it publishes."""
    rule = RULES.get(method.learner or "", score_by_means)
    penalty: Callable[[int], float] | None = getattr(method, "penalty", None)
    if rule is score_by_regression and penalty is not None:
        return rule(features, c=penalty(features.shots))
    return rule(features)
