"""PUTM: a round by hand, the posterior that its rounds climb, and classes of unequal size."""

import math
from dataclasses import replace

import pytest
import torch

from hardlook.networks.few_shot.method import Episodes
from hardlook.networks.few_shot.putm import Putm, navigate


def column(*values):
    return torch.tensor(values, dtype=torch.float64)[None, :, None]


def test_shares_by_hand():
    """Prototypes 0 and 2, queries 0 and 1, prior 3/4 and 1/4."""
    forward, backward = navigate(column(0.0, 1.0), column(0.0, 2.0), torch.tensor([[0.75, 0.25]]).double(), math.log(2))
    # Squared distances 0, 4 and 1, 1 give the weights 1, 1/16 and 1/2, 1/2.
    expected = [[0.75 / (0.75 + 0.25 / 16), 0.25 / 16 / (0.75 + 0.25 / 16)], [0.75, 0.25]]
    torch.testing.assert_close(forward[0], torch.tensor(expected, dtype=torch.float64))
    expected = [[2 / 3, 1 / 9], [1 / 3, 8 / 9]]
    torch.testing.assert_close(backward[0], torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize(
    ("adaptive", "first", "second"),
    [
        # Forward shares of the query 0 are 16/17 and 1/17, of the two queries 1 they are 1/2 and 1/2.
        (1.0, 1 / (1 + 16 / 17 + 1), (2 + 1) / (1 + 1 / 17 + 1)),
        # Backward shares are 1/2, 1/4, 1/4 and 1/17, 8/17, 8/17; each class has one and a half queries.
        (0.0, 1.5 * (1 / 4 + 1 / 4) / 2.5, (2 + 1.5 * 16 / 17) / 2.5),
    ],
)
def test_a_round_by_hand(adaptive, first, second):
    method = Putm(steps=1, sharpness=math.log(2), adaptive=adaptive)
    prototypes, prior = method.refine(column(0.0, 2.0)[:, :, None], column(0.0, 1.0, 1.0))
    torch.testing.assert_close(prototypes, column(first, second))
    torch.testing.assert_close(prior, torch.tensor([[(16 / 17 + 1) / 3, (1 / 17 + 1) / 3]]).double())


def draw(sizes=(4, 4, 4), shots=2, seed=0, spread=1.2):
    rng = torch.Generator().manual_seed(seed)
    centres = torch.randn(1, len(sizes), 8, generator=rng, dtype=torch.float64)
    labels = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))[None]
    query = centres[:, labels[0]] + spread * torch.randn(1, len(labels[0]), 8, generator=rng, dtype=torch.float64) / 2
    support = (
        centres[:, :, None] + spread * torch.randn(1, len(sizes), shots, 8, generator=rng, dtype=torch.float64) / 2
    )
    return Episodes(support, query, labels)


def test_adaptive_rounds_climb_the_posterior():
    """Expectation maximisation: supports are certain members of their class, queries come from the mixture."""
    episodes = draw()
    sharpness, values = 0.8, []
    for steps in range(12):
        prototypes, prior = Putm(steps=steps, sharpness=sharpness, adaptive=1.0).refine(
            episodes.support, episodes.query
        )
        own = (episodes.support - prototypes[:, :, None]).square().sum()
        distances = (episodes.query[:, :, None] - prototypes[:, None]).square().sum(-1)
        values.append(
            (torch.logsumexp(prior.log()[:, None] - sharpness * distances, -1).sum() - sharpness * own).item()
        )
    steps = torch.tensor(values).diff()
    assert (steps >= -1e-10).all() and steps[0] > 0.1


def test_backward_shares_make_classes_of_equal_size():
    episodes = draw((9, 2, 1))
    _, backward = navigate(episodes.query, episodes.support.mean(2), torch.full((1, 3), 1 / 3).double(), 3.0)
    torch.testing.assert_close(backward.sum(1), torch.ones(1, 3, dtype=torch.float64))


def accuracy(method, sizes):
    found = [draw(sizes, shots=1, seed=seed, spread=2.0) for seed in range(60)]
    whole = Episodes(*(torch.cat([getattr(one, name) for one in found]) for name in ("support", "query", "labels")))
    return (method.classify(whole).argmax(-1) == whole.labels).double().mean().item()


def test_queries_help_and_unequal_classes_need_the_adaptive_prior():
    even, uneven = (12, 12, 12), (28, 6, 2)
    plain, moved = Putm(steps=0), Putm()
    assert accuracy(moved, even) > accuracy(plain, even) + 0.02
    assert accuracy(moved, uneven) > accuracy(Putm(adaptive=0.0), uneven) + 0.02


def test_laws():
    episodes, method = draw(), Putm()
    scores = method.classify(episodes)
    torch.testing.assert_close(scores.exp().sum(-1), torch.ones(1, 12, dtype=torch.float64))
    order = torch.tensor([2, 0, 1])
    moved = method.classify(replace(episodes, support=episodes.support[:, order]))
    torch.testing.assert_close(moved, scores[:, :, order])
    turned = method.classify(replace(episodes, query=episodes.query.flip(1)))
    torch.testing.assert_close(turned, scores.flip(1))
    assert method.transductive
    assert not torch.allclose(method.classify(replace(episodes, query=episodes.query[:, :3])), scores[:, :3])


def test_a_class_without_queries_is_finite():
    support = torch.eye(3)[None, :, None].repeat(1, 1, 1, 1)
    scores = Putm(sharpness=400.0, adaptive=1.0).classify(Episodes(support, torch.eye(3)[None, :1].repeat(1, 9, 1)))
    assert torch.isfinite(scores).all() and (scores.argmax(-1) == 0).all()
