"""GrabCut seeded by clicks: colour mixtures and a graph cut, no weights.

Rother, Kolmogorov and Blake, "GrabCut: interactive foreground extraction using iterated graph cuts", SIGGRAPH 2004, in
OpenCV's implementation. The paper starts from a box: all outside of it is background, the rest is probably object.
Without a box, discs around the clicks are certain, the wider neighbourhood of positive clicks is probably object, and
the rest is probably background.

>>> from hardlook.models.roles import Clicks
>>> picture = np.full((40, 60, 3), 30, np.uint8)
>>> picture[10:30, 15:45] = (200, 80, 20)
>>> click = Clicks(np.array([[30, 20]], np.float32), np.array([True]))
>>> [answer] = GrabCut().open(picture).predict([click])
>>> bool(answer.mask[10:30, 15:45].all()), int(answer.mask.sum())
(True, 600)
"""

from __future__ import annotations

import functools

import cv2
import numpy as np

from hardlook.errors import OptionError
from hardlook.models.interactive.click_seeds import ClickSeeds, SeededSession, check_sizes, shrink
from hardlook.models.roles import Image, Mask


class GrabCut:
    """A mask from the clicks alone; earlier masks are not used.

    `iterations`: rounds of fitting the mixtures and cutting the graph. `size`: longest side, in pixels, of the working
    frame. `radius` of the certain disc around a click and `spread` of the probable object around a positive click are
    shares of that side. Only parts of the mask that hold a positive click are kept, unless there is a box. Negative
    clicks alone give an empty mask.
    """

    takes_boxes = True

    def __init__(self, iterations: int = 5, size: int = 240, radius: float = 0.02, spread: float = 0.15) -> None:
        check_sizes(size, radius)
        if iterations < 1:
            raise OptionError(f"iterations is {iterations}, expected at least 1", remedy="give iterations=1 or more")
        if not radius <= spread:
            raise OptionError(f"spread {spread} lies within radius {radius}", remedy="give a spread above the radius")
        self.iterations, self.size, self.radius, self.spread = iterations, size, radius, spread
        self.conduct = (
            f"GrabCut on a frame of at most {size} px, {iterations} iterations; discs of {radius:g} of its longest "
            f"side around the clicks are certain, {spread:g} around positive ones probable; no earlier mask is used"
        )

    def open(self, image: Image) -> SeededSession:
        """A session on the image, shrunk to the working frame."""
        small = shrink(image, self.size)
        return SeededSession(image.shape[:2], small.shape[:2], self.radius, functools.partial(self._cut, small))

    def _cut(self, small: Image, seeds: ClickSeeds) -> Mask:
        reach = (self.spread * max(seeds.seed.shape)) ** 2
        labels = np.where((seeds.side > 0) & (seeds.squared <= reach), cv2.GC_PR_FGD, cv2.GC_PR_BGD).astype(np.uint8)
        if seeds.box is not None:
            labels = np.where(seeds.box, cv2.GC_PR_FGD, cv2.GC_BGD).astype(np.uint8)
        labels[seeds.seed > 0] = cv2.GC_FGD
        labels[seeds.seed < 0] = cv2.GC_BGD
        object_ = np.isin(labels, (cv2.GC_FGD, cv2.GC_PR_FGD))
        # Each mixture needs a pixel. A disc may cover a whole tiny frame; a click may lose all its pixels to others.
        if not object_.all() and object_.any():
            # The mixtures start from k-means, which draws from OpenCV's generator: seeded, so results repeat.
            cv2.setRNGSeed(0)
            background, foreground = np.zeros((1, 65)), np.zeros((1, 65))  # the mixtures, filled in place
            box = (0, 0, 1, 1)  # not read in this mode
            cv2.grabCut(small, labels, box, background, foreground, self.iterations, cv2.GC_INIT_WITH_MASK)
            object_ = np.isin(labels, (cv2.GC_FGD, cv2.GC_PR_FGD))
        if seeds.box is not None:
            return object_
        _, parts = cv2.connectedComponents(object_.astype(np.uint8), connectivity=4)
        return np.isin(parts, np.unique(parts[object_ & (seeds.seed > 0)]))
