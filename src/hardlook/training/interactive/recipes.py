"""Recipes of interactive segmentation networks: rows of `recipes.csv`, by network and backbone.

>>> recipe = find_interactive_recipe("ritm", "hrnet18s")
>>> recipe.stage.lr, recipe.stage.batch, recipe.most_clicks
(0.0005, 32, 4)
>>> change_interactive_recipe(recipe, {"lr": "0.01", "size": 128, "option.norm_radius": 3}).options
{'norm_radius': 3}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from hardlook.errors import OptionError
from hardlook.training.recipes import (
    StageRecipe,
    change_stage,
    list_stage_settings,
    parse_stage,
    parse_value,
    read_recipe_table,
)

_WHOLE = ("size", "most_clicks", "least_area")
_SHARES = ("backbone_rate", "zoomed", "colours")
LEAST_SIZE = 32


@dataclass(frozen=True)
class InteractiveRecipe:
    """What an interactive network is trained with.

    `stage` has optimiser, rate, schedule, epochs and, as `batch`, the objects of a step. An object is shown in a square
    of `size` pixels: with probability `zoomed` a crop around it, else about the whole image. It is clicked 1 to
    `most_clicks` times, all objects of a step as often. Objects have `least_area` pixels, counted for a longer side of
    500. `backbone_rate` is the factor of the rate for the backbone, `colours` the probability that brightness and
    contrast change, and that colours shift.
    """

    network: str
    backbone: str
    stage: StageRecipe
    size: int = 320
    most_clicks: int = 4
    least_area: int = 300
    backbone_rate: float = 0.1
    zoomed: float = 0.5
    colours: float = 0.75
    options: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    changed: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.size < LEAST_SIZE or self.most_clicks < 1 or self.least_area < 0:
            what = f"size {self.size}, most_clicks {self.most_clicks}, least_area {self.least_area}"
            remedy = f"size is at least {LEAST_SIZE}, most_clicks at least 1, least_area at least 0"
            raise OptionError(what, remedy=remedy)
        for name in _SHARES:
            if not 0 <= getattr(self, name) <= 1:
                raise OptionError(f"{name} {getattr(self, name)}", remedy=f"{name} is from 0 to 1")

    def to_json(self) -> dict[str, Any]:
        """The recipe as JSON values."""
        return asdict(self)


def list_backbones(network: str = "ritm") -> tuple[str, ...]:
    """The backbones that a network has recipes for."""
    return tuple(row["backbone"] for row in read_rows() if row["network"] == network)


def find_interactive_recipe(network: str, backbone: str) -> InteractiveRecipe:
    """The recipe of a network on a backbone."""
    row = next((one for one in read_rows() if (one["network"], one["backbone"]) == (network, backbone)), None)
    if row is None:
        remedy = f"one of {', '.join(list_backbones(network))}"
        raise OptionError(f"there is no recipe for {network} on {backbone!r}", remedy=remedy)
    numbers: dict[str, Any] = {name: int(row[name]) for name in _WHOLE}
    rate = float(row["backbone_rate"])
    return InteractiveRecipe(network, backbone, parse_stage(row), **numbers, backbone_rate=rate, source=row["source"])


def read_rows() -> list[dict[str, str]]:
    """The rows of the table."""
    return read_recipe_table("hardlook.training.interactive", "recipes.csv")


def change_interactive_recipe(recipe: InteractiveRecipe, given: Mapping[str, Any]) -> InteractiveRecipe:
    """The recipe with other values, such as `lr=0.01`, `size=128` or `option.NAME=...` of the network."""
    stage_names = list_stage_settings(episodes=False)
    for key, value in given.items():
        scope, _, name = key.rpartition(".")
        if scope == "option":
            recipe = replace(recipe, options={**recipe.options, name: parse_value(str(value))})
        elif key in (*_WHOLE, *_SHARES):
            kind, words = (int, "a whole number") if key in _WHOLE else (float, "a number")
            try:
                number: Any = kind(value)
            except (TypeError, ValueError):
                raise OptionError(f"{key}={value}: not {words}", remedy=f"such as {key}=1") from None
            changes: dict[str, Any] = {key: number}
            recipe = replace(recipe, **changes)
        elif key in stage_names:
            recipe = replace(recipe, stage=change_stage(recipe.stage, key, value))
        else:
            known = ", ".join(sorted({*_WHOLE, *_SHARES, *stage_names}))
            raise OptionError(f"a recipe has no {key!r}", remedy=f"one of {known}, option.NAME")
    return replace(recipe, changed=(*recipe.changed, *given))
