"""Three floors that look at neither picture: nothing, everything, and a box in the middle.

>>> picture = np.zeros((4, 8, 3), np.uint8)
>>> models = Empty(), WholeImage(), CenterBox()
>>> [int(model.segment_queries([picture], [[]])[0].sum()) for model in models]
[0, 32, 8]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hardlook.errors import OptionError
from hardlook.models.roles import Image, Mask, Support


class Empty:
    """Finds nothing in any query; it earns a full mark wherever the support shows nothing of the query."""

    def segment_queries(self, queries: Sequence[Image], supports: Sequence[Sequence[Support]]) -> list[Mask]:
        """One mask (H, W) a query, all False."""
        return [np.zeros(query.shape[:2], bool) for query in queries]


class WholeImage:
    """Takes every pixel of every query; its IoU is the target's share of the picture."""

    def segment_queries(self, queries: Sequence[Image], supports: Sequence[Sequence[Support]]) -> list[Mask]:
        """One mask (H, W) a query, all True."""
        return [np.ones(query.shape[:2], bool) for query in queries]


class CenterBox:
    """Takes a box in the middle of every query, whose sides are `share` of the picture's (0 to 1, 0 excluded)."""

    def __init__(self, share: float = 0.5) -> None:
        if not 0 < share <= 1:
            raise OptionError(f"share {share} makes no box", remedy="share is above 0 and at most 1")
        self.share = share

    def segment_queries(self, queries: Sequence[Image], supports: Sequence[Sequence[Support]]) -> list[Mask]:
        """One mask (H, W) a query; borders fall between pixels, and the box has at least one."""
        return [self._box(*query.shape[:2]) for query in queries]

    def _box(self, height: int, width: int) -> Mask:
        mask = np.zeros((height, width), bool)
        mask[self._middle(height), self._middle(width)] = True
        return mask

    def _middle(self, side: int) -> slice:
        start = min(round((1 - self.share) / 2 * side), side - 1)
        return slice(start, max(round((1 + self.share) / 2 * side), start + 1))
