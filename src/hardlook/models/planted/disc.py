"""A promptable segmenter that knows its objects, and is as fragile to off-centre clicks as its dial says.

A click at the innermost point of an object gives all of it; one towards the edge loses the part that lies farthest
from the clicks, up to four fifths of the area. Every further click on the object wins most of it back. So the
clicks needed grow with `fragility` for people who click at the edge, and for nobody else. Nothing is random.

>>> import numpy as np
>>> from hardlook.world.signature import sign
>>> classes = np.zeros((32, 32), np.uint8)
>>> classes[2:31, 2:31] = 1
>>> picture = sign(np.full((32, 32, 3), 90, np.uint8), classes, np.zeros_like(classes), classes == 1)
>>> def overlap(*points):
...     clicks = Clicks(np.array(points, np.float32), np.ones(len(points), bool))
...     [answer] = Disc(fragility=1.0).open(picture).predict([clicks])
...     return round(float(answer.mask.sum() / (classes == 1).sum()), 2)
>>> overlap((16, 16)), overlap((3, 16)), overlap((3, 16), (28, 16))
(1.0, 0.31, 0.58)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.models.planted.dials import checked
from hardlook.models.registry import register
from hardlook.models.roles import Clicks, Image, Mask, Prompted
from hardlook.world.signature import Signature, read
from hardlook.world.vocabulary import BY_CODE, VOID

MOST_LOST = 0.8
REPAIR = 0.6  # of the loss is left after each further click
BLUNTEST = 0.05


@register(
    "disc", role="promptable-segmenter", summary="the clicked object, less when clicked off-centre", licence="MIT"
)
class Disc:
    """Segments the objects under positive clicks.

    `fragility`: how much an off-centre first click costs; `blunt`: share of the rim, up to 5 % of the area, that is
    lost wherever the clicks are. Both from 0 to 1. `seed` is taken as by the other planted models; nothing is drawn.
    """

    def __init__(self, fragility: float = 0.0, blunt: float = 0.0, seed: int = 0) -> None:
        checked(fragility=fragility, blunt=blunt)
        self.fragility = fragility
        self.blunt = blunt
        self.seed = seed

    def open(self, image: Image) -> DiscSession:
        """The regions of the picture, ready to be clicked."""
        return DiscSession(_regions(read(image)), self.fragility, self.blunt)


@dataclass(frozen=True)
class DiscSession:
    """An opened picture: `regions` (H, W) int32 numbers every object and every stuff, 0 for void."""

    regions: NDArray[np.int32]
    fragility: float
    blunt: float

    def predict(self, prompts: Sequence[Clicks]) -> list[Prompted]:
        """One mask a prompt: the regions whose latest click is positive, each with its losses."""
        return [Prompted(self._mask(prompt)) for prompt in prompts]

    def _mask(self, prompt: Clicks) -> Mask:
        height, width = self.regions.shape
        pixels = np.rint(np.asarray(prompt.points, float).reshape(-1, 2)).astype(int)
        columns, rows = np.clip(pixels[:, 0], 0, width - 1), np.clip(pixels[:, 1], 0, height - 1)
        clicked = self.regions[rows, columns]
        positive = np.asarray(prompt.positive, bool)
        mask = np.zeros((height, width), bool)
        for region in dict.fromkeys(clicked[positive].tolist()):
            on_it = clicked == region
            if region and positive[np.flatnonzero(on_it)[-1]]:
                here = on_it & positive
                mask |= self._degraded(self.regions == region, rows[here], columns[here])
        return mask

    def _degraded(self, region: Mask, rows: NDArray[np.int_], columns: NDArray[np.int_]) -> Mask:
        depth = cv2.distanceTransform(np.pad(region.astype(np.uint8), 1), cv2.DIST_L2, cv2.DIST_MASK_PRECISE)[
            1:-1, 1:-1
        ]
        off_centre = 1 - float(depth[rows[0], columns[0]]) / float(depth.max())
        lost = MOST_LOST * self.fragility * off_centre * REPAIR ** (len(rows) - 1)
        inside = np.argwhere(region)
        clicks = np.stack([rows, columns], axis=1)
        squared = np.minimum.reduce([((inside - click) ** 2).sum(axis=1) for click in clicks])
        kept = region.copy()
        _drop(kept, inside, np.argsort(-squared, kind="stable"), lost)
        _drop(kept, inside, np.argsort(depth[region], kind="stable"), BLUNTEST * self.blunt)
        kept[rows, columns] = True
        return kept


def _drop(mask: Mask, pixels: NDArray[np.int_], order: NDArray[np.int_], share: float) -> None:
    gone = pixels[order[: round(share * len(pixels))]]
    mask[gone[:, 0], gone[:, 1]] = False


def _regions(truth: Signature) -> NDArray[np.int32]:
    things = np.isin(truth.classes, [code for code, label in BY_CODE.items() if label.thing])
    instance = np.where(things, truth.instances, 0).astype(np.int32)
    return np.where(truth.classes == VOID, 0, truth.classes.astype(np.int32) << 2 | instance)
