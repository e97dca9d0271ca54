"""Semantic projections: cosines worked by hand, the learnt background, statistics of features."""

import pytest

torch = pytest.importorskip("torch")

from hardlook.networks.open_vocabulary.projection import SemanticProjection  # noqa: E402


def make_identity(dimension=2):
    """A projection that changes nothing, with the background along the second axis and a scale of 10."""
    network = SemanticProjection(dimension, dimension)
    with torch.no_grad():
        network.project[0].weight.copy_(torch.eye(dimension))
        network.project[0].bias.zero_()
        network.background.copy_(3 * torch.eye(dimension)[1])
    return network.eval()


def test_scores_are_scaled_cosines():
    network = make_identity()
    words = torch.tensor([[1.0, 0.0], [0.6, 0.8]])
    scores = network.score(torch.tensor([[5.0, 0.0], [0.0, -2.0]]), words)
    assert torch.allclose(scores, torch.tensor([[10.0, 6.0], [0.0, -8.0]]), atol=1e-5)


def test_the_background_has_its_own_vector_whatever_its_word_says():
    network = make_identity()
    words = torch.tensor([[1.0, 0.0], [0.0, 0.0]])
    marked = torch.tensor([False, True])
    assert torch.allclose(network.score(torch.tensor([0.0, 7.0]), words, marked), torch.tensor([0.0, 10.0]), atol=1e-5)


def test_features_are_standardised_and_constant_ones_do_not_divide_by_zero():
    network = make_identity()
    network.set_statistics(torch.tensor([3.0, 1.0]), torch.tensor([2.0, 0.0]))
    assert torch.allclose(network(torch.tensor([5.0, 2.0])), torch.tensor([0.5**0.5, 0.5**0.5]))
    assert {"mean", "deviation"} <= set(network.state_dict())


def test_a_hidden_layer_and_maps_of_any_shape():
    network = SemanticProjection(6, 3, hidden=4).eval()
    vectors = network(torch.randn(2, 5, 7, 6))
    assert vectors.shape == (2, 5, 7, 3) and torch.allclose(vectors.norm(dim=-1), torch.ones(2, 5, 7), atol=1e-5)
