"""Recipes of semantic projections: rows of `recipes.csv`, by encoder and text encoder.

>>> recipe = find_projection_recipe("efficientnet-lite0", "glove")
>>> recipe.stage.optimiser, recipe.encoder_args
('adamw', {'layer': 'stride16+head', 'size': 320})
>>> change_projection_recipe(recipe, {"lr": "0.01", "hidden": 256, "encoder.size": "224"}).encoder_args["size"]
224
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from hardlook.errors import OptionError
from hardlook.training.recipes import (
    ANY,
    StageRecipe,
    change_stage,
    list_stage_settings,
    parse_options,
    parse_stage,
    parse_value,
    read_recipe_table,
)

DEFAULT_ENCODER, DEFAULT_TEXT = "efficientnet-lite0", "glove"
AS_BACKGROUND = ("ignored", "background")
_NUMBERS: Mapping[str, type] = {"hidden": int, "dropout": float, "cells": int, "balance": float}


@dataclass(frozen=True)
class ProjectionRecipe:
    """What a semantic projection is trained with.

    Cells of the maps of `encoder` learn to lie near the vectors that `text`, a text encoder, gives their words.
    `stage` has optimiser, rate, schedule, epochs and, as `batch`, the images of a step; of each image `cells` cells are
    drawn, 0 for all. `hidden` are units of a layer before the last one, 0 for none; `dropout` is of the features.
    A class counts by the number of its pixels to the power of -`balance`: 0 counts every pixel alike, 1 every class.
    Pixels of classes that are not to be trained on (`novel`) are ignored, or background.
    """

    encoder: str
    text: str
    stage: StageRecipe
    encoder_args: Mapping[str, Any] = field(default_factory=dict)
    text_args: Mapping[str, Any] = field(default_factory=dict)
    hidden: int = 0
    dropout: float = 0.0
    cells: int = 0
    balance: float = 0.0
    novel: str = "ignored"
    source: str = ""
    changed: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        checks = {
            "hidden": (self.hidden >= 0, "at least 0"),
            "dropout": (0 <= self.dropout < 1, "from 0 to below 1"),
            "cells": (self.cells >= 0, "at least 0"),
            "balance": (0 <= self.balance <= 1, "from 0 to 1"),
            "novel": (self.novel in AS_BACKGROUND, f"one of {', '.join(AS_BACKGROUND)}"),
        }
        for name, (is_valid, expected) in checks.items():
            if not is_valid:
                raise OptionError(f"{name} {getattr(self, name)!r}", remedy=f"{name} is {expected}")

    def to_json(self) -> dict[str, Any]:
        """The recipe as JSON values."""
        return asdict(self)


def find_projection_recipe(encoder: str = DEFAULT_ENCODER, text: str = DEFAULT_TEXT) -> ProjectionRecipe:
    """The recipe for an encoder and a text encoder: their own row, else one for any."""

    def fits(row: Mapping[str, str]) -> int:
        """How well a row fits; 0 where it is of others."""
        kinds = [(row["encoder"], encoder), (row["text"], text)]
        return 0 if any(given not in (wanted, ANY) for given, wanted in kinds) else 1 + sum(g != ANY for g, _ in kinds)

    row = max(read_rows(), key=fits)
    return ProjectionRecipe(
        encoder,
        text,
        parse_stage(row),
        encoder_args=parse_options(row["encoder_args"]),
        **{name: kind(row[name]) for name, kind in _NUMBERS.items()},
        novel=row["novel"],
        source=row["source"],
    )


def read_rows() -> list[dict[str, str]]:
    """The rows of the table."""
    return read_recipe_table("hardlook.training.projection", "recipes.csv")


def change_projection_recipe(recipe: ProjectionRecipe, given: Mapping[str, Any]) -> ProjectionRecipe:
    """The recipe with other values: `lr=0.01`, `hidden=256`; `encoder.NAME` and `text.NAME` are arguments of these."""
    stage_names = list_stage_settings(episodes=False)
    for key, value in given.items():
        scope, _, name = key.partition(".")
        changes: dict[str, Any]
        if name and scope in ("encoder", "text"):
            place = f"{scope}_args"
            changes = {place: {**getattr(recipe, place), name: parse_value(str(value))}}
        elif key in _NUMBERS:
            try:
                changes = {key: _NUMBERS[key](value)}
            except (ValueError, TypeError):
                raise OptionError(f"{key}={value}: not a number", remedy=f"such as {key}=0") from None
        elif key == "novel":
            changes = {key: str(value)}
        elif key in stage_names:
            changes = {"stage": change_stage(recipe.stage, key, value)}
        else:
            known = ", ".join(sorted({*_NUMBERS, "novel", *stage_names}))
            raise OptionError(f"a recipe has no {key!r}", remedy=f"one of {known}, encoder.NAME, text.NAME")
        recipe = replace(recipe, **changes)
    return replace(recipe, changed=(*recipe.changed, *given))
