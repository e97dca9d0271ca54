"""Nearest-neighbour matching: each query cell goes with the support cell most like it, inside the mask or outside.

>>> from hardlook.world.planted import PlantedWorld
>>> scene = PlantedWorld(seed=1, count=1, salient=True)[0]
>>> shown = Support(scene.image, scene.class_mask(scene.scene.subject.concept))
>>> [found] = Nearest(encoder="planted-encoder").segment_queries([scene.image], [[shown]])
>>> bool(found[shown.mask].mean() > 0.9), bool(found[~shown.mask].mean() < 0.1)
(True, True)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hardlook.caching import GIBIBYTE
from hardlook.errors import OptionError
from hardlook.models.one_shot.matching import CellMatcher, Cells, Coverage, ImagesOfCall, mask_from_scores
from hardlook.models.roles import Image, Mask, Support


class Nearest(CellMatcher):
    """The best cosine to a foreground cell against the best to a background cell; the larger decides.

    A support cell is foreground where the mask covers half of it; where it covers half of none, the cell it covers
    most. `k`: how many best cosines are averaged on either side (all, where a side has fewer). A side that no support
    shows counts as cosine 0. Several supports: their cells are pooled. Supports without any foreground give an empty
    mask. The other arguments are those of `CellMatcher`.
    """

    def __init__(
        self,
        encoder: str = "efficientnet-lite0",
        encoder_args: str = "",
        device: str = "",
        k: int = 1,
        memory: int = 2 * GIBIBYTE,
    ) -> None:
        if k < 1:
            raise OptionError(f"k {k} leaves no neighbour", remedy="k is at least 1")
        super().__init__(encoder, encoder_args, device, memory)
        self.k = k

    def _segment(self, images: ImagesOfCall, query: Image, supports: Sequence[Support]) -> Mask:
        size = query.shape[0], query.shape[1]
        inside = [images.from_support(support, "foreground cells", foreground_cells) for support in supports]
        if not any(where.any() for where in inside):
            return np.zeros(size, bool)
        shown = [images.cells(support.image) for support in supports]
        # Foreground cells of all supports first, then all background cells: one product serves both sides.
        sides = [cells[where] for cells, where in zip(shown, inside, strict=True)]
        split = sum(map(len, sides))
        sides += [cells[~where] for cells, where in zip(shown, inside, strict=True)]
        cells = images.cells(query)
        cosines = np.concatenate(sides) @ cells.reshape(-1, cells.shape[2]).T
        scores = mean_of_largest(cosines[:split], self.k) - mean_of_largest(cosines[split:], self.k)
        return mask_from_scores(scores.reshape(cells.shape[:2]), size)


def foreground_cells(cells: Cells, covered: Coverage, uncovered: Coverage) -> NDArray[np.bool_]:
    """(h, w) bool: cells at least half under the mask, else the one most under it (the first of equals), else none."""
    half = covered >= 0.5
    if not half.any() and covered.any():
        half.ravel()[int(covered.argmax())] = True
    return half


def mean_of_largest(cosines: NDArray[np.float32], k: int) -> NDArray[np.float32]:
    """(n,): the mean of the `k` largest of each column of (m, n), of all where m is smaller; 0 where m is 0.

    >>> mean_of_largest(np.array([[0.5, 0.1], [0.25, 0.3], [0.0, 0.2]], np.float32), 2).tolist()
    [0.375, 0.25]
    """
    rows = len(cosines)
    if rows == 0:
        return np.zeros(cosines.shape[1], np.float32)
    if k == 1:
        return np.asarray(cosines.max(axis=0))
    if rows > k:
        cosines = np.partition(cosines, rows - k, axis=0)[rows - k :]
    # Sorted, so that the sum does not depend on the order in which the partition left them.
    return np.asarray(np.sort(cosines, axis=0).mean(axis=0))
