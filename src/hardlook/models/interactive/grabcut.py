"""GrabCut seeded by clicks: colour mixtures and a graph cut, no weights.

Rother, Kolmogorov and Blake, "GrabCut: interactive foreground extraction using iterated graph cuts", SIGGRAPH 2004, as
OpenCV has it. The paper starts from a box; here discs around the clicks are certain, the wider neighbourhood of the
positive ones is probably object and the rest probably background.

>>> picture = np.full((40, 60, 3), 30, np.uint8)
>>> picture[10:30, 15:45] = (200, 80, 20)
>>> click = Clicks(np.array([[30, 20]], np.float32), np.array([True]))
>>> [answer] = GrabCut().open(picture).predict([click])
>>> bool(answer.mask[10:30, 15:45].all()), int(answer.mask.sum())
(True, 600)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from hardlook.errors import OptionError
from hardlook.models.interactive.click_seeds import (
    ClickSeeds,
    check_sizes,
    compute_seeds,
    enlarge,
    keep_clicks,
    shrink,
    working_shape,
)
from hardlook.models.roles import Clicks, Image, Mask, Prompted


@dataclass(frozen=True)
class GrabCutRules:
    """How GrabCut is driven; see `GrabCut`."""

    iterations: int
    size: int
    radius: float
    spread: float


class GrabCut:
    """A mask from the clicks alone, without any memory of earlier masks.

    `iterations` of mixture and cut; `size` of the working frame's longest side in pixels; `radius` of the certain disc
    around a click, and `spread` of the probable object around a positive one, as shares of that side. Only parts of
    the mask that hold a positive click are kept. Negative clicks alone give an empty mask.
    """

    def __init__(self, iterations: int = 5, size: int = 240, radius: float = 0.02, spread: float = 0.15) -> None:
        check_sizes(size, radius)
        if iterations < 1:
            raise OptionError(f"{iterations} iterations cut nothing", remedy="give iterations=1 or more")
        if not radius <= spread:
            raise OptionError(f"spread {spread} lies within radius {radius}", remedy="give a spread above the radius")
        self.rules = GrabCutRules(iterations, size, radius, spread)
        self.conduct = (
            f"GrabCut on a frame of at most {size} px, {iterations} iterations; discs of {radius:g} of its longest "
            f"side around the clicks are certain, {spread:g} around positive ones probable; no earlier mask is used"
        )

    def open(self, image: Image) -> GrabCutSession:
        """The shrunken picture, ready to be clicked."""
        full = (image.shape[0], image.shape[1])
        return GrabCutSession(shrink(image, working_shape(full, self.rules.size)), full, self.rules)


@dataclass(frozen=True)
class GrabCutSession:
    """An opened picture: `small` (h, w, 3) uint8 and the full frame's shape (H, W)."""

    small: Image
    full: tuple[int, int]
    rules: GrabCutRules

    def predict(self, prompts: Sequence[Clicks]) -> list[Prompted]:
        """One mask per prompt; the state is not used."""
        return [Prompted(self._mask(prompt)) for prompt in prompts]

    def _mask(self, prompt: Clicks) -> Mask:
        if not np.any(prompt.positive):
            return np.zeros(self.full, bool)
        working = (self.small.shape[0], self.small.shape[1])
        cut = self._cut(compute_seeds(prompt, self.full, working, self.rules.radius))
        return keep_clicks(enlarge(cut.astype(np.float32), self.full) > 0.5, prompt)

    def _cut(self, seeds: ClickSeeds) -> Mask:
        reach = (self.rules.spread * max(seeds.seed.shape)) ** 2
        probable = (seeds.side > 0) & (seeds.squared <= reach)
        labels = np.where(probable, cv2.GC_PR_FGD, cv2.GC_PR_BGD).astype(np.uint8)
        labels[seeds.seed > 0] = cv2.GC_FGD
        labels[seeds.seed < 0] = cv2.GC_BGD
        object_ = np.isin(labels, (cv2.GC_FGD, cv2.GC_PR_FGD))
        # Both mixtures need a sample: a tiny frame may be all disc, and a click may lose every cell to a nearer one.
        if not object_.all() and object_.any():
            # The mixtures start from k-means, which draws from OpenCV's own generator: the same numbers every time.
            cv2.setRNGSeed(0)
            away, near, box = np.zeros((1, 65)), np.zeros((1, 65)), (0, 0, 1, 1)  # the box is not read in this mode
            cv2.grabCut(self.small, labels, box, away, near, self.rules.iterations, cv2.GC_INIT_WITH_MASK)
            object_ = np.isin(labels, (cv2.GC_FGD, cv2.GC_PR_FGD))
        return _touching(object_, seeds.seed > 0)


def _touching(mask: Mask, seeds: Mask) -> Mask:
    _, parts = cv2.connectedComponents(mask.astype(np.uint8), connectivity=4)
    clicked = np.unique(parts[mask & seeds])
    return np.isin(parts, clicked)
