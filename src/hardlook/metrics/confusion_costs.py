"""Which confusions cost the most: pairs of labels, in pixels, hard and soft."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hardlook.metrics.array_input import Values, integer_array
from hardlook.metrics.similarity_matrix import checked_similarity


@dataclass(frozen=True)
class ConfusionCosts:
    """One entry a confused pair, dearest first: `true` called `called`, which is K for "no such label".

    `hard` is the pixels so confused, `soft` the share 1 - S of them that is not forgiven.
    """

    true: NDArray[np.int64]
    called: NDArray[np.int64]
    hard: NDArray[np.int64]
    soft: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.true)


def confusion_costs(
    confusion: Values, similarity: Values, *, by: Literal["soft", "hard"] = "soft", most: int | None = None
) -> ConfusionCosts:
    """The confusions of a (K, K + 1) or (K, K) confusion matrix, dearest first; the `most` dearest of them.

    Pairs that never meet are left out. Equal costs go by the other cost, then by label.

    >>> costs = confusion_costs([[9, 4, 0], [3, 9, 1]], [[1, 0.75], [0.75, 1]])
    >>> list(zip(costs.true.tolist(), costs.called.tolist(), costs.hard.tolist(), costs.soft.tolist()))
    [(0, 1, 4, 1.0), (1, 2, 1, 1.0), (1, 0, 3, 0.75)]
    """
    counts = integer_array(confusion, "confusion").astype(np.int64)
    classes = len(counts)
    if counts.shape not in ((classes, classes), (classes, classes + 1)):
        raise ValueError(f"confusion: expected shape (K, K + 1) or (K, K), got {counts.shape}")
    unlike = np.ones(counts.shape)
    unlike[:, :classes] -= checked_similarity(similarity, classes)
    true, called = np.nonzero(np.where(np.eye(*counts.shape, dtype=bool), 0, counts))
    hard = counts[true, called]
    soft = hard * unlike[true, called]
    first, second = (soft, hard) if by == "soft" else (hard, soft)
    order = np.lexsort((called, true, -second, -first))[:most]
    return ConfusionCosts(true[order], called[order], hard[order], soft[order])
