"""Recipes of one-shot segmentation networks: rows of `one_shot_recipes.csv`, by network and reading.

>>> recipe = find_one_shot_recipe("pfenet")
>>> recipe.stage.lr, recipe.size, find_one_shot_recipe("pfenet", reading="released").stage.lr
(0.0025, 473, 0.025)
>>> change_one_shot_recipe(recipe, {"lr": "0.01", "size": 321}).stage.lr
0.01
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from hardlook.errors import OptionError
from hardlook.training.images.segmentation_images import AUGMENTATIONS, FITS
from hardlook.training.recipes import (
    StagePlan,
    StageRecipe,
    change_stage,
    list_stage_settings,
    parse_stage,
    parse_value,
    read_recipe_table,
)

DRAWN_BY = ("images", "classes", "lines")
AS_BACKGROUND = ("background", "ignored")
FEATURES = ("computed", "cached")
READINGS = ("paper", "released")
DEFAULT_BACKBONE = "resnet50-keras"
_COLUMNS = {"fit": FITS, "augment": AUGMENTATIONS, "drawn_by": DRAWN_BY, "void": AS_BACKGROUND, "novel": AS_BACKGROUND}
_TEXTS = {**_COLUMNS, "features": FEATURES}
_NUMBERS = ("size", "shots", "least_area")


@dataclass(frozen=True)
class OneShotRecipe:
    """What a one-shot network is trained with.

    `stage` has optimiser, rate, schedule, epochs and, as `batch`, the pairs or images of a step. Images of `size`
    pixels are made to fit as `fit` says and changed as `augment` says. `drawn_by` is what an epoch goes through: all
    `images` (a class of each is drawn), all `lines` of an image and one of its classes, or random `classes`. Pixels
    without label (`void`) and of test classes (`novel`) are background or ignored. A query image has a training class
    of `least_area` pixels, counted for a longer side of 500. `features` of a frozen backbone are `computed` in every
    step, or once for each image and then `cached` in memory, which needs images that nothing augments.
    """

    network: str
    backbone: str
    stage: StageRecipe
    reading: str = "paper"
    size: int = 321
    shots: int = 1
    fit: str = "squash"
    augment: str = "none"
    drawn_by: str = "classes"
    void: str = "ignored"
    novel: str = "background"
    least_area: int = 0
    features: str = "computed"
    options: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    changed: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, known in _TEXTS.items():
            if getattr(self, name) not in known:
                raise OptionError(f"{name} {getattr(self, name)!r}", remedy=f"{name} is one of {', '.join(known)}")
        if self.size % 8 != 1 and self.fit == "letterbox":
            raise OptionError(f"size {self.size}", remedy="one more than a multiple of 8, such as 321 or 473")
        if self.features == "cached" and self.augment != "none":
            what = f"features=cached with augment={self.augment}: an augmented image has other features in every step"
            raise OptionError(what, remedy="augment=none, or features=computed")
        if min(self.size, self.shots) < 1 or self.least_area < 0:
            raise OptionError("size and shots are at least 1, least_area is at least 0", remedy="change them")

    @property
    def images_per_step(self) -> int:
        """Images that a step trains on, supports included."""
        return self.stage.batch * (1 if self.stage.stage == "classes" else 1 + self.shots)

    def to_json(self) -> dict[str, Any]:
        """The recipe as JSON values."""
        return asdict(self)


def find_one_shot_recipe(network: str, backbone: str = DEFAULT_BACKBONE, *, reading: str = "paper") -> OneShotRecipe:
    """The recipe of a network; one that has no `released` row of its own is trained as its paper says."""
    if reading not in READINGS:
        raise OptionError(f"there is no reading {reading!r}", remedy=f"one of {', '.join(READINGS)}")
    rows = {row["reading"]: row for row in read_rows() if row["network"] == network}
    if not rows:
        known = ", ".join(dict.fromkeys(row["network"] for row in read_rows()))
        raise OptionError(f"there is no recipe for {network!r}", remedy=f"one of {known}")
    row = rows.get(reading, rows["paper"])
    texts: dict[str, Any] = {name: row[name] for name in _COLUMNS}
    numbers: dict[str, Any] = {name: int(row[name]) for name in ("size", "least_area")}
    return OneShotRecipe(network, backbone, parse_stage(row), reading, **numbers, **texts, source=row["source"])


def read_rows() -> list[dict[str, str]]:
    """The rows of the table."""
    return read_recipe_table("hardlook.training", "one_shot_recipes.csv")


def change_one_shot_recipe(recipe: OneShotRecipe, given: Mapping[str, Any]) -> OneShotRecipe:
    """The recipe with other values, such as `lr=0.01`, `size=321` or `option.NAME=...` of the network."""
    stage_names = list_stage_settings(episodes=False)
    for key, value in given.items():
        scope, _, name = key.rpartition(".")
        if scope == "option":
            recipe = replace(recipe, options={**recipe.options, name: parse_value(str(value))})
        elif key in _TEXTS:
            changes: dict[str, Any] = {key: str(value)}
            recipe = replace(recipe, **changes)
        elif key in _NUMBERS:
            try:
                changes = {key: int(value)}
                recipe = replace(recipe, **changes)
            except ValueError:
                raise OptionError(f"{key}={value}: not a whole number", remedy=f"such as {key}=321") from None
        elif key in stage_names:
            recipe = replace(recipe, stage=change_stage(recipe.stage, key, value))
        else:
            known = ", ".join(sorted({*_TEXTS, *_NUMBERS, *stage_names}))
            raise OptionError(f"a recipe has no {key!r}", remedy=f"one of {known}, option.NAME")
    return replace(recipe, changed=(*recipe.changed, *given))


def plan_training(recipe: OneShotRecipe, per_epoch: int, budget_images: int = 0) -> tuple[StagePlan, ...]:
    """The steps of the training: the recipe's epochs over `per_epoch` images or lines, or a budget of images."""
    steps = recipe.stage.epochs * -(-per_epoch // recipe.stage.batch)
    if budget_images:
        steps = max(1, round(budget_images / recipe.images_per_step))
    return (StagePlan(recipe.stage, 0, steps, recipe.images_per_step),)
