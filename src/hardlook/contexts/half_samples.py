"""Intervals for scores that repeated rows would ruin, from random halves of the data.

Information of labels grows when images repeat, as they do in a bootstrap. The delete-half jackknife (J. Shao and
C. F. J. Wu, 1989) leaves half of the images out instead; the spread of the halves is the standard error of the whole.

>>> labels = np.arange(400) % 2
>>> share = half_sample_interval(400, lambda kept: float(labels[kept].mean()), rng=np.random.default_rng(0))
>>> share.value, 0.4 < share.interval.low < 0.5 < share.interval.high < 0.6
(0.5, True)
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hardlook.stats import Estimate, Interval

HALVES = 200
LEVEL = 0.95


def half_sample_interval(
    count: int,
    statistic: Callable[[NDArray[np.int64]], float],
    *,
    rng: np.random.Generator,
    halves: int = HALVES,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> Estimate:
    """The statistic of all `count` images with a normal 95 % interval cut at `bounds`.

    `statistic` maps row numbers (m,), ascending, to a number, NaN where undefined. Fewer than 4 images, or fewer than
    2 halves where it is defined, give NaN bounds.
    """
    from scipy.special import ndtri

    value = statistic(np.arange(count))
    kept = count // 2
    drawn = [statistic(np.sort(rng.permutation(count)[:kept])) for _ in range(halves if count >= 4 else 0)]
    defined = [one for one in drawn if math.isfinite(one)]
    error = float(np.std(defined, ddof=1)) * math.sqrt(kept / (count - kept)) if len(defined) > 1 else math.nan
    reach = float(ndtri((1 + LEVEL) / 2)) * error
    low, high = (max(bounds[0], value - reach), min(bounds[1], value + reach)) if error == error else (error, error)
    interval = Interval(low, high, LEVEL, "delete-half jackknife", count, "image")
    return Estimate(value, interval, error, len(drawn), len(drawn) - len(defined))
