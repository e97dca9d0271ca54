"""RFS: logistic regression on features of length 1, fitted for many tasks at once.

Tian, Wang, Krishnan, Tenenbaum and Isola, "Rethinking few-shot image classification: a good embedding is all you
need?", ECCV 2020.

>>> from hardlook.models.roles import Episode
>>> corners = np.eye(2, dtype=np.float32)
>>> Logistic().classify([Episode(corners, np.array([0, 1]), 3 * corners, ways=2)])[0].argmax(1).tolist()
[0, 1]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import OptionError
from hardlook.models.few_shot.published_settings import RFS_C
from hardlook.models.few_shot.span import compute_span
from hardlook.models.few_shot.stacking import Stack, StackedLearner, softmax
from hardlook.models.unit_vectors import unit_vectors

Array = NDArray[np.float64]

MAX_GRADIENT = 1e-7
"""A task is done when no part of its gradient is larger; weights are then right to about the same times C."""

MAX_ITERATIONS = 100
MAX_HALVINGS = 40


class Logistic(StackedLearner):
    """Scores are the logits of a multinomial regression with intercept; `c` above 0 is the inverse of the penalty."""

    flags = ("GL", "TT")

    def __init__(self, c: float = RFS_C) -> None:
        if not c > 0:
            raise OptionError(f"c {c} leaves no weight", remedy="c is above 0")
        self.c = c

    def score_stack(self, stack: Stack) -> NDArray[np.float32]:
        """(T, q, ways) float32 logits."""
        weight, intercept = fit_regressions(unit_vectors(stack.support), stack.labels, stack.ways, self.c)
        turned = weight.astype(np.float32).transpose(0, 2, 1)
        return unit_vectors(stack.query) @ turned + intercept.astype(np.float32)[:, None]


def fit_regressions(
    rows: NDArray[np.floating[Any]], labels: NDArray[np.int64], ways: int, c: float
) -> tuple[Array, Array]:
    """Weights (T, ways, D) and intercepts (T, ways) for rows (T, n, D) and labels (T, n) in 0..ways-1.

    Newton's method with conjugate gradients. The objective is scikit-learn's: the sum of cross-entropies plus
    |W|^2 / (2 C), the intercepts free. Two classes get two rows of weights like any other number: here each weight w
    solves w = 1 / (1 + exp(2 w)).

    >>> rows = np.array([[[1.0, 0.0], [0.0, 1.0]]])
    >>> weight, intercept = fit_regressions(rows, np.array([[0, 1]]), ways=2, c=1.0)
    >>> weight.round(4).tolist(), bool(abs(intercept).max() < 1e-8)
    ([[[0.3374, -0.3374], [-0.3374, 0.3374]]], True)
    """
    span = compute_span(rows)
    inputs = np.concatenate([span.coordinates, np.ones((*rows.shape[:2], 1))], axis=2)
    decay = np.full(inputs.shape[2], 1 / c)
    decay[-1] = 0
    problem = _Regressions(inputs, np.eye(ways)[labels], decay)
    weight = np.zeros((len(rows), ways, inputs.shape[2]))
    loss, shares = problem.loss(weight)
    for _ in range(MAX_ITERATIONS):
        gradient = problem.gradient(weight, shares)
        # A task that is done no longer changes: its answer does not depend on the other tasks.
        active = np.abs(gradient).max(axis=(1, 2)) > MAX_GRADIENT
        if not active.any():
            break
        step = problem.newton_step(gradient, shares) * active[:, None, None]
        weight, loss, shares = problem.line_search(weight, loss, shares, gradient, step)
    # A constant added to all intercepts changes nothing; as in scikit-learn they sum to 0.
    intercept = weight[..., -1]
    return span.lift(weight[..., :-1]), intercept - intercept.mean(axis=1, keepdims=True)


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
        return (shares - self.truth).transpose(0, 2, 1) @ self.inputs + self.decay * weight

    def curvature(self, shares: Array, direction: Array) -> Array:
        """The Hessian times a direction (T, ways, r)."""
        moved = self.inputs @ direction.transpose(0, 2, 1)
        moved = shares * (moved - (shares * moved).sum(axis=2, keepdims=True))
        return np.asarray(moved.transpose(0, 2, 1) @ self.inputs + self.decay * direction)

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

    def line_search(
        self, weight: Array, loss: Array, shares: Array, gradient: Array, step: Array
    ) -> tuple[Array, Array, Array]:
        """Weights, losses and shares after the step, halved in a task until its objective falls enough."""
        promised = 1e-4 * _products(gradient, step)
        length = np.ones(len(weight))
        for _ in range(MAX_HALVINGS):
            tried = weight + length[:, None, None] * step
            tried_loss, tried_shares = self.loss(tried)
            # Near the end the gain is below what the objective can show.
            short = tried_loss > loss + length * promised + 1e-12 * (1 + np.abs(loss))
            if not short.any():
                break
            length = np.where(short, 0.5 * length, length)
        return tried, tried_loss, tried_shares


def _products(one: Array, other: Array) -> Array:
    return np.asarray((one * other).sum(axis=(1, 2)))
