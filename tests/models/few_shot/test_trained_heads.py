"""Heads trained in stacks against torch's layer, loss and optimiser, one task at a time in all dimensions.

Coordinates in a span keep products, and lifting brings vectors back.
"""

from dataclasses import replace

import numpy as np
import pytest
from vector_tasks import by_class, task, tasks

from hardlook.errors import OptionError
from hardlook.models.few_shot.span import compute_span
from hardlook.models.few_shot.stacking import stack_episodes
from hardlook.models.few_shot.trained_heads import CosineHead, LinearHead, NegCosineHead, batch_order, initial_heads

torch = pytest.importorskip("torch")

normalize = torch.nn.functional.normalize


@pytest.fixture(autouse=True)
def one_thread():
    """As in a worker; on many threads steps this small mostly wait."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def by_torch(episode, learner, scale=None, margin=0.0):
    """Logits of the queries after the same first weights and the same batches."""
    stack = stack_episodes([episode])
    start, order = initial_heads(stack, learner.seed), batch_order(stack, learner.descent, learner.seed)[0]
    weight = torch.tensor(start.weight[0], dtype=torch.float64, requires_grad=True)
    bias = torch.tensor(start.bias[0], dtype=torch.float64, requires_grad=True)
    rows, labels = (torch.from_numpy(part) for part in by_class(episode))

    def logits(x):
        x = x.double()
        return x @ weight.T + bias if scale is None else scale * normalize(x) @ normalize(weight).T

    optimiser = torch.optim.SGD(
        [weight, bias], lr=learner.descent.rate, momentum=0.9, dampening=learner.descent.dampening, weight_decay=1e-3
    )
    for batch in order:
        batch = batch[batch >= 0]
        optimiser.zero_grad()
        out, truth = logits(rows[batch]), labels[batch]
        if scale is not None:
            out = out - scale * margin * torch.nn.functional.one_hot(truth, episode.ways)
        torch.nn.functional.cross_entropy(out, truth).backward()
        optimiser.step()
    return logits(torch.from_numpy(episode.query)).detach().numpy()


SETTINGS = [{}, {"steps": 33}, {"dampening": 0.9, "epochs": 20}, {"batch": 7, "epochs": 10, "rate": 0.05}]


@pytest.mark.parametrize("args", SETTINGS, ids=str)
@pytest.mark.parametrize("width", [64, 8])
def test_linear_heads(width, args):
    episodes, learner = tasks(2, shots=[3, 1, 2, 5, 2], width=width), LinearHead(seed=3, **args)
    for episode, scores in zip(episodes, learner.classify(episodes), strict=True):
        np.testing.assert_allclose(scores, by_torch(episode, learner), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("args", SETTINGS, ids=str)
def test_cosine_heads(args):
    episodes, learner = tasks(2, ways=3, shots=4, width=64), CosineHead(seed=3, **args)
    for episode, scores in zip(episodes, learner.classify(episodes), strict=True):
        np.testing.assert_allclose(scores, by_torch(episode, learner, scale=2.0), atol=1e-4)


@pytest.mark.parametrize("args", SETTINGS, ids=str)
def test_heads_with_a_negative_margin(args):
    episodes, learner = tasks(2, ways=3, shots=4, width=64), NegCosineHead(seed=3, **args)
    for episode, scores in zip(episodes, learner.classify(episodes), strict=True):
        np.testing.assert_allclose(scores, by_torch(episode, learner, scale=30.0, margin=-0.02), atol=1e-3, rtol=1e-4)


def test_every_pass_shows_every_support_once():
    learner = LinearHead(epochs=6)
    order = batch_order(stack_episodes(tasks(3, ways=3, shots=3)), learner.descent, seed=0)
    assert order.shape == (3, 18, 4)
    passes = order.reshape(3, 6, 12)
    assert (np.sort(passes)[..., 3:] == np.arange(9)).all()
    assert (passes[..., 9:] == -1).all()
    assert len({tuple(one) for one in passes.reshape(18, 12).tolist()}) == 18


def test_first_weights_are_uniform_and_of_the_key():
    heads = initial_heads(
        stack_episodes([task(0, width=400), replace(task(0, width=400), key="other"), task(0, width=400)]), 0
    )
    assert np.array_equal(heads.weight[0], heads.weight[2])
    assert not np.array_equal(heads.weight[0], heads.weight[1])
    assert abs(heads.weight).max() <= 1 / 20
    assert heads.weight.std() == pytest.approx(1 / 20 / np.sqrt(3), rel=0.05)


@pytest.mark.parametrize("args", [{"epochs": 0}, {"batch": 0}, {"steps": -1}, {"rate": 0.0}, {"dampening": 1.5}])
def test_values_that_train_nothing(args):
    with pytest.raises(OptionError, match="train no head"):
        LinearHead(**args)


def check(rows):
    span = compute_span(rows)
    wide = rows.astype(float)
    size = max(1.0, float((wide**2).sum(2).max()))
    products, kept = wide @ wide.transpose(0, 2, 1), span.coordinates @ span.coordinates.transpose(0, 2, 1)
    np.testing.assert_allclose(kept, products, atol=1e-10 * size)
    np.testing.assert_allclose(span.lift(span.coordinates), wide, atol=1e-5 * np.sqrt(size))
    return span


@pytest.mark.parametrize("shape", [(3, 5, 40), (2, 7, 7), (2, 9, 4), (4, 1, 3)])
def test_random_rows(shape):
    span = check(np.random.default_rng(0).standard_normal(shape).astype(np.float32))
    assert span.coordinates.shape == (shape[0], shape[1], min(shape[1:]))


def test_rows_that_repeat_or_are_empty():
    rows = np.random.default_rng(1).standard_normal((3, 6, 20)).astype(np.float32)
    rows[0, 1] = rows[0, 0]
    rows[1, 2:] = 0
    rows[2] = 0
    span = check(rows)
    assert np.isfinite(span.basis).all()
    assert not span.coordinates[2].any()


def test_rows_of_very_different_size():
    rows = np.random.default_rng(2).standard_normal((2, 4, 30)).astype(np.float32)
    rows[:, 0] *= 1000
    check(rows)
