"""Which cells (concept, context) can serve as support of a mode, and in words why a concept has none.

>>> from hardlook.tasks.image_pools import image_pools
>>> from hardlook.tasks.image_table import image_table
>>> pools = image_pools(image_table(["cat"] * 5, ["grass", "grass", "grass", "snow", "snow"], list("abcde")))
>>> serving_cells(pools, "iid", ways=1, shots=1, queries=2, blind_supports="ours").tolist()
[[True, False]]
>>> serving_cells(pools, "ood", ways=1, shots=1, queries=2, blind_supports="ours").tolist()
[[True, True]]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hardlook.tasks.image_pools import ImagePools

Cells = NDArray[np.bool_]


def serving_cells(pools: ImagePools, mode: str, *, ways: int, shots: int, queries: int, blind_supports: str) -> Cells:
    """(concepts, contexts) where the supports of a mode may come from, as if every class took part."""
    held = pools.cell_sizes()
    if mode == "iid":
        return held >= shots + queries
    if mode == "ood":
        return (held >= shots) & (pools.outside_sizes() >= queries)
    if mode == "blind":
        enough = pools.whole_sizes() >= shots + queries
        return (held >= (shots if blind_supports == "ours" else 1)) & enough[:, None]
    if mode == "swapped":
        return swappable(held >= shots, held >= queries)
    return common_contexts(held >= shots + queries, ways)


def swappable(support: Cells, queryable: Cells) -> Cells:
    """Support cells whose concept can be asked about in a context that another concept's support may have.

    `support` and `queryable` (concepts, contexts) mark where supports and queries may come from.

    >>> cells = np.array([[True, False], [True, True]])
    >>> swappable(cells, cells).tolist()
    [[False, False], [False, True]]
    """
    offered_by_others = support.sum(0) - support > 0
    askable = queryable & offered_by_others
    elsewhere = askable.sum(1, keepdims=True) - askable > 0
    return np.asarray(support & elsewhere)


def common_contexts(cells: Cells, ways: int) -> Cells:
    """Those of the cells whose context has at least `ways` of them."""
    return np.asarray(cells & (cells.sum(0) >= ways))


def why_not(
    pools: ImagePools, mode: str, concept: int, *, ways: int, shots: int, queries: int, blind_supports: str
) -> str:
    """Why a concept without serving cells has none: counts in words."""
    held = pools.cell_sizes()[concept]
    images, fullest = int(pools.whole_sizes()[concept]), int(held.max(initial=0))
    none_holds = f"no context holds {{}} images (the fullest holds {fullest})"
    if mode == "blind" and images < shots + queries:
        return f"{images} images, {shots + queries} are needed"
    if mode == "iid":
        return none_holds.format(shots + queries)
    if mode == "shared":
        return f"no context in which {ways} classes have {shots + queries} images each"
    if mode in ("ood", "swapped") and (held > 0).sum() == 1:
        return "one context only"
    if fullest < shots:
        return none_holds.format(shots)
    if mode == "ood":
        outside = int(pools.outside_sizes()[concept][held >= shots].max())
        return f"{outside} images outside its support context at most, {queries} are needed"
    return f"no context where another class has {shots} images holds {queries} of its own"
