"""TIM: class vectors tuned so that queries are classified clearly, and into all classes (transductive).

Boudiaf, Ziko, Rony, Dolz, Piantanida and Ben Ayed, "Transductive information maximization for few-shot learning",
NeurIPS 2020 (TIM-GD). On vectors x of length 1 the probability of class k is the softmax of
-temperature / 2 |x - w_k|^2. The class vectors w start as class means; Adam minimises, with all supports and queries in
every step, supervision x cross-entropy of the supports - (entropy of the queries' mean prediction - conditional x mean
entropy of their predictions).

>>> from hardlook.models.roles import Episode
>>> plane = np.array([[1, 0], [0, 1], [4, 3], [3, 4]], np.float32)
>>> [scores] = Tim(steps=20).classify([Episode(plane[:2], np.array([0, 1]), plane[2:], ways=2)])
>>> scores.argmax(axis=1).tolist()
[0, 1]
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import OptionError
from hardlook.models.few_shot.published_settings import (
    TIM_CONDITIONAL,
    TIM_RATE,
    TIM_STEPS,
    TIM_SUPERVISION,
    TIM_TEMPERATURE,
)
from hardlook.models.few_shot.stacking import Stack, StackedLearner, squared_lengths
from hardlook.models.unit_vectors import unit_vectors

Array = NDArray[np.float32]

TASKS_AT_ONCE = 4
"""Tasks that are tuned together: few, since their features are read again in each of a thousand steps."""

DECAY, SQUARE_DECAY, TINY = 0.9, 0.999, 1e-8
"""Adam's usual settings."""


class Tim(StackedLearner):
    """Scores are the logits of the tuned class vectors; `steps` of Adam with step size `rate`.

    `metric`: logits are -temperature / 2 times squared distances ("euclidean"), or temperature times cosines.
    """

    transductive = True
    flags = ("GL", "TT")

    def __init__(
        self,
        steps: int = TIM_STEPS,
        rate: float = TIM_RATE,
        temperature: float = TIM_TEMPERATURE,
        supervision: float = TIM_SUPERVISION,
        conditional: float = TIM_CONDITIONAL,
        metric: Literal["euclidean", "cosine"] = "euclidean",
    ) -> None:
        if steps < 0 or not rate > 0 or not temperature > 0 or supervision < 0 or conditional < 0:
            what = f"steps {steps}, rate {rate}, temperature {temperature}, supervision {supervision} and conditional"
            remedy = "steps and both weights are at least 0, rate and temperature above 0"
            raise OptionError(f"{what} {conditional} tune no class vector", remedy=remedy)
        self.steps, self.rate, self.temperature = steps, rate, temperature
        self.supervision, self.conditional, self.metric = supervision, conditional, metric

    def score_stack(self, stack: Stack) -> NDArray[np.float32]:
        """(T, q, ways) float32 logits; a query's scores depend on the other queries."""
        support, query = unit_vectors(stack.support), unit_vectors(stack.query)
        parts = [slice(start, start + TASKS_AT_ONCE) for start in range(0, len(support), TASKS_AT_ONCE)]
        return np.concatenate([self._score(support[part], query[part], stack) for part in parts])

    def _score(self, support: Array, query: Array, stack: Stack) -> Array:
        vectors = stack.averaging @ support
        rows = np.concatenate([support, query], axis=1)
        shown = support.shape[1]
        mean, square = np.zeros_like(vectors), np.zeros_like(vectors)
        for step in range(1, self.steps + 1):
            logits = self._logits(rows, vectors)
            slopes = np.concatenate(
                [
                    np.float32(self.supervision / shown) * (_log_softmax(logits[:, :shown])[1] - stack.membership),
                    self._query_slopes(logits[:, shown:]),
                ],
                axis=1,
            )
            gradient = self._gradient(slopes, rows, logits, vectors)
            mean = np.float32(DECAY) * mean + np.float32(1 - DECAY) * gradient
            square = np.float32(SQUARE_DECAY) * square + np.float32(1 - SQUARE_DECAY) * gradient * gradient
            length = np.sqrt(square) / np.float32(np.sqrt(1 - SQUARE_DECAY**step)) + np.float32(TINY)
            vectors = vectors - np.float32(self.rate / (1 - DECAY**step)) * mean / length
        return self._logits(query, vectors)

    def _logits(self, rows: Array, vectors: Array) -> Array:
        """(T, m, ways) of rows (T, m, D) and class vectors (T, ways, D)."""
        if self.metric == "cosine":
            return np.float32(self.temperature) * (rows @ unit_vectors(vectors).transpose(0, 2, 1))
        halves = (squared_lengths(rows)[:, :, None] + squared_lengths(vectors)[:, None]) * np.float32(0.5)
        return np.asarray(np.float32(self.temperature) * (rows @ vectors.transpose(0, 2, 1) - halves))

    def _query_slopes(self, logits: Array) -> Array:
        """(T, q, ways) derivatives, by the queries' logits, of conditional x mean entropy - entropy of the mean."""
        logs, shares = _log_softmax(logits)
        entropy = -(shares * logs).sum(axis=2, keepdims=True)
        mean = np.log(np.maximum(shares.mean(axis=1, keepdims=True), np.finfo(np.float32).tiny))
        marginal = shares * ((shares * mean).sum(axis=2, keepdims=True) - mean)
        return np.asarray((-np.float32(self.conditional) * shares * (logs + entropy) - marginal) / logits.shape[1])

    def _gradient(self, slopes: Array, rows: Array, logits: Array, vectors: Array) -> Array:
        """(T, ways, D) derivatives by the class vectors, from those by the logits."""
        factor, pulled = np.float32(self.temperature), slopes.transpose(0, 2, 1) @ rows
        if self.metric == "euclidean":
            return np.asarray(factor * (pulled - slopes.sum(axis=1)[:, :, None] * vectors))
        # A cosine changes only across its vector: what the gradient has along it falls away.
        along = (slopes * logits).sum(axis=1)[:, :, None] / factor
        lengths = np.sqrt(squared_lengths(vectors))[:, :, None]
        return np.asarray(factor * (pulled - along * unit_vectors(vectors)) / lengths)


def _log_softmax(logits: Array) -> tuple[Array, Array]:
    """Logarithms of probabilities along the last axis, and the probabilities."""
    moved = logits - logits.max(axis=2, keepdims=True)
    logs = moved - np.log(np.exp(moved).sum(axis=2, keepdims=True))
    return logs, np.exp(logs)
