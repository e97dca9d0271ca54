"""Many comparisons at once: Holm's correction.

With twenty true null hypotheses one in twenty comparisons looks significant at 0.05 by luck. Holm's method
keeps the chance of even one false claim at alpha and is never weaker than Bonferroni's.
S. Holm, "A Simple Sequentially Rejective Multiple Test Procedure", Scandinavian Journal of Statistics 6 (1979).
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardlook.stats.finite import check_probability


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Holm's step-down adjusted p-values, to be compared with alpha as they are.

    `p_values` has any shape and values in [0, 1] or NaN; all of them form one family. The result has the same
    shape. A NaN stays NaN and is not counted: it is a comparison that was not made.

    >>> holm([0.01, 0.04, 0.03, float("nan")])
    array([0.03, 0.06, 0.06,  nan])
    """
    p = np.asarray(p_values, dtype=np.float64)
    outside = int(((p < 0) | (p > 1)).sum())
    if outside:
        raise ValueError(f"p_values: {outside} of {p.size} lie outside [0, 1]")
    adjusted = p.copy()
    made = ~np.isnan(p)
    family = p[made]
    order = np.argsort(family, kind="stable")
    steps = family[order] * np.arange(len(family), 0, -1)
    result = np.empty_like(family)
    result[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    adjusted[made] = result
    return adjusted


def significant_pairs(p_values: ArrayLike, alpha: float = 0.05) -> NDArray[np.bool_]:
    """Which pairs of models differ at `alpha` after Holm's correction over all pairs.

    `p_values` has shape (k, k) and is symmetric; the diagonal is ignored. The result has the same shape, is
    symmetric, and is False on the diagonal and where the p-value is NaN.

    >>> significant_pairs([[1, 0.01, 0.2], [0.01, 1, 0.03], [0.2, 0.03, 1]]).astype(int)
    array([[0, 1, 0],
           [1, 0, 0],
           [0, 0, 0]])
    """
    p = np.asarray(p_values, dtype=np.float64)
    if p.ndim != 2 or p.shape[0] != p.shape[1]:
        raise ValueError(f"p_values: expected shape (k, k), got {p.shape}")
    if not np.array_equal(p, p.T, equal_nan=True):
        raise ValueError("p_values: expected a symmetric matrix, one value for each pair of models")
    check_probability(alpha, "alpha")
    upper = np.triu_indices(len(p), k=1)
    differs = np.zeros(p.shape, dtype=np.bool_)
    differs[upper] = holm(p[upper]) <= alpha
    return differs | differs.T
