"""Multinomial logistic regressions of many tasks at once, by Newton's method with conjugate gradients.

The objective is scikit-learn's: the sum of cross-entropies plus |W|^2 / (2 C), the intercepts free. Two classes get
two rows of weights like any other number: here each weight w solves w = 1 / (1 + exp(2 w)).

>>> rows = np.array([[[1.0, 0.0], [0.0, 1.0]]])
>>> weight, intercept = fitted(rows, np.array([[0, 1]]), ways=2, c=1.0)
>>> weight.round(4).tolist(), bool(abs(intercept).max() < 1e-8)
([[[0.3374, -0.3374], [-0.3374, 0.3374]]], True)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.models.few_shot.span import span_of
from hardlook.models.few_shot.vector_geometry import softmax

Array = NDArray[np.float64]
GRADIENT = 1e-7
"""A task is done when no part of its gradient is larger; weights are then right to about the same times C."""
MOST_ROUNDS = 100
MOST_HALVINGS = 40


def fitted(rows: NDArray[np.floating[Any]], labels: NDArray[np.int64], ways: int, c: float) -> tuple[Array, Array]:
    """Weights (T, ways, D) and intercepts (T, ways) for rows (T, n, D) and labels (T, n) in 0..ways-1."""
    span = span_of(rows)
    ones = np.ones((*rows.shape[:2], 1))
    inputs = np.concatenate([span.coordinates, ones], axis=2)
    decay = np.full(inputs.shape[2], 1 / c)
    decay[-1] = 0
    problem = _Regressions(inputs, np.eye(ways)[labels], decay)
    weight = np.zeros((len(rows), ways, inputs.shape[2]))
    loss, shares = problem.loss(weight)
    for _ in range(MOST_ROUNDS):
        gradient = problem.gradient(weight, shares)
        # A task that is done stands still, whatever its neighbours do: its answer does not depend on them.
        active = np.abs(gradient).max(axis=(1, 2)) > GRADIENT
        if not active.any():
            break
        step = problem.newton_step(gradient, shares) * active[:, None, None]
        weight, loss, shares = problem.descended(weight, loss, shares, gradient, step)
    # A constant added to all intercepts changes nothing; as in scikit-learn they sum to 0.
    intercept = weight[..., -1]
    return span.lifted(weight[..., :-1]), intercept - intercept.mean(axis=1, keepdims=True)


class _Regressions:
    """Inputs (T, n, r), truth (T, n, ways) one-hot, decay (r,) of each column's weights."""

    def __init__(self, inputs: Array, truth: Array, decay: Array) -> None:
        self.inputs, self.truth, self.decay = inputs, truth, decay
        self.turned = inputs.transpose(0, 2, 1)
        self.squares = inputs * inputs

    def loss(self, weight: Array) -> tuple[Array, Array]:
        """Objectives (T,) and shares (T, n, ways)."""
        logits = self.inputs @ weight.transpose(0, 2, 1)
        logits -= logits.max(axis=2, keepdims=True)
        surprise = np.log(np.exp(logits).sum(axis=2)) - (logits * self.truth).sum(axis=2)
        return surprise.sum(axis=1) + 0.5 * (self.decay * weight * weight).sum(axis=(1, 2)), softmax(logits)

    def gradient(self, weight: Array, shares: Array) -> Array:
        """(T, ways, r)."""
        slope: Array = (shares - self.truth).transpose(0, 2, 1) @ self.inputs + self.decay * weight
        return slope

    def curvature(self, shares: Array, direction: Array) -> Array:
        """The Hessian times a direction (T, ways, r)."""
        moved = self.inputs @ direction.transpose(0, 2, 1)
        moved = shares * (moved - (shares * moved).sum(axis=2, keepdims=True))
        bent: Array = moved.transpose(0, 2, 1) @ self.inputs + self.decay * direction
        return bent

    def newton_step(self, gradient: Array, shares: Array) -> Array:
        """Minus the inverse Hessian times the gradient, as nearly as the gradient is small; (T, ways, r).

        Columns are the span's principal directions, so the Hessian's diagonal is most of it and conditions it well.
        """
        diagonal = (shares * (1 - shares)).transpose(0, 2, 1) @ self.squares + self.decay
        diagonal = np.maximum(diagonal, 1e-12)
        size = np.sqrt(_products(gradient, gradient))
        wanted = np.minimum(0.1, np.sqrt(size)) * size
        step, rest = np.zeros_like(gradient), -gradient
        conditioned = rest / diagonal
        direction, energy = conditioned, _products(rest, conditioned)
        for _ in range(gradient.shape[1] * gradient.shape[2]):
            active = np.sqrt(_products(rest, rest)) > wanted
            if not active.any():
                break
            bent = self.curvature(shares, direction)
            bend = _products(direction, bent)
            length = np.where(active & (bend > 0), energy / np.where(bend > 0, bend, 1), 0)[:, None, None]
            step = step + length * direction
            rest = rest - length * bent
            conditioned = rest / diagonal
            before, energy = energy, _products(rest, conditioned)
            direction = conditioned + (energy / np.where(before > 0, before, 1))[:, None, None] * direction
        return step

    def descended(
        self, weight: Array, loss: Array, shares: Array, gradient: Array, step: Array
    ) -> tuple[Array, Array, Array]:
        """Weights, losses and shares after the step, halved in a task until its objective falls enough."""
        promised = 1e-4 * _products(gradient, step)
        length = np.ones(len(weight))
        for _ in range(MOST_HALVINGS):
            tried = weight + length[:, None, None] * step
            tried_loss, tried_shares = self.loss(tried)
            # Near the end the gain is below what the objective can show.
            short = tried_loss > loss + length * promised + 1e-12 * (1 + np.abs(loss))
            if not short.any():
                break
            length = np.where(short, 0.5 * length, length)
        return tried, tried_loss, tried_shares


def _products(one: Array, other: Array) -> Array:
    products: Array = (one * other).sum(axis=(1, 2))
    return products
