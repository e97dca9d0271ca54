"""A promptable segmenter that knows its objects, and is as fragile to off-centre clicks as its dial says.

A click at the innermost point of an object gives all of it; one towards the edge loses the part that lies farthest
from the clicks, up to four fifths of the area. Every further click on the object wins most of it back. So the
clicks needed grow with `fragility` for people who click at the edge, and for no others. Nothing is random.

>>> import numpy as np
>>> from hardlook.world.signature import write_signature
>>> classes = np.zeros((32, 32), np.uint8)
>>> classes[2:31, 2:31] = 1
>>> picture = write_signature(np.full((32, 32, 3), 90, np.uint8), classes, np.zeros_like(classes), classes == 1)
>>> def overlap(*points):
...     clicks = Clicks(np.array(points, np.float32), np.ones(len(points), bool))
...     [answer] = Disc(fragility=1.0).open(picture).predict([clicks])
...     return round(float(answer.mask.sum() / (classes == 1).sum()), 2)
>>> overlap((16, 16)), overlap((3, 16)), overlap((3, 16), (28, 16))
(1.0, 0.31, 0.58)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.models.planted.dials import check_dials
from hardlook.models.roles import Clicks, Image, Mask, Prompted, Session
from hardlook.world.signature import Signature, has_signature, read_signature
from hardlook.world.vocabulary import BY_CODE, VOID

RADIUS = 0.2  # of the picture's shorter side
MAX_LOST = 0.8
REPAIR = 0.6  # of the loss is left after each further click
BLUNTEST = 0.05


class Disc:
    """Segments the objects under positive clicks.

    `fragility`: how much an off-centre first click costs; `blunt`: share of the rim, up to 5 % of the area, that is
    lost wherever the clicks are. Both from 0 to 1. `seed` is taken as by the other planted models; nothing is drawn.
    A picture that is not of the planted world gets discs around its positive clicks, whatever the dials say.
    """

    def __init__(self, fragility: float = 0.0, blunt: float = 0.0, seed: int = 0) -> None:
        check_dials(fragility=fragility, blunt=blunt)
        self.fragility, self.blunt, self.seed = fragility, blunt, seed
        self.conduct = "the clicked object of the planted world; on other pictures a disc around each positive click"

    def open(self, image: Image) -> Session:
        """The regions of the picture, ready to be clicked; a picture without a signature gets plain discs."""
        if not has_signature(image):
            return PlainDiscs(*image.shape[:2])
        return DiscSession(_regions(read_signature(image)), self.fragility, self.blunt)


@dataclass(frozen=True)
class Region:
    """The pixels (n, 2) of a region as rows and columns, row by row, and the depth (n,) of each inside it."""

    pixels: NDArray[np.int64]
    depth: NDArray[np.float32]


@dataclass(frozen=True)
class DiscSession:
    """An opened picture: `regions` (H, W) int32 numbers objects and stuff, 0 void; `known` caches clicked ones."""

    regions: NDArray[np.int32]
    fragility: float
    blunt: float
    known: dict[int, Region] = field(default_factory=dict, repr=False)

    def predict(self, prompts: Sequence[Clicks]) -> list[Prompted]:
        """One mask per prompt: the regions whose latest click is positive, each with its losses."""
        return [Prompted(self._mask(prompt)) for prompt in prompts]

    def _mask(self, prompt: Clicks) -> Mask:
        rows, columns = prompt.pixels(self.regions.shape)
        clicked = self.regions[rows, columns]
        positive = np.asarray(prompt.positive, bool)
        mask = np.zeros(self.regions.shape, bool)
        for number in dict.fromkeys(clicked[positive].tolist()):
            on_it = clicked == number
            if number and positive[np.flatnonzero(on_it)[-1]]:
                here = on_it & positive
                self._add(mask, self._region(number), rows[here], columns[here])
        return mask

    def _region(self, number: int) -> Region:
        if number not in self.known:
            inside = self.regions == number
            depth = cv2.distanceTransform(np.pad(inside.astype(np.uint8), 1), cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
            self.known[number] = Region(np.argwhere(inside), depth[1:-1, 1:-1][inside])
        return self.known[number]

    def _add(self, mask: Mask, region: Region, rows: NDArray[np.int_], columns: NDArray[np.int_]) -> None:
        """Draw the region with its losses into the mask."""
        clicks = zip(rows, columns, strict=True)
        squared = np.minimum.reduce([((region.pixels - click) ** 2).sum(axis=1) for click in clicks])
        first = int(np.flatnonzero((region.pixels == (rows[0], columns[0])).all(1))[0])
        off_centre = 1 - float(region.depth[first]) / float(region.depth.max())
        lost = MAX_LOST * self.fragility * off_centre * REPAIR ** (len(rows) - 1)
        kept = np.ones(len(squared), bool)
        kept[_largest(squared, lost)] = False
        # The rim: squared depths are whole numbers, so that equal depths stay equal.
        kept[_largest(-np.rint(region.depth.astype(np.float64) ** 2).astype(np.int64), BLUNTEST * self.blunt)] = False
        chosen = region.pixels[kept]
        mask[chosen[:, 0], chosen[:, 1]] = True
        mask[rows, columns] = True


def _largest(values: NDArray[np.int64], share: float) -> NDArray[np.int64]:
    """The places of that share of the values: the largest, of equal ones the earliest.

    >>> sorted(_largest(np.array([3, 1, 3, 2, 3]), 0.4).tolist())
    [0, 2]
    """
    count = round(share * len(values))
    if not count:
        return np.zeros(0, np.int64)
    return np.argpartition(values * len(values) - np.arange(len(values)), len(values) - count)[len(values) - count :]


def _regions(truth: Signature) -> NDArray[np.int32]:
    things = np.isin(truth.classes, [code for code, label in BY_CODE.items() if label.thing])
    instance = np.where(things, truth.instances, 0).astype(np.int32)
    return np.where(truth.classes == VOID, 0, truth.classes.astype(np.int32) << 2 | instance)


@dataclass(frozen=True)
class PlainDiscs:
    """A session on a picture without known truth: a baseline for real images.

    A pixel belongs to the mask when the click nearest to it is positive and not too far.

    >>> session = PlainDiscs(height=40, width=60)
    >>> clicks = Clicks(np.array([[30, 20], [30, 30]], np.float32), np.array([True, False]))
    >>> [answer] = session.predict([clicks])
    >>> bool(answer.mask[20, 30]), bool(answer.mask[30, 30]), bool(answer.mask[20, 59])
    (True, False, False)
    """

    height: int
    width: int

    def predict(self, prompts: Sequence[Clicks]) -> list[Prompted]:
        """One mask per prompt; the state is how far each pixel is from its nearest click so far, squared."""
        return [self._answer(prompt) for prompt in prompts]

    def _answer(self, prompt: Clicks) -> Prompted:
        known = 0
        mask, nearest = np.zeros((self.height, self.width), bool), np.full((self.height, self.width), np.inf)
        if prompt.state is not None:
            known, mask, nearest = prompt.state
        rows, columns = np.ogrid[: self.height, : self.width]
        farthest = (RADIUS * min(self.height, self.width)) ** 2
        points = np.asarray(prompt.points, float).reshape(-1, 2)
        for (x, y), positive in zip(points[known:], prompt.positive[known:], strict=True):
            squared = (columns - x) ** 2 + (rows - y) ** 2
            nearer = squared < nearest
            nearest = np.minimum(squared, nearest)
            mask = np.where(nearer, bool(positive) & (squared <= farthest), mask)
        return Prompted(mask, (len(points), mask, nearest))
