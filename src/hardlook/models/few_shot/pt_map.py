"""PT-MAP: power-transformed features, and queries assigned to classes by optimal transport (transductive).

Hu, Gripon and Pateux, "Leveraging the feature distribution in transfer-based few-shot learning", ICANN 2021. Features
x >= 0 become (x + 1e-6)^power, of length 1. Then `steps` times: the assignments of the queries are the transport plan
(Sinkhorn, entropy 1 / penalty) for their squared distances to the class vectors, in which every query weighs 1 and
every class gets the same number of queries; class vectors move by `rate` towards the means of supports and assigned
queries. Tasks whose classes have different numbers of queries do not fit that assumption.

>>> from hardlook.models.roles import Episode
>>> plane = np.array([[1, 0], [0, 1], [4, 3], [3, 4]], np.float32)
>>> [scores] = PtMap().classify([Episode(plane[:2], np.array([0, 1]), plane[2:], ways=2)])
>>> scores.argmax(axis=1).tolist()
[0, 1]
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import OptionError
from hardlook.models.few_shot.published_settings import PT_MAP_PENALTY, PT_MAP_POWER, PT_MAP_RATE, PT_MAP_STEPS
from hardlook.models.few_shot.stacking import Stack, StackedLearner, squared_distances
from hardlook.models.unit_vectors import unit_vectors

OFFSET, STANDSTILL, MAX_ROUNDS = 1e-6, 1e-6, 1000
"""What is added to features, and when Sinkhorn's rounds end: no query's sum changes by more, or after so many."""

SMALLEST = 1e-100
"""Entries of exp(-cost) are at least this: a class that is far from all queries still gets its share."""


class PtMap(StackedLearner):
    """Scores are the queries' assignments; features below 0 count as 0.

    `features`: after the power, "unit" gives vectors length 1 (the paper), "centred" then also takes the mean support
    off the supports and the mean query off the queries (the authors' code), "power" does neither (easyfsl).
    """

    transductive = True
    flags = ("GL", "TT")

    def __init__(
        self,
        power: float = PT_MAP_POWER,
        penalty: float = PT_MAP_PENALTY,
        rate: float = PT_MAP_RATE,
        steps: int = PT_MAP_STEPS,
        features: Literal["unit", "centred", "power"] = "unit",
    ) -> None:
        if not power > 0 or not penalty > 0 or not 0 < rate <= 1 or steps < 0:
            what = f"power {power}, penalty {penalty}, rate {rate} and steps {steps} make no transport"
            raise OptionError(what, remedy="power and penalty are above 0, rate above 0 up to 1, steps at least 0")
        self.power, self.penalty, self.rate, self.steps, self.features = power, penalty, rate, steps, features

    def score_stack(self, stack: Stack) -> NDArray[np.float32]:
        """(T, q, ways) float32, at least 0; a query's scores depend on the other queries."""
        support, query = self._transform(stack.support), self._transform(stack.query)
        vectors = stack.averaging @ support
        sums, shots = stack.membership.T @ support, stack.shots.astype(np.float32)[:, None]
        for _ in range(self.steps):
            plan = self._assign(query, vectors).astype(np.float32).transpose(0, 2, 1)
            means = (sums + plan @ query) / (shots + plan.sum(axis=2, keepdims=True))
            vectors = vectors + np.float32(self.rate) * (means - vectors)
        return self._assign(query, vectors).astype(np.float32)

    def _transform(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        raised = np.power(np.maximum(rows, 0) + np.float32(OFFSET), np.float32(self.power))
        if self.features == "power":
            return np.asarray(raised)
        unit = unit_vectors(raised)
        return unit if self.features == "unit" else np.asarray(unit - unit.mean(axis=1, keepdims=True))

    def _assign(self, query: NDArray[np.float32], vectors: NDArray[np.float32]) -> NDArray[np.float64]:
        cost = squared_distances(query, vectors).astype(np.float64)
        return transport(self.penalty * cost, query.shape[1] / vectors.shape[1])


def transport(cost: NDArray[np.float64], per_class: float) -> NDArray[np.float64]:
    """(T, q, ways) plans exp(-cost), scaled by rows and columns until rows sum to 1 and columns to `per_class`.

    >>> transport(np.array([[[0.0, 5.0], [0.0, 1.0]]]), per_class=1.0).round(2).tolist()
    [[[0.88, 0.12], [0.12, 0.88]]]
    """
    # A factor on a whole row changes no plan; without it a distant query would have nothing but zeros.
    kernel = np.maximum(np.exp(cost.min(axis=2, keepdims=True) - cost), SMALLEST)
    plan: NDArray[np.float64] = np.empty_like(kernel)
    active = np.arange(len(plan))  # a task that stands still no longer changes, whatever the others do
    turned, sums = kernel.transpose(0, 2, 1), kernel.sum(axis=2, keepdims=True)
    before = sums
    for step in range(MAX_ROUNDS):
        rows = 1 / sums
        columns = per_class / (turned @ rows)
        sums = kernel @ columns
        now = rows * sums
        still = np.abs(now - before).max(axis=(1, 2)) < STANDSTILL
        if still.any() or step == MAX_ROUNDS - 1:
            plan[active] = kernel * rows * columns.transpose(0, 2, 1)
            moving = np.flatnonzero(~still)
            active, kernel, sums, now = (each[moving] for each in (active, kernel, sums, now))
            turned = kernel.transpose(0, 2, 1)
        before = now
        if not len(active):
            break
    return plan
