"""Regions that people are asked to click on: objects, errors of predictions, and the objects of the training round.

>>> mask = np.zeros((4, 6), bool)
>>> mask[1:3, 2:5] = True
>>> cat = ClickRegion("mine", "cat", "", "cat", np.zeros((4, 6, 3), np.uint8), mask, mask, subject="mine/cat")
>>> cat.size, cat.unit, cat.click_type
((6, 4), 'mine/cat', 'first')
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle

import numpy as np

from hardlook.collect.study.instances import list_planted_instances
from hardlook.data.click_names import CLICK_TYPES, ClickType
from hardlook.errors import DataError
from hardlook.metrics.regions import find_bounding_box
from hardlook.models.roles import Image, Mask
from hardlook.randomness import generator
from hardlook.rclicks.user_clicks.planted_users import planted_error
from hardlook.world.planted import PlantedWorld

# The same in every study, so that all participants practise alike. Far more scenes than needed: unclear ones are
# skipped.
TRAINING_WORLD = PlantedWorld(seed=20_240_901, count=960, size=(480, 360), salient=True, distractors=2)
_TRAINING_DATASET = "training"

# Shares of the picture's area.
_SMALLEST_OBJECT, _LARGEST_OBJECT, _SMALLEST_ERROR = 0.04, 0.30, 0.01


@dataclass(frozen=True, eq=False)
class ClickRegion:
    """An object, or an error of a prediction, that people will be asked to click on.

    `image` (H, W, 3) uint8 RGB; `target` (H, W) bool, the object; `region` (H, W) bool, what is to be clicked: the
    object in a first round, in a second what the `previous` mask (H, W) bool misses (fn) or has in excess (fp).
    `subject` is the image's key: a participant sees each subject once. `full_stem` names the row of a click file,
    `model_type` the method of the previous mask. `description` is shown in the text mode. `exact` stores the image
    without loss.
    """

    dataset: str
    image_stem: str
    object_stem: str
    full_stem: str
    image: Image = field(repr=False)
    target: Mask = field(repr=False)
    region: Mask = field(repr=False)
    subject: str
    description: str = ""
    model_type: str = ""
    click_type: ClickType = "first"
    previous: Mask | None = field(default=None, repr=False)
    exact: bool = False

    def __post_init__(self) -> None:
        if self.image.ndim != 3 or self.image.shape[2] != 3 or self.image.dtype != np.uint8 or not self.image.size:
            got = f"{self.image.shape} of {self.image.dtype}"
            raise DataError(f"expected an image (H, W, 3) of uint8, got {got}", unit=self.unit)
        for name, mask in (("target", self.target), ("region", self.region), ("previous", self.previous)):
            if mask is not None and (mask.shape != self.image.shape[:2] or mask.dtype != np.bool_):
                what = f"expected a {name} mask {self.image.shape[:2]} of bool, got {mask.shape} of {mask.dtype}"
                raise DataError(what, unit=self.unit, remedy="store masks at the image's own size")
        if self.click_type not in CLICK_TYPES:
            raise DataError(f"a click of type {self.click_type!r}", unit=self.unit, remedy="first, fn or fp")
        if not self.region.any():
            raise DataError("there is nothing to click on", unit=self.unit, remedy="leave it out")

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""
        return self.image.shape[1], self.image.shape[0]

    @property
    def unit(self) -> str:
        """Its name in errors."""
        return f"{self.dataset}/{self.full_stem}"


def list_training_regions(click_types: Sequence[ClickType]) -> Iterator[ClickRegion]:
    """Clear planted objects, or large errors of planted masks, of ever new concepts; click types take turns."""
    remaining_types, seen = cycle(click_types), set[str]()
    click_type = next(remaining_types)
    for one in list_planted_instances(TRAINING_WORLD):
        # The object's description must fit nothing else in the picture.
        alike = sum(thing.concept == one.concept for thing in one.world.scene(one.index).objects)
        if one.concept in seen or alike != 1:
            continue
        target = one.read_target().mask
        rng = generator(TRAINING_WORLD.seed, _TRAINING_DATASET, click_type, one.index)
        region = planted_error(target, click_type, rng)
        if not _is_clear(target) or region.mean() < _SMALLEST_ERROR:
            continue
        stem, planted = one.image_stem, click_type != "first"
        stems = (stem, "", f"{stem}_planted_{click_type}" if planted else stem)
        shown, method = (f"{_TRAINING_DATASET}/{stem}", one.concept), "planted" if planted else ""
        yield ClickRegion(_TRAINING_DATASET, *stems, one.read(), target, region, *shown, method, click_type)
        seen = seen | {one.concept} if len(seen) < 11 else set()
        click_type = next(remaining_types)


def _is_clear(target: Mask) -> bool:
    """Whether the object is neither small nor large, and does not touch the frame."""
    box = find_bounding_box(target)
    height, width = target.shape
    whole = box is not None and box.top > 0 and box.left > 0 and box.bottom < height and box.right < width
    return whole and _SMALLEST_OBJECT <= float(target.mean()) <= _LARGEST_OBJECT
