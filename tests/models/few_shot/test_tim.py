"""TIM against easyfsl (cosines) and against the paper's loss under torch's autograd and Adam."""

import numpy as np
import pytest
from easyfsl_methods import classify, methods, torch
from vector_tasks import tasks

from hardlook.errors import OptionError
from hardlook.models.few_shot.tim import Tim

normalize = torch.nn.functional.normalize


@pytest.mark.parametrize("rate", [1e-4, 1e-2])
@pytest.mark.parametrize("shots", [1, [1, 4, 2, 3, 1]])
def test_cosines_equal_easyfsl(shots, rate):
    episodes = tasks(5, shots=shots, spread=1.3)
    learner = Tim(steps=30, rate=rate, temperature=10.0, supervision=1.0, metric="cosine")
    for episode, scores in zip(episodes, learner.classify(episodes), strict=True):
        judge = methods.TIM(feature_normalization=2, fine_tuning_steps=30, fine_tuning_lr=rate)
        np.testing.assert_allclose(scores, 10 * classify(judge, episode), atol=5e-5)


def by_torch(episode, learner):
    """The paper's loss (equations 2 to 4), in float64."""
    support, query = (normalize(torch.from_numpy(rows).double(), dim=1) for rows in (episode.support, episode.query))
    labels = torch.from_numpy(episode.support_labels)
    means = torch.stack([support[labels == way].mean(0) for way in range(episode.ways)])
    weights = means.clone().requires_grad_()
    optimiser = torch.optim.Adam([weights], lr=learner.rate)

    def logits(rows):
        return -learner.temperature / 2 * ((rows[:, None] - weights[None]) ** 2).sum(2)

    for _ in range(learner.steps):
        shares = logits(query).softmax(1)
        marginal = shares.mean(0)
        entropies = -(marginal * marginal.log()).sum(), -(shares * shares.log()).sum(1).mean()
        supervised = torch.nn.functional.cross_entropy(logits(support), labels)
        optimiser.zero_grad()
        loss = learner.supervision * supervised - (entropies[0] - learner.conditional * entropies[1])
        loss.backward()
        optimiser.step()
    return logits(query).detach().numpy()


@pytest.mark.parametrize("settings", [{"steps": 60, "rate": 1e-3}, {"steps": 25, "rate": 1e-2, "supervision": 1.0}])
def test_distances_equal_the_papers_loss(settings):
    learner, episodes = Tim(**settings), tasks(3, shots=[2, 1, 3, 1, 1], spread=1.3)
    for episode, scores in zip(episodes, learner.classify(episodes), strict=True):
        np.testing.assert_allclose(scores, by_torch(episode, learner), atol=2e-4)


def test_published_values_are_the_default():
    learner = Tim()
    assert (learner.steps, learner.rate, learner.temperature) == (1000, 1e-4, 15.0)
    assert (learner.supervision, learner.conditional, learner.metric) == (0.1, 0.1, "euclidean")


def test_tuning_spreads_the_answers():
    """Half of the classes seem nearer to every query at first; in the end all are answered."""
    [episode] = tasks(1, shots=1, queries=10, spread=1.5)
    truth = np.arange(50) % 5
    [before], [after] = (Tim(steps=steps, rate=1e-3).classify([episode]) for steps in (0, 300))
    assert (after.argmax(1) == truth).mean() > (before.argmax(1) == truth).mean()


def test_saturated_answers_stay_finite():
    far = np.eye(3, dtype=np.float32) * 1000
    [episode] = tasks(1, ways=3, shots=1, width=3)
    same = type(episode)(far, np.arange(3), np.repeat(far[:1], 4, axis=0), 3)
    assert np.isfinite(Tim(steps=50, temperature=500.0).classify([same])[0]).all()


@pytest.mark.parametrize("wrong", [{"steps": -1}, {"rate": 0.0}, {"temperature": 0.0}, {"conditional": -1.0}])
def test_values_that_tune_nothing(wrong):
    with pytest.raises(OptionError, match="tune no class vector"):
        Tim(**wrong)
