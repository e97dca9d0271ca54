"""What a planted segmenter perceives: the objects and the stuff of a picture, with the faults of its dials.

Shared by the semantic, instance and panoptic planted models, which differ in how they report it.

>>> import numpy as np
>>> from hardlook.world.signature import sign
>>> classes = np.full((16, 16), 13, np.uint8)
>>> classes[4:12, 4:12] = 1
>>> picture = sign(np.full((16, 16, 3), 90, np.uint8), classes, np.zeros_like(classes), classes == 1)
>>> seen = perceive(picture, Faults(sibling=1.0), "example", seed=0)
>>> [(thing.true, thing.called) for thing in seen.things], int(seen.codes[8, 8]), int(seen.codes[0, 0])
([(1, 2)], 2, 13)
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.errors import ModelError
from hardlook.models.planted.dials import checked, draw, of_array, strikes
from hardlook.models.roles import Image, Mask
from hardlook.world.signature import read
from hardlook.world.vocabulary import BY_CODE, BY_NAME, CONCEPTS, sibling_of, stranger_of

MOST_RAGGED = 3  # pixels by which a ragged border is off, at most
LEAST_LEFT = 0.6  # of an object that shrinks
_THINGS = np.zeros(256, bool)
_THINGS[[label.code for label in CONCEPTS]] = True


@dataclass(frozen=True)
class Faults:
    """Dials from 0 to 1: shares of objects mislabelled as sibling or stranger, with wrong borders, or missed."""

    sibling: float = 0.0
    stranger: float = 0.0
    ragged: float = 0.0
    missed: float = 0.0

    def __post_init__(self) -> None:
        checked(sibling=self.sibling, stranger=self.stranger, ragged=self.ragged, missed=self.missed)
        if self.sibling + self.stranger > 1 + 1e-9:
            raise ModelError(
                f"sibling={self.sibling} and stranger={self.stranger} are shares of the same objects",
                remedy="their sum goes up to 1",
            )


@dataclass(frozen=True)
class Thing:
    """An object: its true class code, what the model calls it, its number within the class, and whether it is seen."""

    true: int
    called: int
    instance: int
    seen: bool = True


@dataclass(frozen=True)
class Perceived:
    """A picture as the model sees it.

    `codes` (H, W) uint8 class codes, 0 void; `owner` (H, W) int32, 1 + the index into `things` of the object at a
    pixel, 0 where there is none.
    """

    codes: NDArray[np.uint8]
    owner: NDArray[np.int32]
    things: tuple[Thing, ...]


def perceive(image: Image, faults: Faults, model: str, seed: int) -> Perceived:
    """The picture's truth, spoilt by the dials: `sibling`, `stranger`, `ragged` and `missed`."""
    truth = read(image)
    key = of_array(image)
    found = _THINGS[truth.classes]
    joint = truth.classes.astype(np.int32) << 2 | truth.instances
    things, shapes = [], []
    for value in np.unique(joint[found]):
        code, instance = int(value) >> 2, int(value) & 3
        where = (model, key, code, instance)
        seen = not strikes(faults.missed, seed, *where, "missed")
        things.append(Thing(code, _called(code, faults, seed, where), instance, seen))
        shape = found & (joint == value)
        rough = strikes(faults.ragged, seed, *where, "ragged")
        shapes.append(_ragged(shape, found & ~shape, draw(seed, *where, "how ragged")) if rough else shape)
    codes = _stuff_everywhere(truth.classes, found)
    owner = np.zeros(found.shape, np.int32)
    for index, (thing, shape) in enumerate(zip(things, shapes, strict=True)):
        codes[shape] = thing.called
        owner[shape] = index + 1
    return Perceived(codes, owner, tuple(things))


def _called(code: int, faults: Faults, seed: int, where: tuple[str | int, ...]) -> int:
    name = BY_CODE[code].name
    # One draw for both dials: turning one down and the other up renames the same objects, only otherwise.
    drawn = draw(seed, *where, "called")
    if drawn < faults.sibling:
        return BY_NAME[sibling_of(name)].code
    if drawn < faults.sibling + faults.stranger:
        return BY_NAME[stranger_of(name)].code
    return code


def _ragged(shape: Mask, others: Mask, how: float) -> Mask:
    """The shape made smaller (the lower half of the draw) or larger, by 1 to MOST_RAGGED pixels."""
    pixels = shape.astype(np.uint8)
    widest = 1 + int(2 * MOST_RAGGED * how) % MOST_RAGGED
    # A shape fault must become neither a miss nor a wrong name: most of the object stays, and no other is covered.
    if how < 0.5:
        for radius in range(widest, 0, -1):
            shrunk: Mask = cv2.erode(pixels, _disc(radius), borderValue=1).astype(bool)
            if shrunk.sum() >= LEAST_LEFT * shape.sum():
                return shrunk
    grown: Mask = cv2.dilate(pixels, _disc(widest)).astype(bool) & ~others
    return grown


def _disc(radius: int) -> NDArray[np.uint8]:
    return cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * radius + 1, 2 * radius + 1)).astype(np.uint8)


def _stuff_everywhere(classes: NDArray[np.uint8], found: Mask) -> NDArray[np.uint8]:
    """Class codes with every object replaced by the nearest pixel that is none; void where there is nothing else."""
    if found.all() or not found.any():
        return np.where(found, np.uint8(0), classes)
    _, nearest = cv2.distanceTransformWithLabels(
        found.astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5, labelType=cv2.DIST_LABEL_PIXEL
    )
    behind = np.zeros(int(nearest.max()) + 1, np.uint8)
    behind[nearest[~found]] = classes[~found]
    filled: NDArray[np.uint8] = behind[nearest]
    return filled
