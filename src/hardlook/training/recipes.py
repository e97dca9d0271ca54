"""Recipes: what a method is trained with, one row of `recipes.csv` per method, backbone and stage.

>>> recipe = find_recipe("protonet", "conv64f", ("episodes",))
>>> recipe.stages[0].optimiser, recipe.stages[0].lr, recipe.ways
('adam', 0.001, 5)
>>> changed = change_recipe(recipe, {"lr": "0.01", "shots": 5})
>>> changed.stages[0].lr, changed.shots, changed.changed
(0.01, 5, ('lr', 'shots'))
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from importlib.resources import files
from typing import Any

from hardlook.errors import OptionError
from hardlook.training.schedules import Schedule

ANY = "*"
OPTIMISERS = ("sgd", "adam", "adamw")
GENERAL_SOURCE = "hardlook's defaults: no published recipe in the table"


@dataclass(frozen=True)
class StageRecipe:
    """One stage of a training: on few-shot tasks (`episodes`) or on labelled batches (`classes`, `distillation`).

    `lr` is the learning rate, `part_lr` that of parameters whose names begin with a key. A step of `episodes` has
    `tasks` tasks, an epoch `episodes` tasks; a step of the others has `batch` images, an epoch all images once. `clip`
    bounds the norm of the gradient and `ema` is the decay of the weights' moving average, 0 for neither. `accumulate`
    splits a step into so many backward passes.
    """

    stage: str = "episodes"
    optimiser: str = "adam"
    lr: float = 1e-3
    momentum: float = 0.0
    nesterov: bool = False
    weight_decay: float = 0.0
    betas: tuple[float, ...] = (0.9, 0.999)
    schedule: Schedule = field(default_factory=Schedule)
    epochs: int = 100
    episodes: int = 2000
    tasks: int = 1
    batch: int = 128
    clip: float = 0.0
    ema: float = 0.0
    accumulate: int = 1
    part_lr: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        checks = {
            "optimiser": (self.optimiser in OPTIMISERS, f"one of {', '.join(OPTIMISERS)}"),
            "lr": (0 < self.lr < math.inf, "above 0 and finite"),
            "momentum": (0 <= self.momentum < 1, "from 0 to below 1"),
            "weight_decay": (0 <= self.weight_decay < math.inf, "at least 0 and finite"),
            "epochs": (self.epochs >= 1, "at least 1"),
            "episodes": (self.episodes >= 1, "at least 1"),
            "tasks": (self.tasks >= 1, "at least 1"),
            "batch": (self.batch >= 1, "at least 1"),
            "clip": (self.clip >= 0, "at least 0"),
            "betas": (len(self.betas) == 2 and 0 <= min(self.betas) <= max(self.betas) < 1, "two, from 0 to below 1"),
            "ema": (0 <= self.ema < 1, "from 0 to below 1"),
            "accumulate": (self.accumulate >= 1, "at least 1"),
        }
        for name, (is_valid, expected) in checks.items():
            if not is_valid:
                raise OptionError(f"{name} {getattr(self, name)!r}", remedy=f"{name} is {expected}")
        parts = self.tasks if self.stage == "episodes" else self.batch
        if parts % self.accumulate:
            what = (
                f"a step of {parts} {'tasks' if self.stage == 'episodes' else 'images'} has no {self.accumulate} parts"
            )
            raise OptionError(what, remedy="accumulate divides tasks and batch")


@dataclass(frozen=True)
class Recipe:
    """The stages of a training, the shape of its tasks, the method's own options, and where all this is from.

    `views` is how many times an image is augmented in a step on classes, which its method says. `shares` are the parts
    of a budget that the stages have; without them it is shared as the stages' epochs are.
    """

    method: str
    backbone: str
    stages: tuple[StageRecipe, ...]
    ways: int = 5
    shots: int = 1
    queries: int = 15
    augment: bool = True
    views: int = 1
    shares: tuple[int, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    backbone_options: Mapping[str, Any] = field(default_factory=dict)
    source: str = GENERAL_SOURCE
    changed: tuple[str, ...] = ()

    def images_per_step(self, stage: StageRecipe) -> int:
        """Images that a step of the stage trains on; each view of an image counts."""
        return (
            stage.tasks * self.ways * (self.shots + self.queries)
            if stage.stage == "episodes"
            else stage.batch * self.views
        )

    def to_json(self) -> dict[str, Any]:
        """The recipe as JSON values; without shares they are left out, as trainings of earlier versions have none."""
        values = asdict(self)
        if not self.shares:
            del values["shares"]
        return values


def find_recipe(method: str, backbone: str, stages: Sequence[str]) -> Recipe:
    """The recipe of a method on a backbone: its own rows, else those for any backbone, else the defaults."""
    rows = [row for row in read_recipes() if row["method"] == method]
    found = []
    for stage in stages:
        fitting = [row for row in rows if row["stage"] == stage]
        best = next((row for row in fitting if row["backbone"] == backbone), None)
        found.append(best or next((row for row in fitting if row["backbone"] == ANY), {"stage": stage}))
    last = found[-1]
    recipe = Recipe(method, backbone, tuple(map(parse_stage, found)))
    sources = list(dict.fromkeys(row.get("source") or GENERAL_SOURCE for row in found))
    common: dict[str, Any] = {name: int(last[name]) for name in ("ways", "shots", "queries") if last.get(name)}
    return replace(
        recipe,
        **common,
        augment=last.get("augment", "yes") != "no",
        options=parse_options(last.get("options", "")),
        backbone_options=parse_options(last.get("backbone_options", "")),
        source="; ".join(sources),
    )


def read_recipes() -> list[dict[str, str]]:
    """The rows of `recipes.csv`."""
    return read_recipe_table("hardlook.training", "recipes.csv")


def read_recipe_table(package: str, file: str) -> list[dict[str, str]]:
    """The rows of a CSV file in a package."""
    text = files(package).joinpath(file).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


_SCHEDULE = {"schedule": "kind", "gamma": "gamma", "every": "every", "milestones": "milestones", "warm_up": "warm_up"}
_COMMON = ("ways", "shots", "queries", "augment", "shares")


def list_stage_settings(*, episodes: bool = True) -> set[str]:
    """The settings of a stage that `change_stage` changes; without `episodes`, none of those of tasks.

    >>> sorted(list_stage_settings() - list_stage_settings(episodes=False))
    ['episodes', 'tasks']
    """
    fixed = {"stage", "schedule", "part_lr"} if episodes else {"stage", "schedule", "part_lr", "tasks", "episodes"}
    return {one.name for one in fields(StageRecipe)} - fixed | set(_SCHEDULE)


def change_recipe(recipe: Recipe, given: Mapping[str, Any]) -> Recipe:
    """The recipe with other values: `lr=0.01` of all stages, `classes.lr=0.1` of one, `option.NAME` of the method."""
    stage_names = list_stage_settings()
    for key, value in given.items():
        scope, _, name = key.rpartition(".")
        if scope in ("option", "backbone"):
            place = "options" if scope == "option" else "backbone_options"
            inner: dict[str, Any] = {place: {**getattr(recipe, place), name: parse_value(str(value))}}
            recipe = replace(recipe, **inner)
        elif key in _COMMON:
            recipe = replace(recipe, **{key: _convert(key, value, getattr(recipe, key))})
        elif name in stage_names and scope in ("", *(stage.stage for stage in recipe.stages)):
            changed = [change_stage(one, name, value) if scope in ("", one.stage) else one for one in recipe.stages]
            recipe = replace(recipe, stages=tuple(changed))
        else:
            known = ", ".join(sorted({*_COMMON, *stage_names}))
            raise OptionError(
                f"a recipe has no {key!r}", remedy=f"one of {known}, STAGE.NAME, option.NAME, backbone.NAME"
            )
    if recipe.shares and (len(recipe.shares) != len(recipe.stages) or min(recipe.shares) < 1):
        what = f"shares {','.join(map(str, recipe.shares))} for {len(recipe.stages)} stages of {recipe.method}"
        equal = ",".join("1" for _ in recipe.stages)
        raise OptionError(what, remedy=f"a whole number above 0 for each stage, such as shares={equal}")
    if min(recipe.ways - 1, recipe.shots, recipe.queries) < 1:
        raise OptionError("tasks have at least 2 ways, 1 shot and 1 query", remedy="change ways, shots or queries")
    return replace(recipe, changed=(*recipe.changed, *given))


def change_stage(stage: StageRecipe, name: str, value: Any) -> StageRecipe:
    """The stage with another value of one of its settings, or of its schedule's."""
    if name in _SCHEDULE:
        inner = _SCHEDULE[name]
        return replace(
            stage, schedule=replace(stage.schedule, **{inner: _convert(name, value, getattr(stage.schedule, inner))})
        )
    return replace(stage, **{name: _convert(name, value, getattr(stage, name))})


def _convert(name: str, value: Any, now: Any) -> Any:
    """The value in the type of the one that it replaces."""
    try:
        if isinstance(now, bool):
            return value if isinstance(value, bool) else {"yes": True, "true": True, "no": False, "false": False}[value]
        if isinstance(now, tuple):
            parts = value.replace(",", " ").split() if isinstance(value, str) else value
            return tuple(_to_number(part, float if name == "betas" else int) for part in parts)
        return _to_number(value, type(now)) if isinstance(now, int | float) else type(now)(value)
    except (ValueError, TypeError, KeyError):
        what = f"{name}={value}: not a value like {now!r}"
        raise OptionError(what, remedy=f"give a {type(now).__name__}") from None


def _to_number(value: Any, kind: type[int | float]) -> int | float:
    """The value as such a number; a `ValueError` where that would change it."""
    number = kind(value)
    if isinstance(value, bool) or (not isinstance(value, str) and number != value and value == value):
        raise ValueError(value)
    return number


def parse_stage(row: Mapping[str, str]) -> StageRecipe:
    """The stage that a row of a table describes; cells that are empty leave the default."""
    stage = StageRecipe(stage=row["stage"])
    wanted = (
        "optimiser",
        "lr",
        "momentum",
        "nesterov",
        "weight_decay",
        "betas",
        "epochs",
        "episodes",
        "tasks",
        "batch",
    )
    # The schedule's kind comes after the numbers that it needs.
    for name in (*wanted, "clip", "ema", "gamma", "every", "milestones", "warm_up", "schedule"):
        if row.get(name):
            stage = change_stage(stage, name, row[name])
    return replace(stage, part_lr={key: float(value) for key, value in parse_options(row.get("part_lr", "")).items()})


def parse_options(text: str) -> dict[str, Any]:
    """`a=1; b=x` as a mapping."""
    pairs = (part.strip().partition("=")[::2] for part in text.split(";") if part.strip())
    return {key: parse_value(value) for key, value in pairs}


def parse_value(text: str) -> Any:
    """A truth value, a number, or the text itself."""
    if text in ("yes", "true", "True", "no", "false", "False"):
        return text in ("yes", "true", "True")
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


@dataclass(frozen=True)
class Budget:
    """A limit of a whole training, shared by its stages: so many images, or so many seconds."""

    images: int = 0
    seconds: float = 0.0

    def __bool__(self) -> bool:
        return bool(self.images or self.seconds)


_UNITS = {"s": 1, "sec": 1, "min": 60, "h": 3600}


def parse_budget(text: str) -> Budget:
    """A budget from a text; none from an empty one.

    >>> parse_budget("10min"), parse_budget("300000images")
    (Budget(images=0, seconds=600.0), Budget(images=300000, seconds=0.0))
    """
    if not text:
        return Budget()
    found = re.fullmatch(r"(\d[\d_]*(?:\.\d+)?)\s*(images|s|sec|min|h)", text.strip())
    amount = float(found[1].replace("_", "")) if found else 0.0
    if found is None or amount <= 0 or (found[2] == "images" and not amount.is_integer()):
        raise OptionError(f"--budget {text}: not a budget", remedy="such as 10min, 2h or 300000images")
    return Budget(images=int(amount)) if found[2] == "images" else Budget(seconds=amount * _UNITS[found[2]])


@dataclass(frozen=True)
class StagePlan:
    """A stage with its number of steps; its first step has the number `first` in the whole training."""

    recipe: StageRecipe
    first: int
    steps: int
    images: int

    @property
    def last(self) -> int:
        """The number of the first step after the stage."""
        return self.first + self.steps


def plan_stages(recipe: Recipe, training_images: int, budget_images: int = 0) -> tuple[StagePlan, ...]:
    """The steps of every stage: as many as the recipe says, or parts of a budget of images.

    The parts are in the proportion of the recipe's `shares`, or in that of its images without them. A stage has one
    step at least.
    """
    sizes = [recipe.images_per_step(stage) for stage in recipe.stages]
    epochs = [
        max(1, stage.episodes // stage.tasks) if stage.stage == "episodes" else -(-training_images // stage.batch)
        for stage in recipe.stages
    ]
    steps = [stage.epochs * count for stage, count in zip(recipe.stages, epochs, strict=True)]
    if budget_images:
        shares = recipe.shares or [count * size for count, size in zip(steps, sizes, strict=True)]
        steps = [
            max(1, round(share / size * (budget_images / sum(shares))))
            for share, size in zip(shares, sizes, strict=True)
        ]
    firsts = [sum(steps[:place]) for place in range(len(steps))]
    return tuple(
        StagePlan(stage, first, count, size)
        for stage, first, count, size in zip(recipe.stages, firsts, steps, sizes, strict=True)
    )


def plan_stage(stage: StageRecipe, count: int, budget_images: int = 0) -> tuple[StagePlan, ...]:
    """The steps of a training with one stage: its epochs over `count` images, or a budget of images.

    >>> [plan_stage(StageRecipe(epochs=3, batch=4), 10, budget)[0].steps for budget in (0, 100, 1)]
    [9, 25, 1]
    """
    steps = max(1, round(budget_images / stage.batch)) if budget_images else stage.epochs * -(-count // stage.batch)
    return (StagePlan(stage, 0, steps, stage.batch),)
