"""CDKT: a Gaussian process per class with the logistic-softmax likelihood, on learned features.

Ke et al., Revisiting Logistic-softmax Likelihood in Bayesian Meta-Learning for Few-Shot Classification, NeurIPS 2023.
Made conjugate as in Galy-Fajou et al., Multi-Class Gaussian Process Classification Made Conjugate, UAI 2019: with
gamma, Poisson and Polya-Gamma variables every update is in closed form.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.few_shot.method import Episodes, FewShotMethod
from hardlook.networks.precision import full_precision
from hardlook.randomness import generator


@dataclass(frozen=True)
class Posterior:
    """The mean-field posterior of n images with labels, ways processes per task.

    `mean`, `variance` (tasks, ways, n) of the functions; `precision` and `pull` of the same shape, what the labels add
    to the prior: its precision and the product of precision and mean; `factor` (tasks, ways, n, n), the Cholesky factor
    of 1 + root(precision) kernel root(precision); `shape` (tasks, n) of the gamma variables.
    """

    mean: Tensor
    variance: Tensor
    precision: Tensor
    pull: Tensor
    factor: Tensor
    shape: Tensor

    def predict(self, cross: Tensor, own: Tensor) -> tuple[Tensor, Tensor]:
        """Means and variances (tasks, q, ways) of functions at q other images.

        `cross` (tasks, n, q) is the kernel of known and other images, `own` (tasks, q) its diagonal at the others.
        """
        # The kernel's inverse times the mean, without the inverse.
        weights = self.pull - self.precision * self.mean
        scaled = self.precision.sqrt()[..., None] * cross[:, None]
        known = torch.linalg.solve_triangular(self.factor, scaled, upper=False).square().sum(-2)
        means = (weights[..., None, :] @ cross[:, None])[..., 0, :]
        return means.mT, (own[:, None] - known).clamp(min=1e-9).mT

    def bound(self, labels: Tensor) -> Tensor:
        """(tasks,) lower bounds of the log marginal likelihood of one-hot labels (tasks, ways, n)."""
        ways = labels.shape[1]
        width = (self.mean.square() + self.variance).sqrt()
        half_cosh = width / 2 + functional.softplus(-width)  # log(2 cosh(width / 2))
        of_label = labels * (self.mean / 2 - half_cosh)
        rate = torch.digamma(self.shape) - math.log(ways)
        of_others = (rate[:, None] - self.mean / 2 - half_cosh).exp()
        entropy = self.shape - math.log(ways) + self.shape.lgamma() + (1 - self.shape) * self.shape.digamma()
        divergence = -(self.precision * self.variance).sum((1, 2))
        divergence = divergence + (self.mean * (self.pull - self.precision * self.mean)).sum((1, 2))
        divergence = divergence / 2 + self.factor.diagonal(dim1=-2, dim2=-1).log().sum((1, 2))
        return (of_label + of_others).sum((1, 2)) + (entropy - self.shape).sum(1) - divergence


def infer(kernel: Tensor, labels: Tensor, steps: int) -> Posterior:
    """The posterior after `steps` rounds of updates, from the prior on.

    `kernel` (tasks, n, n) of functions that are divided by the temperature already; `labels` one-hot (tasks, ways, n).
    """
    ways, count = labels.shape[1:]
    mean, variance = torch.zeros_like(labels), kernel.diagonal(dim1=-2, dim2=-1)[:, None].expand_as(labels)
    shape = torch.full_like(labels[:, 0], ways)
    identity = torch.eye(count, dtype=kernel.dtype, device=kernel.device)
    for _ in range(steps):
        width = (mean.square() + variance).sqrt()
        rate = torch.digamma(shape) - math.log(ways)
        # How often the class would have been drawn in vain, and the expected Polya-Gamma variables.
        events = (rate[:, None] - mean / 2 - width / 2 - functional.softplus(-width)).exp()
        precision = (labels + events) * torch.tanh(width / 2) / (2 * width)
        pull = (labels - events) / 2
        shape = 1 + events.sum(1)
        root = precision.sqrt()
        factor = torch.linalg.cholesky(identity + root[..., None] * kernel[:, None] * root[..., None, :])
        half = torch.linalg.solve_triangular(factor, root[..., None] * kernel[:, None], upper=False)
        covariance = kernel[:, None] - half.mT @ half
        mean = (covariance @ pull[..., None])[..., 0]
        variance = covariance.diagonal(dim1=-2, dim2=-1)
    return Posterior(mean, variance, precision, pull, factor, shape)


class Cdkt(FewShotMethod):
    """Gaussian processes with the logistic-softmax likelihood; scores are logarithms of predictive probabilities.

    Features pass batch normalisation: after a ReLU all cosines are near 1, and the marginal likelihood then draws them
    together for good. The kernel is a learned variance times the cosine or the inner product over the number of
    channels. The functions are divided by `temperature`: at low ones the likelihood comes near to a softmax. `steps`
    rounds of updates; predictions average `samples` draws of the functions, the same for every image (`draws`
    (samples, ways) replaces them). `objective`: minus the bound of the marginal likelihood of all images of a task, per
    image (`ml`), or minus the log predictive likelihood of the queries (`pl`). No released code was compared.
    """

    adapts = True

    def __init__(
        self,
        backbone: nn.Module | None = None,
        *,
        channels: int = 64,
        kernel: Literal["cosine", "linear"] = "cosine",
        temperature: float = 0.2,
        steps: int = 10,
        samples: int = 256,
        objective: Literal["ml", "pl"] = "pl",
        draws: Tensor | None = None,
    ) -> None:
        super().__init__(backbone)
        self.bn_out = nn.BatchNorm1d(channels)
        self.log_variance = nn.Parameter(torch.zeros(()))
        self.kind, self.temperature, self.steps, self.samples = kernel, temperature, steps, samples
        self.objective, self.draws = objective, draws

    def kernel(self, left: Tensor, right: Tensor) -> Tensor:
        """(tasks, m, n) covariances of functions over temperature at features (tasks, m, d) and (tasks, n, d)."""
        if self.kind == "cosine":
            left, right = functional.normalize(left, dim=-1), functional.normalize(right, dim=-1)
            found = left @ right.mT
        else:
            found = left @ right.mT / left.shape[-1]
        return torch.as_tensor(self.log_variance.exp() / self.temperature**2 * found)

    def normalise(self, features: Episodes) -> Episodes:
        """Vectors of supports (tasks, ways, shots, d) and queries after batch normalisation."""
        images = torch.cat([features.support.flatten(3).flatten(1, 2), features.query.flatten(2)], 1)
        normal = self.bn_out(images.flatten(0, 1)).reshape(images.shape)
        support = normal[:, : features.ways * features.shots].unflatten(1, (features.ways, features.shots))
        return replace(features, support=support, query=normal[:, features.ways * features.shots :])

    @full_precision
    def score(self, features: Episodes) -> Tensor:
        """(tasks, queries, ways) log probabilities; maps are flattened."""
        return self.predict(self.normalise(features))

    def predict(self, features: Episodes) -> Tensor:
        """(tasks, queries, ways) log probabilities from normalised vectors."""
        support, query = features.support.flatten(1, 2), features.query
        known = functional.one_hot(features.support_labels(), features.ways).mT.to(support)
        labels = known.expand(len(support), -1, -1)
        posterior = infer(self.kernel(support, support), labels, self.steps)
        own = self.kernel(query.flatten(0, 1)[:, None], query.flatten(0, 1)[:, None]).reshape(query.shape[:2])
        means, variances = posterior.predict(self.kernel(support, query), own)
        draws = self.draws if self.draws is not None else draw_normals(self.samples, features.ways)
        functions = means + variances.sqrt() * draws.to(means)[:, None, None]
        logs = functional.logsigmoid(functions)
        return torch.as_tensor((logs - logs.logsumexp(-1, keepdim=True)).logsumexp(0) - math.log(len(draws)))

    def loss(self, episodes: Episodes) -> tuple[Tensor, Tensor]:
        """By `objective`."""
        return self.feature_loss(self.embed(episodes))

    @full_precision
    def feature_loss(self, embedded: Episodes) -> tuple[Tensor, Tensor]:
        """The loss and the scores of episodes of features. Kernels rounded to bfloat16 have no Cholesky factor."""
        features, truth = self.normalise(embedded), embedded.require_labels()
        if self.objective == "pl":
            scores = self.predict(features)
            return -scores.gather(-1, truth[..., None]).mean(), scores
        images = torch.cat([features.support.flatten(1, 2), features.query], 1)
        known = features.support_labels().expand(len(images), -1)
        labels = functional.one_hot(torch.cat([known, truth], 1), features.ways).mT.to(images)
        bounds = infer(self.kernel(images, images), labels, self.steps).bound(labels)
        with torch.no_grad():
            scores = self.predict(features)
        return -bounds.mean() / images.shape[1], scores


class CdktMl(Cdkt):
    """CDKT trained by the marginal likelihood."""

    def __init__(self, backbone: nn.Module | None = None, **options: Any) -> None:
        super().__init__(backbone, objective="ml", **options)


class CdktPl(Cdkt):
    """CDKT trained by the predictive likelihood."""


def draw_normals(samples: int, ways: int) -> Tensor:
    """(samples, ways) standard normals in pairs of opposite sign, always the same."""
    half = torch.from_numpy(generator(0, "cdkt", ways).standard_normal((-(-samples // 2), ways)))
    return torch.cat([half, -half])[:samples]
