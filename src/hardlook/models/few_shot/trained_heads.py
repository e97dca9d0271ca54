"""Baseline, Baseline++ and Neg-Cosine: heads that are trained on the supports of each task by gradient descent.

Chen, Liu, Kira, Wang and Huang, "A closer look at few-shot classification", ICLR 2019 (Baseline, Baseline++ with
cosines as the paper says; its code lets each class also learn a length). Liu, Cao, Lin, Li, Zhang, Long and Hu,
"Negative margin matters: understanding margin in few-shot classification", ECCV 2020 (Neg-Cosine: a margin below 0
makes training easier and the classes looser). The heads of many tasks are trained at once, step by step as for one
task alone.

>>> from hardlook.models.roles import Episode
>>> corners = np.eye(2, dtype=np.float32)
>>> episode = Episode(corners, np.array([0, 1]), corners, ways=2, key="a task")
>>> [head.classify([episode])[0].argmax(1).tolist() for head in (LinearHead(), CosineHead(), NegCosineHead())]
[[0, 1], [0, 1], [0, 1]]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hardlook.models.few_shot.published_settings import (
    BASELINE,
    BASELINE_PP_SCALE,
    NEG_COSINE_MARGIN,
    NEG_COSINE_SCALE,
    Descent,
)
from hardlook.models.few_shot.span import compute_span
from hardlook.models.few_shot.stacking import Stack, StackedLearner, softmax
from hardlook.models.unit_vectors import unit_vectors
from hardlook.randomness import generator

Array = NDArray[np.float64]


class LinearHead(StackedLearner):
    """Baseline. Scores are the logits of a head with bias; the arguments are those of `published_settings.Descent`.

    First weights and the order of the supports are drawn from `seed` and the episode's key.
    """

    flags = ("GL", "TT")

    def __init__(
        self,
        epochs: int = BASELINE.epochs,
        batch: int = BASELINE.batch,
        steps: int = BASELINE.steps,
        rate: float = BASELINE.rate,
        dampening: float = BASELINE.dampening,
        seed: int = 0,
    ) -> None:
        self.descent = Descent(epochs=epochs, batch=batch, steps=steps, rate=rate, dampening=dampening)
        self.seed = seed

    def score_stack(self, stack: Stack) -> NDArray[np.float32]:
        """Logits."""
        heads = train_heads(stack, self.descent, self.seed)
        return stack.query @ heads.weight.transpose(0, 2, 1) + heads.bias[:, None]


class CosineHead(StackedLearner):
    """Baseline++. Scores are `scale` times the cosines to one trained vector per class; the rest as in `LinearHead`."""

    flags = ("GL", "TT")

    def __init__(
        self,
        scale: float = BASELINE_PP_SCALE,
        epochs: int = BASELINE.epochs,
        batch: int = BASELINE.batch,
        steps: int = BASELINE.steps,
        rate: float = BASELINE.rate,
        dampening: float = BASELINE.dampening,
        seed: int = 0,
    ) -> None:
        self.descent = Descent(epochs=epochs, batch=batch, steps=steps, rate=rate, dampening=dampening)
        self.cosine = Margin(scale)
        self.seed = seed

    def score_stack(self, stack: Stack) -> NDArray[np.float32]:
        """Scaled cosines, in [-scale, scale]; queries have no margin."""
        heads = train_heads(stack, self.descent, self.seed, self.cosine)
        cosines = unit_vectors(stack.query) @ unit_vectors(heads.weight).transpose(0, 2, 1)
        return np.float32(self.cosine.scale) * cosines


class NegCosineHead(CosineHead):
    """Neg-Cosine. As `CosineHead`, but in training the true class's cosine is lessened by `margin`."""

    def __init__(
        self,
        margin: float = NEG_COSINE_MARGIN,
        scale: float = NEG_COSINE_SCALE,
        epochs: int = BASELINE.epochs,
        batch: int = BASELINE.batch,
        steps: int = BASELINE.steps,
        rate: float = BASELINE.rate,
        dampening: float = BASELINE.dampening,
        seed: int = 0,
    ) -> None:
        super().__init__(scale, epochs, batch, steps, rate, dampening, seed)
        self.cosine = Margin(scale, margin)


@dataclass(frozen=True)
class Heads:
    """The heads of T tasks: `weight` (T, ways, D) and `bias` (T, ways) float32."""

    weight: NDArray[np.float32]
    bias: NDArray[np.float32]


@dataclass(frozen=True)
class Margin:
    """A head of cosines: logits are `scale` times (cosine - `margin` for the true class), without bias."""

    scale: float
    margin: float = 0.0


def initial_heads(stack: Stack, seed: int) -> Heads:
    """Heads as a linear layer starts: uniform in +-1 / sqrt(D), drawn from each task's key."""
    width = stack.support.shape[2]
    bound = 1 / np.sqrt(width)
    drawn = [generator(seed, "head", key).uniform(-bound, bound, (stack.ways, width + 1)) for key in stack.keys]
    both = np.stack(drawn).astype(np.float32)
    return Heads(both[..., :-1], both[..., -1])


def batch_order(stack: Stack, descent: Descent, seed: int) -> NDArray[np.int64]:
    """(T, steps, batch) supports of each step, drawn from each task's key; -1 fills the last batch of a pass."""
    supports = stack.support.shape[1]
    steps = descent.count_steps(supports)
    per_pass = -(-supports // descent.batch)
    passes = -(-steps // per_pass)
    order = np.full((len(stack.keys), passes, per_pass * descent.batch), -1, np.int64)
    straight = np.tile(np.arange(supports), (passes, 1))
    for place, key in enumerate(stack.keys):
        order[place, :, :supports] = generator(seed, "batches", key).permuted(straight, axis=1)
    return order.reshape(len(order), -1, descent.batch)[:, :steps]


def train_heads(stack: Stack, descent: Descent, seed: int, cosine: Margin | None = None) -> Heads:
    """The heads after training: linear ones with a bias, or, with a `Margin`, vectors to take cosines with.

    >>> support = np.array([[[1.0, 0.0], [0.0, 1.0]]], np.float32)
    >>> stack = Stack(support, np.array([[0, 1]]), support, ways=2, keys=("task",))
    >>> heads = train_heads(stack, Descent(steps=200), seed=0)
    >>> (support @ heads.weight.transpose(0, 2, 1) + heads.bias[:, None]).argmax(2).tolist()
    [[0, 1]]
    """
    start = initial_heads(stack, seed)
    supports = unit_vectors(stack.support) if cosine else stack.support
    span = compute_span(np.concatenate([supports, start.weight], axis=1))
    rows, weight = np.split(span.coordinates, [supports.shape[1]], axis=1)
    bias = start.bias.astype(np.float64)
    order = batch_order(stack, descent, seed)
    truth = np.eye(stack.ways)[stack.labels[0]]
    tasks = np.arange(len(rows))[:, None]
    weight_momentum, bias_momentum = np.zeros_like(weight), np.zeros_like(bias)
    for step in range(order.shape[1]):
        places = order[:, step]
        places = places[:, places[0] >= 0]  # batches fall short in all tasks at once
        weight_gradient, bias_gradient = _gradients(rows[tasks, places], truth[places], weight, bias, cosine)
        # As in torch: the first step enters the momentum undampened.
        share = 1.0 if step == 0 else 1 - descent.dampening
        weight_gradient = weight_gradient + descent.weight_decay * weight
        weight_momentum = descent.momentum * weight_momentum + share * weight_gradient
        weight = weight - descent.rate * weight_momentum
        if cosine is None:
            bias_gradient = bias_gradient + descent.weight_decay * bias
            bias_momentum = descent.momentum * bias_momentum + share * bias_gradient
            bias = bias - descent.rate * bias_momentum
    return Heads(span.lift(weight).astype(np.float32), bias.astype(np.float32))


def _gradients(x: Array, y: Array, weight: Array, bias: Array, cosine: Margin | None) -> tuple[Array, Array]:
    """Gradients of the mean cross-entropy: x (T, b, r), y (T, b, ways), weight (T, ways, r), bias (T, ways)."""
    if cosine is None:
        wrong = (softmax(x @ weight.transpose(0, 2, 1) + bias[:, None]) - y) / x.shape[1]
        return wrong.transpose(0, 2, 1) @ x, wrong.sum(axis=1)
    lengths = np.sqrt((weight * weight).sum(axis=2, keepdims=True))
    direction = weight / lengths
    cosines = x @ direction.transpose(0, 2, 1)
    wrong = (softmax(cosine.scale * (cosines - cosine.margin * y)) - y) * (cosine.scale / x.shape[1])
    # A cosine changes only across its vector: what the gradient has along it falls away.
    along = (wrong * cosines).sum(axis=1)[..., None]
    return (wrong.transpose(0, 2, 1) @ x - along * direction) / lengths, np.zeros_like(bias)
