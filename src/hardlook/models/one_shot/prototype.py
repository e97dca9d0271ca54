"""Prototype matching: one vector for the shown class, one for what is around it, and each query cell to the nearer.

Masked average pooling as in Zhang et al., "SG-One: Similarity guidance network for one-shot semantic segmentation",
2018, and Wang et al., "PANet", ICCV 2019, here without any training.

>>> from hardlook.world.planted import PlantedWorld
>>> scene = PlantedWorld(seed=1, count=1, salient=True)[0]
>>> shown = Support(scene.image, scene.class_mask(scene.scene.subject.concept))
>>> [found] = Prototype(encoder="planted-encoder").segment_queries([scene.image], [[shown]])
>>> bool(found[shown.mask].mean() > 0.9), bool(found[~shown.mask].mean() < 0.1)
(True, True)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hardlook.caching import GIBIBYTE
from hardlook.errors import OptionError
from hardlook.models.one_shot.matching import CellMatcher, Cells, Coverage, ImagesOfCall, mask_from_scores
from hardlook.models.roles import Image, Mask, Support
from hardlook.models.unit_vectors import unit_vectors


class Prototype(CellMatcher):
    """Cosines to the support's foreground and background, averaged over their cells; the larger decides.

    `background`: "prototype" takes the cells nearer to the foreground's vector than to the background's (a side
    that no support shows counts as cosine 0); "none" uses the foreground's alone, scaled over the query from 0 to 1,
    and takes what is above `threshold`. Several supports: their vectors are averaged. Supports without any foreground
    give an empty mask. The other arguments are those of `CellMatcher`.
    """

    def __init__(
        self,
        encoder: str = "efficientnet-lite0",
        encoder_args: str = "",
        device: str = "",
        background: Literal["prototype", "none"] = "prototype",
        threshold: float = 0.5,
        memory: int = 2 * GIBIBYTE,
    ) -> None:
        if not 0 <= threshold <= 1:
            raise OptionError(f"threshold {threshold} is no share", remedy="threshold goes from 0 to 1")
        super().__init__(encoder, encoder_args, device, memory)
        self.background, self.threshold = background, threshold

    def _segment(self, images: ImagesOfCall, query: Image, supports: Sequence[Support]) -> Mask:
        size = query.shape[0], query.shape[1]
        each = [images.from_support(support, "prototypes", prototypes) for support in supports]
        foreground, background = (mean_direction([one[side] for one in each]) for side in (0, 1))
        if foreground is None:
            return np.zeros(size, bool)
        cells = images.cells(query)
        direction = foreground
        if self.background == "prototype" and background is not None:
            # The difference of two cosines is one product with the difference of the directions.
            direction = foreground - background
        scores = (cells.reshape(-1, len(direction)) @ direction).reshape(cells.shape[:2])
        return mask_from_scores(scale_above(scores, self.threshold) if self.background == "none" else scores, size)


def prototypes(cells: Cells, covered: Coverage, uncovered: Coverage) -> NDArray[np.float32]:
    """(2, C): the mean vector of the cells under the mask and of those around it, weighted by area; 0 for no area."""
    flat = cells.reshape(-1, cells.shape[2])
    means = np.zeros((2, cells.shape[2]), np.float32)
    for row, weights in enumerate((covered.ravel(), uncovered.ravel())):
        if (total := weights.sum()) > 0:
            means[row] = weights @ flat / total
    return means


def mean_direction(vectors: Sequence[NDArray[np.float32]]) -> NDArray[np.float32] | None:
    """The direction (C,) of the mean of the vectors that are not 0; None where there are none."""
    shown = [vector for vector in vectors if vector.any()]
    return unit_vectors(np.mean(shown, axis=0)) if shown else None


def scale_above(scores: NDArray[np.float32], threshold: float) -> NDArray[np.float32]:
    """Scores (h, w) scaled so that the least is 0 and the most is 1, less `threshold`; all -1 where they are equal.

    >>> scale_above(np.array([[2, 3, 6]], np.float32), 0.5).tolist()
    [[-0.5, -0.25, 0.5]]
    """
    low, high = scores.min(), scores.max()
    if not high > low:
        return np.full_like(scores, -1)
    return np.asarray((scores - low) / (high - low) - np.float32(threshold))
