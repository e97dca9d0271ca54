"""Heads of many tasks trained at once by stochastic gradient descent, step by step as for one task alone.

>>> support = np.array([[[1.0, 0.0], [0.0, 1.0]]], np.float32)
>>> stack = Stack(support, np.array([[0, 1]]), support, ways=2, keys=("task",))
>>> heads = trained_heads(stack, Descent(steps=200), seed=0)
>>> (support @ heads.weight.transpose(0, 2, 1) + heads.bias[:, None]).argmax(2).tolist()
[[0, 1]]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hardlook.models.few_shot.published_settings import Descent, steps_in
from hardlook.models.few_shot.span import span_of
from hardlook.models.few_shot.stacking import Stack
from hardlook.models.few_shot.vector_geometry import softmax, unit
from hardlook.randomness import generator

Array = NDArray[np.float64]


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


def first_heads(stack: Stack, seed: int) -> Heads:
    """Heads as a linear layer starts: uniform in +-1 / sqrt(D), drawn from each task's key."""
    width = stack.support.shape[2]
    bound = 1 / np.sqrt(width)
    drawn = [generator(seed, "head", key).uniform(-bound, bound, (stack.ways, width + 1)) for key in stack.keys]
    both = np.stack(drawn).astype(np.float32)
    return Heads(both[..., :-1], both[..., -1])


def batch_order(stack: Stack, descent: Descent, seed: int) -> NDArray[np.int64]:
    """(T, steps, batch) supports of each step, drawn from each task's key; -1 fills the last batch of a pass."""
    supports, steps = stack.support.shape[1], steps_in(descent, stack.support.shape[1])
    per_pass = -(-supports // descent.batch)
    passes = -(-steps // per_pass)
    order = np.full((len(stack.keys), passes, per_pass * descent.batch), -1, np.int64)
    straight = np.tile(np.arange(supports), (passes, 1))
    for place, key in enumerate(stack.keys):
        order[place, :, :supports] = generator(seed, "batches", key).permuted(straight, axis=1)
    return order.reshape(len(order), -1, descent.batch)[:, :steps]


def trained_heads(stack: Stack, descent: Descent, seed: int, cosine: Margin | None = None) -> Heads:
    """The heads after training: linear ones with a bias, or, with a `Margin`, vectors to take cosines with."""
    start = first_heads(stack, seed)
    supports = unit(stack.support) if cosine else stack.support
    span = span_of(np.concatenate([supports, start.weight], axis=1))
    rows, weight = np.split(span.coordinates, [supports.shape[1]], axis=1)
    weight, bias = _descend(rows, stack, weight, start.bias.astype(np.float64), descent, seed, cosine)
    return Heads(span.lifted(weight).astype(np.float32), bias.astype(np.float32))


def _descend(
    rows: Array, stack: Stack, weight: Array, bias: Array, descent: Descent, seed: int, cosine: Margin | None
) -> tuple[Array, Array]:
    order = batch_order(stack, descent, seed)
    truth = np.eye(stack.ways)[stack.labels[0]]
    tasks = np.arange(len(rows))[:, None]
    weight_speed, bias_speed = np.zeros_like(weight), np.zeros_like(bias)
    for step in range(order.shape[1]):
        places = order[:, step]
        places = places[:, places[0] >= 0]  # batches fall short in all tasks at once
        x, y = rows[tasks, places], truth[places]
        pull = _weight_pull(x, y, weight, bias, cosine)
        # As torch has it: the first step enters the momentum undampened.
        share = 1.0 if step == 0 else 1 - descent.dampening
        weight_speed = descent.momentum * weight_speed + share * (pull[0] + descent.weight_decay * weight)
        weight = weight - descent.rate * weight_speed
        if cosine is None:
            bias_speed = descent.momentum * bias_speed + share * (pull[1] + descent.weight_decay * bias)
            bias = bias - descent.rate * bias_speed
    return weight, bias


def _weight_pull(x: Array, y: Array, weight: Array, bias: Array, cosine: Margin | None) -> tuple[Array, Array]:
    """Gradients of the mean cross-entropy: x (T, b, r), y (T, b, ways), weight (T, ways, r), bias (T, ways)."""
    if cosine is None:
        wrong = (softmax(x @ weight.transpose(0, 2, 1) + bias[:, None]) - y) / x.shape[1]
        return wrong.transpose(0, 2, 1) @ x, wrong.sum(axis=1)
    lengths = np.sqrt((weight * weight).sum(axis=2, keepdims=True))
    direction = weight / lengths
    cosines = x @ direction.transpose(0, 2, 1)
    wrong = (softmax(cosine.scale * (cosines - cosine.margin * y)) - y) * (cosine.scale / x.shape[1])
    # A cosine changes only across its vector: what the pull has along it falls away.
    along = (wrong * cosines).sum(axis=1)[..., None]
    return (wrong.transpose(0, 2, 1) @ x - along * direction) / lengths, np.zeros_like(bias)
