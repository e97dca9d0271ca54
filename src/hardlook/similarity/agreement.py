"""Whether two similarity matrices over the same labels agree: on the order of all pairs, and on neighbours.

>>> import numpy as np
>>> a = np.array([[1.0, 0.5, 0.2], [0.5, 1.0, 0.1], [0.2, 0.1, 1.0]])
>>> round(rank_agreement(a, a**2), 6), neighbour_overlap(a, a**2, count=1)
(1.0, 1.0)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hardlook.similarity.summary import off_diagonal


def rank_agreement(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Spearman's correlation of two matrices (K, K) over the pairs of different labels, in [-1, 1].

    Equal similarities share their mean rank. NaN where a matrix has but one value off the diagonal.
    """
    return float(agreement_table([first, second])[0, 1])


def agreement_table(matrices: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """(m, m) rank agreement between each two of m matrices (K, K) over the same labels.

    >>> a = np.array([[1.0, 0.5, 0.2], [0.5, 1.0, 0.1], [0.2, 0.1, 1.0]])
    >>> agreement_table([a, a, 1 - a]).round(6).tolist()
    [[1.0, 1.0, -1.0], [1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]]
    """
    from scipy.stats import rankdata

    shapes = {matrix.shape for matrix in matrices}
    if len(shapes) != 1:
        raise ValueError(f"agreement: expected matrices of one shape, got {sorted(shapes)}")
    ranks = np.stack([rankdata(off_diagonal(matrix)) for matrix in matrices])
    centred = ranks - ranks.mean(axis=1, keepdims=True) if ranks.shape[1] else ranks
    products = centred @ centred.T
    spread = np.sqrt(np.diag(products))
    with np.errstate(invalid="ignore"):
        return np.asarray(np.clip(products / np.outer(spread, spread), -1.0, 1.0))


def neighbour_overlap(first: NDArray[np.float64], second: NDArray[np.float64], *, count: int = 5) -> float:
    """The share of each label's `count` nearest labels that two matrices have in common, averaged over labels; [0, 1].

    Labels that are equally near at the border share the places left: three labels for the last place hold a third
    each. So the order of labels has no effect, and a matrix agrees with itself completely.
    """
    if first.shape != second.shape or not 0 < count < len(first):
        raise ValueError(
            f"neighbours: expected two matrices of one shape and a count below their size, "
            f"got {first.shape}, {second.shape} and {count}"
        )
    both = np.minimum(_membership(first, count), _membership(second, count))
    return float(both.sum(axis=1).mean() / count)


def _membership(matrix: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    others = matrix.copy()
    np.fill_diagonal(others, -np.inf)
    border = -np.partition(-others, count - 1, axis=1)[:, [count - 1]]
    above, tied = others > border, others == border
    share = (count - above.sum(axis=1)) / tied.sum(axis=1)
    return np.where(above, 1.0, tied * share[:, None])
