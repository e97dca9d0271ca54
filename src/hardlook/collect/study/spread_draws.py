"""Drawing things so that the values of every measure are spread, and not as most things happen to be.

Most pairs of labels have little in common. Drawn evenly, nearly all of a study would be about such pairs, and a measure
that tells cat from dog would look like one that does not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

STRATA = 10


def spread_draw(values: ArrayLike, count: int, rng: np.random.Generator, strata: int = STRATA) -> NDArray[np.int64]:
    """Draw `count` of n candidates, ascending, with the strata of every measure filled as evenly as can be.

    `values` has shape (measures, n), finite. The distinct values of a measure are cut by their quantiles into `strata`
    classes (fewer where `count` or the distinct values are fewer), so that a rare value is as likely drawn as a common
    one. Candidates are taken one by one: always one whose strata hold least so far, summed over measures, by lot among
    equals. All candidates where `count` is n or more.

    >>> alike = [[0.1] * 97 + [0.5, 0.8, 0.9]]
    >>> spread_draw(alike, 4, np.random.default_rng(0))[-3:].tolist()
    [97, 98, 99]
    """
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2 or not len(table) or not np.isfinite(table).all() or count < 0:
        raise ValueError(f"values: expected finite numbers of shape (measures, n) and a count, got {table.shape}")
    n = table.shape[1]
    if count >= n:
        return np.arange(n)
    most = max(1, min(strata, count))
    classes = [_classes(row, most) for row in table]
    held = np.zeros((len(table), most), np.int64)
    lot, chosen = rng.permutation(n), np.zeros(n, np.bool_)
    for _ in range(count):
        load = sum(
            (counts[own] for counts, own in zip(held, classes, strict=True)), np.where(chosen, n * len(table), 0)
        )
        least = np.flatnonzero(load == load.min())
        taken = least[np.argmin(lot[least])]
        chosen[taken] = True
        for counts, own in zip(held, classes, strict=True):
            counts[own[taken]] += 1
    return np.flatnonzero(chosen)


def _classes(row: NDArray[np.float64], strata: int) -> NDArray[np.int64]:
    distinct, place = np.unique(row, return_inverse=True)
    return np.asarray(place * min(strata, len(distinct)) // len(distinct), np.int64)
