"""Bootstrap over images of scores that are read from a table of matches.

An AP is no function of sums, but a resample only changes how often each image counts.

>>> draws = {"rng": np.random.default_rng(0), "resamples": 100, "resampled": "image"}
>>> found = bootstrap_weights(3, lambda weights: {"share": float(weights[0] / weights.sum())}, **draws)
>>> round(found["share"].value, 3), found["share"].interval.n
(0.333, 3)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar, Unpack

import numpy as np
from numpy.typing import NDArray

from hardlook.stats.estimates import Resampling, find_plan, summarise
from hardlook.stats.intervals import Estimate
from hardlook.stats.resampling import multiplicities

Key = TypeVar("Key", bound=Hashable)


def bootstrap_weights(
    images: int, statistic: Callable[[NDArray[np.int64]], Mapping[Key, float]], **options: Unpack[Resampling]
) -> dict[Key, Estimate]:
    """An estimate for each score that `statistic` gives, all from the same resamples.

    `statistic` maps how often each image counts, (images,), to named scores, the same names every time; NaN where
    undefined. `options` are the fields of `Resampling`.
    """
    plan = find_plan(images, **options)
    whole = statistic(np.ones(images, np.int64))
    replicates = [
        list(statistic(row.astype(np.int64)[plan.clusters.codes]).values())
        for block in multiplicities(plan.clusters, plan.resamples, plan.rng)
        for row in block
    ]
    drawn = np.array(replicates, np.float64).reshape(-1, len(whole))
    return dict(zip(whole, summarise(plan, np.array(list(whole.values())), drawn, None), strict=True))
