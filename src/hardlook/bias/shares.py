"""The share of images that have something, with Wilson's interval.

A bootstrap of five images that all lack it would say that the share is exactly 0. Wilson's interval (E. B. Wilson,
"Probable inference, the law of succession, and statistical inference", JASA 1927) does not.

>>> share_of(0, 5).interval.high > 0.4
True
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hardlook.stats import Estimate, Interval, bootstrap_score, ratio

LEVEL = 0.95


def share_of(having: int, images: int) -> Estimate:
    """`having` of `images`, in [0, 1], with an interval of level .95; NaN when there is no image.

    >>> share = share_of(5, 10)
    >>> share.value, round(share.interval.low, 4), round(share.interval.high, 4)
    (0.5, 0.2366, 0.7634)
    """
    from scipy.special import ndtri

    if not 0 <= having <= images:
        raise ValueError(f"expected from 0 to {images} images that have it, got {having}")
    if not images:
        return Estimate(math.nan, Interval(math.nan, math.nan, LEVEL, "wilson", 0, "image"), math.nan, 0, 0)
    share, z = having / images, float(ndtri((1 + LEVEL) / 2))
    middle = (share + z * z / (2 * images)) / (1 + z * z / images)
    reach = z * math.sqrt(share * (1 - share) / images + z * z / (4 * images * images)) / (1 + z * z / images)
    # At none and at all of them the bound is the share itself, which rounding would miss.
    low = 0.0 if having == 0 else middle - reach
    high = 1.0 if having == images else middle + reach
    interval = Interval(low, high, LEVEL, "wilson", images, "image")
    return Estimate(share, interval, math.sqrt(share * (1 - share) / images), 0, 0)


def share_of_masks(
    masks: Sequence[int], having: Sequence[bool], *, rng: np.random.Generator, resamples: int = 2000
) -> Estimate:
    """The share of masks that lie in an image that has it; masks of one image are resampled together.

    `masks` counts the masks of each image, `having` says whether the image has it.

    >>> share_of_masks([1, 2, 1], [False, True, False], rng=np.random.default_rng(0), resamples=50).value
    0.5
    """
    counts = np.asarray(masks, np.float64)
    sums = np.stack([counts * np.asarray(having, bool), counts], axis=1)
    return bootstrap_score(sums, ratio, rng=rng, resamples=resamples, level=LEVEL, resampled="image")
