"""The loss against scipy's relative entropy."""

import numpy as np
import pytest
from scipy.stats import entropy

from hardlook.clicks.training.divergence import kl_divergence
from hardlook.metrics.click_map_scores import map_divergence

torch = pytest.importorskip("torch")


def test_the_check_of_the_specification():
    p, q = torch.tensor([[[0.5, 0.5], [0.0, 0.0]]]), torch.full((1, 2, 2), 0.25)
    assert kl_divergence(p, q).item() == pytest.approx(0.693147, abs=1e-6)
    assert kl_divergence(3 * p, 8 * q).item() == pytest.approx(0.693147, abs=1e-6)


def test_it_is_relative_entropy_map_by_map():
    rng = np.random.default_rng(0)
    p, q = rng.random((2, 3, 6, 7)) + 0.01
    given = kl_divergence(torch.from_numpy(p), torch.from_numpy(q)).numpy()
    wanted = [entropy(one.ravel(), other.ravel()) for one, other in zip(p, q, strict=True)]
    np.testing.assert_allclose(given, wanted, rtol=1e-6)
    np.testing.assert_allclose(given, [map_divergence(one, other) for one, other in zip(p, q, strict=True)], rtol=1e-12)


def test_zeros_stay_finite_and_have_finite_gradients():
    p = torch.tensor([[[1.0, 0.0]]])
    q = torch.tensor([[[0.0, 1.0]]], requires_grad=True)
    loss = kl_divergence(p, q).sum()
    loss.backward()
    assert loss.item() == pytest.approx(9 * np.log(10), rel=1e-5)
    assert torch.isfinite(q.grad).all()
