"""Where a task's queries come from in each mode, and whether there are enough of them.

For `swapped` every class is asked about in the support context of another class, which must differ from its own.
As many classes as possible exchange contexts one to one; one that cannot takes any context that will do.

>>> allowed = np.array([[[False, True, True], [True, False, False], [False, True, False]]])
>>> swapped_partners(allowed, np.zeros((1, 3, 3)) + [0.9, 0.1, 0.5]).tolist()
[[2, 0, 1]]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from hardlook.tasks.image_pools import ImagePools
from hardlook.tasks.image_table import Numbers
from hardlook.tasks.keyed_draws import NOWHERE


@dataclass(frozen=True, eq=False)
class Supports:
    """Half a task, for T tasks: classes (T, N), their support contexts (T, N), support rows (T, N, K).

    A context of -1 stands for supports of mixed contexts.
    """

    classes: Numbers
    contexts: Numbers
    rows: Numbers


def query_pools(pools: ImagePools, mode: str, drawn: Supports) -> Numbers:
    """(T, N) the pools that queries are drawn from; the supports' contents in them are still to be left out.

    Not for `swapped`, whose pools depend on a draw (`swapped_partners`).
    """
    if mode == "blind":
        return pools.whole(drawn.classes)
    if mode == "ood":
        return pools.outside(drawn.classes, drawn.contexts)
    return pools.cell(drawn.classes, drawn.contexts)


def enough_queries(pools: ImagePools, mode: str, drawn: Supports, queries: int) -> NDArray[np.bool_]:
    """(T,) whether every class of the task has its queries in this mode."""
    if mode == "swapped":
        return np.asarray(np.all(swaps_allowed(pools, drawn, queries).any(2), axis=1))
    left = _without_twins(pools, query_pools(pools, mode, drawn), drawn)
    if mode != "ood":
        left -= (~pools.twinned[drawn.rows]).sum(2)
    return np.asarray(np.all(left >= queries, axis=1))


def no_content_twice(pools: ImagePools, drawn: Supports) -> NDArray[np.bool_]:
    """(T,) whether all supports of the task differ in content, also across classes."""
    content = np.sort(pools.content[drawn.rows].reshape(len(drawn.rows), -1), axis=1)
    return np.asarray((np.diff(content, axis=1) != 0).all(1))


def swaps_allowed(pools: ImagePools, drawn: Supports, queries: int) -> NDArray[np.bool_]:
    """(T, N, N) whether class i can be asked about in the support context of class j, which is not its own."""
    places = pools.cell(drawn.classes[:, :, None], drawn.contexts[:, None, :])
    left = _without_twins(pools, places, drawn)
    return np.asarray((drawn.contexts[:, :, None] != drawn.contexts[:, None, :]) & (left >= queries))


def swapped_partners(allowed: NDArray[np.bool_], randoms: NDArray[np.float64]) -> Numbers:
    """(T, N) the class whose support context each class is asked about in.

    `allowed` (T, N, N) from `swaps_allowed`, at least one a class; `randoms` (T, N, N) in [0, 1) choose among the
    possible exchanges. The cheapest assignment with random costs is one with the most one-to-one exchanges.
    """
    refused = float(allowed.shape[1] + 1)
    costs = np.where(allowed, randoms, refused)
    assigned = [linear_sum_assignment(cost)[1] for cost in costs]
    partners = np.array(assigned, np.int64).reshape(allowed.shape[:2])
    exchanged = np.take_along_axis(allowed, partners[..., None], axis=2)[..., 0]
    return np.where(exchanged, partners, costs.argmin(2))


def _without_twins(pools: ImagePools, places: Numbers, drawn: Supports) -> Numbers:
    """How many contents pools (T, ...) hold beside those of the task's supports that lie in several cells."""
    twins = pools.twins(drawn.rows)
    sizes = pools.sizes[places]
    if twins.shape[1]:
        beside = twins.reshape(len(twins), *[1] * (places.ndim - 1), -1)
        sizes = sizes - (pools.positions(places[..., None], beside) != NOWHERE).sum(-1)
    return sizes
