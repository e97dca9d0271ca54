"""CDKT: the mean-field posterior against a numerical maximum of the bound, integrals by quadrature, and laws."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional

from hardlook.networks.few_shot.cdkt import Cdkt, CdktMl, CdktPl, draw_normals, infer
from hardlook.networks.few_shot.method import Episodes

KERNEL = torch.tensor([[[2.0, 1.1, 0.3], [1.1, 1.5, -0.4], [0.3, -0.4, 3.0]]], dtype=torch.float64)
LABELS = functional.one_hot(torch.tensor([[0, 1, 1]]), 2).mT.double()


def textbook_bound(kernel, labels, mean, factor, shape):
    """The bound with all its terms: Gaussian divergence by inverses, gamma entropy, sums over Poisson counts.

    q(n, omega) is the best one for the rest, whose normaliser is summed over counts n of 0 to 199.
    """
    ways, count = labels.shape
    total = 0.0
    for way in range(ways):
        covariance = factor[way] @ factor[way].T
        prior = torch.distributions.MultivariateNormal(torch.zeros(count, dtype=torch.float64), kernel)
        posterior = torch.distributions.MultivariateNormal(mean[way], covariance)
        total = total - torch.distributions.kl_divergence(posterior, prior)
        width = (mean[way] ** 2 + covariance.diagonal()).sqrt()
        counts = torch.arange(200, dtype=torch.float64)[:, None]
        label, rate = labels[way], torch.digamma(shape) - math.log(ways)
        terms = counts * rate - torch.lgamma(counts + 1) - (label + counts) * math.log(2)
        terms = terms + (label - counts) * mean[way] / 2 - (label + counts) * torch.log(torch.cosh(width / 2))
        total = total + terms.logsumexp(0).sum()
    gamma = torch.distributions.Gamma(shape, torch.full_like(shape, ways))
    return total + (gamma.entropy() - shape).sum()


def maximise_bound():
    mean = torch.zeros(2, 3, dtype=torch.float64, requires_grad=True)
    factor = torch.eye(3, dtype=torch.float64).repeat(2, 1, 1).requires_grad_()
    shape = torch.full((3,), math.log(2.0), dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS(
        [mean, factor, shape], max_iter=120, line_search_fn="strong_wolfe", tolerance_change=0
    )

    def close():
        optimiser.zero_grad()
        loss = -textbook_bound(KERNEL[0], LABELS[0], mean, factor.tril(), shape.exp())
        loss.backward()
        return loss

    optimiser.step(close)
    return mean.detach(), (factor.tril() @ factor.tril().mT).detach(), shape.exp().detach(), -close().item()


def test_the_updates_reach_the_maximum_of_the_bound():
    mean, covariance, shape, bound = maximise_bound()
    found = infer(KERNEL, LABELS, 300)
    torch.testing.assert_close(found.mean[0], mean, atol=1e-5, rtol=0)
    torch.testing.assert_close(found.variance[0], covariance.diagonal(dim1=1, dim2=2), atol=1e-5, rtol=0)
    torch.testing.assert_close(found.shape[0], shape, atol=1e-5, rtol=0)
    assert found.bound(LABELS).item() == pytest.approx(bound, abs=1e-9)


def test_the_bound_never_decreases_and_stays_below_the_marginal_likelihood():
    bounds = [infer(KERNEL, LABELS, steps).bound(LABELS).item() for steps in range(1, 30)]
    assert np.diff(bounds).min() >= -1e-12 and bounds[1] > bounds[0] + 1e-3
    rng = np.random.default_rng(0)
    functions = np.linalg.cholesky(KERNEL[0].numpy()) @ rng.standard_normal((200_000, 2, 3, 1))
    sigmoid = 1 / (1 + np.exp(-functions[..., 0]))
    likelihood = (sigmoid / sigmoid.sum(1, keepdims=True))[:, [0, 1, 1], [0, 1, 2]].prod(1).mean()
    # About .3 per image is lost to the gamma and Poisson variables even where the functions are known.
    assert bounds[-1] < math.log(likelihood) < bounds[-1] + 1.5


def test_a_bound_in_the_middle_equals_the_textbook():
    found = infer(KERNEL, LABELS, 3)
    precision = torch.diag_embed(found.precision[0]) + torch.linalg.inv(KERNEL[0])
    covariance = torch.linalg.inv(precision)
    torch.testing.assert_close(covariance.diagonal(dim1=1, dim2=2), found.variance[0])
    expected = textbook_bound(KERNEL[0], LABELS[0], found.mean[0], torch.linalg.cholesky(covariance), found.shape[0])
    torch.testing.assert_close(found.bound(LABELS)[0], expected)


def test_predictions_are_those_of_gaussian_conditioning():
    found = infer(KERNEL, LABELS, 40)
    cross = torch.tensor([[[0.5], [-0.2], [0.9]]], dtype=torch.float64)
    means, variances = found.predict(cross, torch.tensor([[1.7]], dtype=torch.float64))
    inverse = torch.linalg.inv(KERNEL[0])
    for way in range(2):
        covariance = torch.linalg.inv(inverse + torch.diag(found.precision[0, way]))
        gain = inverse @ cross[0]
        expected = 1.7 - cross[0].T @ gain + gain.T @ covariance @ gain
        torch.testing.assert_close(means[0, 0, way], (gain.T @ found.mean[0, way])[0])
        torch.testing.assert_close(variances[0, 0, way], expected[0, 0])
    # The images themselves keep their posterior.
    means, variances = found.predict(KERNEL, KERNEL[0].diagonal()[None])
    torch.testing.assert_close(means, found.mean.mT)
    torch.testing.assert_close(variances, found.variance.mT)


def easy(seed=0):
    rng = torch.Generator().manual_seed(seed)
    centres = 3 * torch.randn(2, 3, 1, 6, generator=rng, dtype=torch.float64)
    labels = torch.arange(9).expand(2, -1) % 3
    query = centres[torch.arange(2)[:, None], labels, 0]
    noise = torch.randn(query.shape, generator=rng, dtype=torch.float64) / 2
    support = centres + torch.randn(2, 3, 2, 6, generator=rng, dtype=torch.float64) / 2
    return Episodes(support, query + noise, labels)


@pytest.mark.parametrize("kernel", ["cosine", "linear"])
@pytest.mark.parametrize("kind", [CdktMl, CdktPl])
def test_easy_tasks_are_solved_and_training_lowers_the_loss(kind, kernel):
    torch.manual_seed(0)
    method, episodes = kind(torch.nn.Linear(6, 6), channels=6, kernel=kernel).double(), easy()
    assert (method.classify(episodes).argmax(-1) == episodes.labels).double().mean() > 0.9
    optimiser = torch.optim.Adam(method.parameters(), 0.05)
    losses = []
    for _ in range(6):
        loss, scores = method.loss(episodes)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] - 0.02 and method.log_variance.item() != 0
    torch.testing.assert_close(scores.exp().sum(-1), torch.ones(2, 9, dtype=torch.float64))


def test_tasks_are_independent_and_permuted_classes_permute_the_scores():
    method, episodes = Cdkt(channels=6).double().eval(), easy()
    scores = method.classify(episodes)
    torch.testing.assert_close(method.classify(Episodes(episodes.support[1:], episodes.query[1:])), scores[1:])
    order = torch.tensor([2, 0, 1])
    permuted = Cdkt(channels=6, draws=draw_normals(256, 3)[:, order]).double().eval()
    moved = permuted.classify(Episodes(episodes.support[:, order], episodes.query))
    torch.testing.assert_close(moved, scores[:, :, order])


@pytest.mark.parametrize("kind", [CdktMl, CdktPl])
def test_features_far_from_zero_are_told_apart(kind):
    """As after a ReLU: without a normalisation all cosines would be near 1."""
    method, episodes = kind(channels=6).double(), easy()
    moved = Episodes(episodes.support + 50, episodes.query + 50, episodes.labels)
    torch.testing.assert_close(method.loss(moved)[0], method.loss(episodes)[0])


def test_a_low_temperature_is_surer():
    episodes = easy()
    sure, unsure = (
        Cdkt(channels=6, temperature=value).double().eval().classify(episodes).amax(-1).mean() for value in (0.2, 1.0)
    )
    assert sure > unsure + 0.2


def test_float32_holds_many_equal_images():
    support = torch.ones(1, 5, 20, 4) + 1e-4 * torch.randn(1, 5, 20, 4, generator=torch.Generator().manual_seed(0))
    episodes = Episodes(support, torch.ones(1, 5, 4), torch.arange(5)[None])
    for kind in (CdktMl, CdktPl):
        loss, scores = kind(torch.nn.Linear(4, 4), channels=4).eval().loss(episodes)
        loss.backward()
        assert torch.isfinite(scores).all() and torch.isfinite(loss)


@pytest.mark.parametrize("kind", [CdktMl, CdktPl])
def test_mixed_precision_rounds_the_backbone_alone(kind):
    rng = torch.Generator().manual_seed(0)
    support, query = torch.randn(1, 5, 8, 4, generator=rng), torch.randn(1, 40, 4, generator=rng)
    method = kind(torch.nn.Linear(4, 4), channels=4, temperature=0.02)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss, scores = method.loss(Episodes(support, query, torch.arange(40)[None] % 5))
    assert loss.dtype == scores.dtype == torch.float32 and torch.isfinite(loss)
