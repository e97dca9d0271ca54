"""The difference between two runs on the same units.

Two models score the same images, so their scores rise and fall together. Drawing the same resample for both
keeps that link, and the interval of the difference is narrower than two separate intervals suggest.
"""

from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardlook.stats.bootstrap import Statistic, apply_statistic, bootstrap_scores
from hardlook.stats.estimates import Resampling
from hardlook.stats.finite import finite_rows
from hardlook.stats.intervals import Estimate


def paired_bootstrap(
    sums_a: ArrayLike, sums_b: ArrayLike, statistic: Statistic, **options: Unpack[Resampling]
) -> Estimate:
    """Bootstrap the difference, score of A minus score of B, with the same resamples for both.

    `sums_a` and `sums_b` have equal shape (n_units, n_columns), row i of both being the same unit. `statistic`
    maps totals (m, n_columns) to scores (m,). `options` are the fields of `Resampling`. For the difference of
    two means, `bootstrap_mean(a - b)` does the same.

    >>> from hardlook.stats.bootstrap import ratio
    >>> a, b = [[3, 4], [4, 4], [2, 4]], [[2, 4], [3, 4], [1, 4]]
    >>> gain = paired_bootstrap(a, b, ratio, rng=np.random.default_rng(0), resampled="image")
    >>> gain.value, round(gain.interval.low, 6), round(gain.interval.high, 6)
    (0.25, 0.25, 0.25)
    """
    estimates = paired_bootstrap_scores(sums_a, sums_b, statistic, **options)
    if len(estimates) != 1:
        raise ValueError(f"statistic: expected one score, got {len(estimates)}; use paired_bootstrap_scores")
    return estimates[0]


def paired_bootstrap_scores(
    sums_a: ArrayLike, sums_b: ArrayLike, statistic: Statistic, **options: Unpack[Resampling]
) -> tuple[Estimate, ...]:
    """Bootstrap the differences of several scores, such as one IoU per class, from the same resamples.

    As `paired_bootstrap`, with a `statistic` that maps totals (m, n_columns) to (m, n_scores).

    >>> a, b = [[3, 1], [4, 1]], [[2, 1], [3, 1]]
    >>> gains = paired_bootstrap_scores(a, b, lambda totals: totals, rng=np.random.default_rng(0))
    >>> [gain.value for gain in gains]
    [2.0, 0.0]
    """
    rows_a, rows_b = paired_rows(sums_a, sums_b)
    columns = rows_a.shape[1]

    def difference(totals: NDArray[np.float64]) -> NDArray[np.float64]:
        return apply_statistic(statistic, totals[:, :columns]) - apply_statistic(statistic, totals[:, columns:])

    return bootstrap_scores(np.concatenate([rows_a, rows_b], axis=1), difference, **options)


def paired_rows(sums_a: ArrayLike, sums_b: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Both sums as float64 matrices, after a check that they can belong to the same units.

    >>> paired_rows([[1, 2]], [[1, 2], [3, 4]])
    Traceback (most recent call last):
    ...
    ValueError: sums of A have shape (1, 2) and sums of B (2, 2); both need one row for each shared unit
    """
    rows_a, rows_b = finite_rows(sums_a, "sums of A"), finite_rows(sums_b, "sums of B")
    if rows_a.shape != rows_b.shape:
        raise ValueError(
            f"sums of A have shape {rows_a.shape} and sums of B {rows_b.shape}; both need one row for each shared unit"
        )
    return rows_a, rows_b
