"""Planted segmenters: they know the truth of a picture, and misname, roughen or miss objects as their dials say.

`perceive` gives the objects and the stuff of a picture with the faults; the semantic, instance and panoptic segmenter
report it in their own way. Open-vocabulary metrics must forgive `sibling` more than `stranger`; both leave borders
alone, while `ragged` leaves names alone and spoils borders.

>>> import numpy as np
>>> from hardlook.world.signature import write_signature
>>> classes = np.full((16, 16), 13, np.uint8)
>>> classes[4:12, 2:10] = 1
>>> picture = write_signature(np.full((16, 16, 3), 90, np.uint8), classes, np.zeros_like(classes), classes == 1)
>>> for dials in ({}, {"sibling": 1.0}, {"stranger": 1.0}):
...     segmenter = PlantedSegmenter(**dials)
...     segmenter.labels[segmenter.segment([picture])[0][8, 8]]
'cat'
'dog'
'car'
>>> [found] = PlantedInstances().detect([picture])
>>> found.boxes.tolist(), found.labels.tolist(), len(PlantedInstances(missed=1.0).detect([picture])[0].labels)
([[2.0, 4.0, 10.0, 12.0]], [0], 0)
>>> [answer] = PlantedPanoptic(stranger=1.0).segment_panoptic([picture])
>>> {segment: PlantedPanoptic.labels[label] for segment, label in answer.labels.items()}
{1: 'car', 2: 'sky'}
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.errors import ModelError
from hardlook.fingerprints import hash_array
from hardlook.models.planted.dials import check_dials, draw, spoils
from hardlook.models.planted.truth import THINGS
from hardlook.models.roles import Image, Instances, LabelMap, Mask, Segments
from hardlook.world.signature import read_signature
from hardlook.world.vocabulary import BY_CODE, BY_NAME, LABELS, VOID, sibling_of, unrelated_to

MAX_RAGGED = 3  # pixels by which a ragged border is off, at most
MIN_LEFT = 0.6  # of an object that shrinks
_IS_THING = np.isin(np.arange(256), THINGS)


@dataclass(frozen=True)
class Faults:
    """Dials from 0 to 1: shares of objects mislabelled as sibling or stranger, with wrong borders, or missed."""

    sibling: float = 0.0
    stranger: float = 0.0
    ragged: float = 0.0
    missed: float = 0.0

    def __post_init__(self) -> None:
        check_dials(**asdict(self))
        if self.sibling + self.stranger > 1 + 1e-9:
            what = f"sibling={self.sibling} and stranger={self.stranger} are shares of the same objects"
            raise ModelError(what, remedy="their sum goes up to 1")


@dataclass(frozen=True)
class Thing:
    """An object: its true class code, what the model calls it, its number within the class, and whether it is seen."""

    true: int
    called: int
    instance: int
    seen: bool = True


@dataclass(frozen=True)
class Perceived:
    """What the model sees: `codes` (H, W) uint8, 0 void; `owner` (H, W) int32, 1 + the index into `things`, else 0."""

    codes: NDArray[np.uint8]
    owner: NDArray[np.int32]
    things: tuple[Thing, ...]

    def objects(self) -> Iterator[tuple[Thing, Mask]]:
        """The objects that are found, with their masks (H, W)."""
        for index, thing in enumerate(self.things):
            mask = self.owner == index + 1
            if thing.seen and mask.any():
                yield thing, mask


def perceive(image: Image, faults: Faults, model: str, seed: int) -> Perceived:
    """The picture's truth with faults; `model` is part of the keys of random draws."""
    truth = read_signature(image)
    key = hash_array(image)
    found = _IS_THING[truth.classes]
    joint = truth.classes.astype(np.int32) << 2 | truth.instances
    things, shapes = [], []
    for value in np.unique(joint[found]):
        code, instance = int(value) >> 2, int(value) & 3
        where = (model, key, code, instance)
        seen = not spoils(faults.missed, seed, *where, "missed")
        things.append(Thing(code, _misname(code, faults, seed, where), instance, seen))
        shape = found & (joint == value)
        rough = spoils(faults.ragged, seed, *where, "ragged")
        shapes.append(_roughen(shape, found & ~shape, draw(seed, *where, "how ragged")) if rough else shape)
    codes = _fill_with_stuff(truth.classes, found)
    owner = np.zeros(found.shape, np.int32)
    for index, (thing, shape) in enumerate(zip(things, shapes, strict=True)):
        codes[shape] = thing.called
        owner[shape] = index + 1
    return Perceived(codes, owner, tuple(things))


def _misname(code: int, faults: Faults, seed: int, where: tuple[str | int, ...]) -> int:
    name = BY_CODE[code].name
    # One draw for both dials: turning one down and the other up renames the same objects, only otherwise.
    drawn = draw(seed, *where, "called")
    if drawn < faults.sibling:
        return BY_NAME[sibling_of(name)].code
    return BY_NAME[unrelated_to(name)].code if drawn < faults.sibling + faults.stranger else code


def _roughen(shape: Mask, others: Mask, how: float) -> Mask:
    """The shape made smaller (the lower half of the draw) or larger, by 1 to MAX_RAGGED pixels."""
    pixels = shape.astype(np.uint8)
    widest = 1 + int(2 * MAX_RAGGED * how) % MAX_RAGGED
    # A shape fault must become neither a miss nor a wrong name: most of the object stays, and no other is covered.
    if how < 0.5:
        for radius in range(widest, 0, -1):
            shrunk: Mask = cv2.erode(pixels, _disc(radius), borderValue=1).astype(bool)
            if shrunk.sum() >= MIN_LEFT * shape.sum():
                return shrunk
    return cv2.dilate(pixels, _disc(widest)).astype(bool) & ~others


def _disc(radius: int) -> NDArray[np.uint8]:
    return cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * radius + 1, 2 * radius + 1)).astype(np.uint8)


def _fill_with_stuff(classes: NDArray[np.uint8], found: Mask) -> NDArray[np.uint8]:
    """Class codes with every object replaced by the nearest pixel that is none; void where there is nothing else."""
    if found.all() or not found.any():
        return np.where(found, np.uint8(0), classes)
    _, nearest = cv2.distanceTransformWithLabels(
        found.astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5, labelType=cv2.DIST_LABEL_PIXEL
    )
    behind = np.zeros(int(nearest.max()) + 1, np.uint8)
    behind[nearest[~found]] = classes[~found]
    return np.asarray(behind[nearest])


SEGMENTER_NAME, INSTANCES_NAME, PANOPTIC_NAME = "planted-segmenter", "planted-instances", "planted-panoptic"
"""Part of the keys of random draws."""

SCORE_NOISE = 0.05


class PlantedSegmenter:
    """Labels every pixel by the picture's signature.

    `sibling`, `stranger`: shares of objects called by the name of their sibling or stranger; `ragged`: share of
    objects whose border is off by up to three pixels. All from 0 to 1.
    """

    labels: Sequence[str] = tuple(label.name for label in LABELS)

    def __init__(self, sibling: float = 0.0, stranger: float = 0.0, ragged: float = 0.0, seed: int = 0) -> None:
        self.faults = Faults(sibling=sibling, stranger=stranger, ragged=ragged)
        self.seed = seed

    def segment(self, images: Sequence[Image]) -> list[LabelMap]:
        """One (H, W) int32 map per image: class code - 1, -1 for void."""
        return [perceive(image, self.faults, SEGMENTER_NAME, self.seed).codes.astype(np.int32) - 1 for image in images]


class _ObjectSegmenter:
    """Base of the models that may miss objects.

    `sibling`, `stranger`: shares of objects called by the name of their sibling or stranger; `ragged`: share with
    borders off by up to three pixels; `missed`: share not found. All from 0 to 1.
    """

    labels: Sequence[str] = tuple(label.name for label in LABELS)

    def __init__(
        self, sibling: float = 0.0, stranger: float = 0.0, ragged: float = 0.0, missed: float = 0.0, seed: int = 0
    ) -> None:
        self.faults = Faults(sibling=sibling, stranger=stranger, ragged=ragged, missed=missed)
        self.seed = seed


class PlantedInstances(_ObjectSegmenter):
    """Finds the objects of the picture's signature."""

    def detect(self, images: Sequence[Image]) -> list[Instances]:
        """One `Instances` per image; scores are 1 less a little noise that knows nothing of the faults."""
        return [self._detect(image) for image in images]

    def _detect(self, image: Image) -> Instances:
        rows = list_detections(image, perceive(image, self.faults, INSTANCES_NAME, self.seed), self.seed)
        return make_instances(image, rows, [thing.called - 1 for _, thing, _ in rows])


Detection = tuple[float, Thing, Mask]


def list_detections(image: Image, perceived: Perceived, seed: int) -> list[Detection]:
    """Score, object and mask (H, W) of everything that is found, best first."""
    key = hash_array(image)
    rows = [
        (1 - SCORE_NOISE * draw(seed, INSTANCES_NAME, key, thing.true, thing.instance, "score"), thing, mask)
        for thing, mask in perceived.objects()
    ]
    return sorted(rows, key=lambda row: -row[0])


def make_instances(image: Image, rows: Sequence[Detection], labels: Sequence[int]) -> Instances:
    """The detections as a model answers them; `labels` has the label of each."""
    height, width = image.shape[:2]
    return Instances(
        masks=np.array([mask for _, _, mask in rows], bool).reshape(-1, height, width),
        boxes=np.array([_box(mask) for _, _, mask in rows], np.float32).reshape(-1, 4),
        scores=np.array([score for score, _, _ in rows], np.float32),
        labels=np.array(labels, np.int32),
    )


def _box(mask: Mask) -> tuple[int, int, int, int]:
    columns, rows = np.flatnonzero(mask.any(axis=0)), np.flatnonzero(mask.any(axis=1))
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1


class PlantedPanoptic(_ObjectSegmenter):
    """Finds the objects and the stuff of the picture's signature; a missed object is left blank."""

    things: Sequence[bool] = tuple(label.thing for label in LABELS)

    def segment_panoptic(self, images: Sequence[Image]) -> list[Segments]:
        """One `Segments` per image: one segment per object, then one per kind of stuff."""
        return [self._segment(image) for image in images]

    def _segment(self, image: Image) -> Segments:
        segments, things, codes = find_segments(perceive(image, self.faults, PANOPTIC_NAME, self.seed))
        called = [*(thing.called for thing in things), *codes]
        return Segments(segments, {place: code - 1 for place, code in enumerate(called, 1)})


def find_segments(perceived: Perceived) -> tuple[LabelMap, list[Thing], list[int]]:
    """A map (H, W) of segment ids from 1, the objects that come first in them, and the codes of the stuff after."""
    segments = np.zeros(perceived.owner.shape, np.int32)
    found = list(perceived.objects())
    for place, (_, mask) in enumerate(found, 1):
        segments[mask] = place
    stuff = np.where(perceived.owner == 0, perceived.codes, VOID)
    codes = [int(code) for code in np.unique(stuff[stuff != VOID])]
    for place, code in enumerate(codes, len(found) + 1):
        segments[stuff == code] = place
    return segments, [thing for thing, _ in found], codes
