"""Inner loops: steps written by hand, tasks that do not touch each other, and what second order changes."""

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn import functional

from hardlook.networks.few_shot.inner_loops import adapt_and_score, adapt_linear, batch_statistics
from hardlook.networks.few_shot.method import Episodes


def make_episodes(tasks=3, ways=3, shots=2, queries=4, size=5, seed=0):
    rng = torch.Generator().manual_seed(seed)
    support = torch.randn(tasks, ways, shots, size, generator=rng, dtype=torch.float64)
    query = torch.randn(tasks, queries, size, generator=rng, dtype=torch.float64)
    return Episodes(support, query, torch.zeros(tasks, queries, dtype=torch.long))


def step_by_hand(network, episodes, task, steps, rate):
    """Scores of one task after steps that torch's autograd takes, one parameter tensor after the other."""
    fast = {name: value.detach().clone().requires_grad_() for name, value in network.named_parameters()}
    for _ in range(steps):
        scores = torch.func.functional_call(network, fast, (episodes.support[task].flatten(0, 1),))
        loss = functional.cross_entropy(scores, episodes.support_labels())
        gradients = torch.autograd.grad(loss, list(fast.values()))
        moved = zip(fast.items(), gradients, strict=True)
        fast = {name: (value - rate * gradient).detach().requires_grad_() for (name, value), gradient in moved}
    return torch.func.functional_call(network, fast, (episodes.query[task],))


def test_all_tasks_at_once_equal_a_loop_over_tasks():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(5, 7), nn.BatchNorm1d(7), nn.ReLU(), nn.Linear(7, 3)).double()
    episodes = make_episodes()
    ours = adapt_and_score(network, episodes, steps=3, rates=lambda name: 0.1)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    for task in range(3):
        with batch_statistics(network):
            expected = step_by_hand(network, episodes, task, 3, 0.1)
        torch.testing.assert_close(ours[task], expected, rtol=1e-10, atol=1e-12)
    # Neither weights nor running statistics have moved.
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())


def test_batch_statistics_are_those_of_batch_normalisation():
    """As torch's own in training, with its first and second derivatives; maps in half precision stay so."""
    torch.manual_seed(0)
    norm = nn.BatchNorm2d(3).double()
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    x = (5 + 2 * torch.randn(4, 3, 2, 3, dtype=torch.float64)).requires_grad_()
    with batch_statistics(norm.eval()):
        found = norm(x)
        expected = functional.batch_norm(x, None, None, norm.weight, norm.bias, training=True, eps=norm.eps)
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
        assert torch.autograd.gradgradcheck(norm, (x,))
        norm.float()
        rounded = x.detach().bfloat16()
        with torch.autocast("cpu", torch.bfloat16):
            half = norm(rounded)
    assert half.dtype == torch.bfloat16
    wide = functional.batch_norm(rounded.float(), None, None, norm.weight, norm.bias, training=True, eps=norm.eps)
    torch.testing.assert_close(half, wide.bfloat16(), rtol=0.01, atol=0.01)


def test_parameters_with_rate_0_stay():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(5, 4), nn.Linear(4, 3)).double()
    episodes = make_episodes()
    moved = adapt_and_score(network, episodes, steps=1, rates=lambda name: 0.0 if name.startswith("1.") else 0.3)
    one = step_by_hand(network, episodes, 0, 1, 0.3)
    assert not torch.allclose(moved[0], one)
    still = adapt_and_score(network, episodes, steps=4, rates=lambda name: 0.0)
    torch.testing.assert_close(still[1], network(episodes.query[1]))


def test_first_order_has_the_same_scores_and_other_gradients():
    torch.manual_seed(0)
    network, episodes, gradients = nn.Linear(5, 3).double(), make_episodes(), []
    for first_order in (False, True):
        network.zero_grad()
        scores = adapt_and_score(network, episodes, steps=2, rates=lambda name: 0.5, first_order=first_order)
        functional.cross_entropy(scores.flatten(0, 1), episodes.labels.flatten()).backward()
        gradients.append((scores.detach(), network.weight.grad.clone()))
    torch.testing.assert_close(gradients[0][0], gradients[1][0])
    assert not torch.allclose(gradients[0][1], gradients[1][1], rtol=1e-3)


def test_a_linear_layer_adapts_as_the_general_loop_does():
    torch.manual_seed(1)
    linear, episodes = nn.Linear(5, 3).double(), make_episodes()
    general = adapt_and_score(linear, episodes, steps=4, rates=lambda name: 0.2)
    support = episodes.support.flatten(1, 2)
    for first_order in (False, True):
        weight, bias = adapt_linear(
            support, episodes.support_labels(), linear.weight, linear.bias, steps=4, rate=0.2, first_order=first_order
        )
        torch.testing.assert_close(episodes.query @ weight.mT + bias[:, None], general, rtol=1e-10, atol=1e-12)


def test_first_order_of_a_linear_layer_has_other_gradients():
    """The gradient goes past the steps, as if the layer had been added to them."""
    torch.manual_seed(1)
    linear, episodes = nn.Linear(5, 3).double(), make_episodes()
    support, labels = episodes.support.flatten(1, 2), episodes.support_labels()
    for first_order in (False, True):
        linear.zero_grad()
        weight, bias = adapt_linear(
            support, labels, linear.weight, linear.bias, steps=2, rate=0.5, first_order=first_order
        )
        (weight.square().sum() + bias.square().sum()).backward()
        for start, end in ((linear.weight, weight), (linear.bias, bias)):
            assert torch.allclose(start.grad, 2 * end.detach().sum(0)) == first_order


def test_batch_statistics_end_with_an_error():
    norm = nn.BatchNorm1d(2)
    with pytest.raises(KeyError), batch_statistics(norm):
        raise KeyError
    assert "forward" not in vars(norm)


def test_every_task_draws_its_own_dropout():
    network, episodes = nn.Sequential(nn.Dropout(0.5), nn.Linear(5, 3)).double(), make_episodes(tasks=1)
    alike = replace(
        episodes,
        support=episodes.support.expand(2, -1, -1, -1),
        query=episodes.query.expand(2, -1, -1),
        labels=episodes.labels.expand(2, -1),
    )
    scores = adapt_and_score(network, alike, steps=1, rates=lambda name: 0.1)
    assert not torch.allclose(scores[0], scores[1])
