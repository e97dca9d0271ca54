"""SGTSS, saliency-guided training set selection: keep the images whose salient region is of training classes.

For image i with salient pixels S, K = |training classes' pixels AND S| / |S|. Images with K below the median of all
are dropped. What draws the eye and is not labelled teaches a network that such things are background, and a later
test class may be among them.

The rules at the edges:
- an image without any training class is no training image: neither kept nor dropped, and not in the median;
- an image without salient pixels has no K: it is kept, since nothing salient stands unlabelled in it, and it is not in
  the median;
- K equal to the median is kept;
- pixels that the truth leaves open (VOC's 255) count as salient where they are, and never as a training class.

>>> rows = [Coverage("a", 10, 9), Coverage("b", 10, 2), Coverage("c", 10, 5), Coverage("d", 0, 0)]
>>> chosen = select(rows)
>>> chosen.median, chosen.kept, chosen.dropped
(0.5, ('a', 'c', 'd'), ('b',))
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Coverage:
    """One training image: its salient pixels, and how many of them are of a training class; `share` is K."""

    image: str
    salient: int
    covered: int
    classes: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        """K in [0, 1]; NaN without salient pixels."""
        return self.covered / self.salient if self.salient else math.nan


@dataclass(frozen=True)
class Selection:
    """Images kept and dropped, in the order they came, with the median of K and the images that have no K."""

    median: float
    kept: tuple[str, ...]
    dropped: tuple[str, ...]
    without_salience: tuple[str, ...]


def coverage_counts(training: NDArray[np.bool_], salient: NDArray[np.bool_]) -> tuple[int, int]:
    """Salient pixels, and salient pixels of training classes, of two (H, W) masks.

    >>> coverage_counts(np.array([[True, False]]), np.array([[True, True]]))
    (2, 1)
    """
    if training.shape != salient.shape:
        raise ValueError(f"expected masks of one shape, got training {training.shape} and salient {salient.shape}")
    return int(np.count_nonzero(salient)), int(np.count_nonzero(training & salient))


def select(rows: Sequence[Coverage]) -> Selection:
    """Drop the images whose K lies below the median; the median of an even count is the mean of the middle two.

    >>> select([Coverage("a", 4, 4), Coverage("b", 4, 1)]).kept
    ('a',)
    """
    shares = [row.share for row in rows if row.salient]
    median = float(np.median(shares)) if shares else math.nan
    dropped = {row.image for row in rows if row.salient and row.share < median}
    return Selection(
        median,
        tuple(row.image for row in rows if row.image not in dropped),
        tuple(row.image for row in rows if row.image in dropped),
        tuple(row.image for row in rows if not row.salient),
    )


def leave_out(rows: Sequence[Coverage], test: Sequence[str]) -> tuple[str, ...]:
    """The images that hold no test class.

    An oracle: a one-shot setting that is played fairly does not know the test classes at training time.

    >>> leave_out([Coverage("a", 1, 1, ("cat",)), Coverage("b", 1, 1, ("cat", "car"))], ["car"])
    ('a',)
    """
    held = set(test)
    return tuple(row.image for row in rows if not held & set(row.classes))
