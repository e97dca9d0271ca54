"""Rankings that do not claim more than the tests allow.

Models that cannot be told apart share a tied set. The sets are written as letters beside each model, as in a
compact letter display: two models that share a letter belong to a run of neighbours with no significant
difference in it. H.-P. Piepho, "An Algorithm for a Letter-Based Representation of All-Pairwise Comparisons",
Journal of Computational and Graphical Statistics 13 (2004).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_lowercase

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardlook.stats.finite import finite_vector


@dataclass(frozen=True)
class Standing:
    """The place of one model: its rank, starting at 1, and the names of the tied sets it belongs to."""

    model: str
    score: float
    rank: int
    sets: tuple[str, ...]


def rank_models(
    models: Sequence[str], scores: ArrayLike, differs: ArrayLike, *, higher_is_better: bool = True
) -> tuple[Standing, ...]:
    """Rank models best first, with tied sets; a rank is one plus the number of better models it is not tied to.

    `scores` has shape (k,), `differs` shape (k, k): symmetric, True where two models differ significantly. A
    tied set is a longest run of neighbours in the ranking without a significant pair in it, so a pair that is
    alike but has a significant pair between them shares no set. Equal scores are ordered by name.

    >>> differs = [[0, 0, 1], [0, 0, 0], [1, 0, 0]]
    >>> for place in rank_models(["ant", "bee", "cat"], [0.7, 0.6, 0.5], differs):
    ...     print(place.rank, place.model, "".join(place.sets))
    1 ant a
    1 bee ab
    2 cat b
    """
    values = finite_vector(scores, "scores")
    apart = np.asarray(differs, dtype=np.bool_)
    k = len(models)
    if len(set(models)) != k:
        raise ValueError(f"models: {k - len(set(models))} of {k} names appear twice; names must differ")
    if len(values) != k or apart.shape != (k, k):
        raise ValueError(
            f"expected {k} scores and differs of shape ({k}, {k}) for {k} models, got {len(values)} and {apart.shape}"
        )
    if not np.array_equal(apart, apart.T):
        raise ValueError("differs: expected a symmetric matrix, one value for each pair of models")
    sign = -1.0 if higher_is_better else 1.0
    order = sorted(range(k), key=lambda i: (sign * values[i], models[i]))
    runs = _tied_runs(apart[np.ix_(order, order)])
    return tuple(
        Standing(
            model=models[i],
            score=float(values[i]),
            rank=1 + min(start for start, stop in runs if start <= place < stop),
            sets=tuple(set_name(s) for s, (start, stop) in enumerate(runs) if start <= place < stop),
        )
        for place, i in enumerate(order)
    )


def _tied_runs(apart: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Longest runs [start, stop) of places without a significant pair; each place lies in at least one."""
    runs: list[tuple[int, int]] = []
    for start in range(len(apart)):
        stop = start + 1
        while stop < len(apart) and not apart[start:stop, stop].any():
            stop += 1
        if not runs or stop > runs[-1][1]:
            runs.append((start, stop))
    return runs


def set_name(index: int) -> str:
    """The name of a tied set: a to z, then aa, ab and so on.

    >>> set_name(0), set_name(25), set_name(26), set_name(27)
    ('a', 'z', 'aa', 'ab')
    """
    name = ""
    index += 1
    while index:
        index, letter = divmod(index - 1, len(ascii_lowercase))
        name = ascii_lowercase[letter] + name
    return name


def competition_ranks(scores: ArrayLike, *, tolerance: float = 0.0, higher_is_better: bool = True) -> NDArray[np.int64]:
    """Competition ranks (1, 2, 2, 4): equal scores share the best rank and the next ranks stay empty.

    `scores` has shape (k,), finite. Scores within `tolerance` of the best score of their group are equal;
    comparing with the best, not with the neighbour, keeps long chains of small steps apart.

    >>> competition_ranks([0.9, 0.5, 0.7, 0.7])
    array([1, 4, 2, 2])
    >>> competition_ranks([1.0, 0.95, 0.9], tolerance=0.06)
    array([1, 1, 3])
    """
    if tolerance < 0:
        raise ValueError(f"tolerance: expected at least 0, got {tolerance}")
    values = finite_vector(scores, "scores")
    cost = -values if higher_is_better else values
    order = np.argsort(cost, kind="stable")
    ranks = np.empty(len(cost), dtype=np.int64)
    best, rank = -np.inf, 0
    for place, i in enumerate(order):
        if rank == 0 or cost[i] - best > tolerance:
            best, rank = cost[i], place + 1
        ranks[i] = rank
    return ranks
