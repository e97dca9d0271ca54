"""RClicks' units: one object of one image, with the first clicks that people made on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hardlook.benchmarks.rclicks.options import NO_USERS, PLANTED_USERS, RClicksOptions
from hardlook.clicks.instance import Instance
from hardlook.clicks.planted_users import draw_clicks
from hardlook.contract.benchmark import Unit
from hardlook.contract.scorecard import LeftOut
from hardlook.data.object_instances import ObjectInstance, list_instances
from hardlook.models.planted.users import user_map
from hardlook.world.layouts.isegm import IGNORE, trimap
from hardlook.world.planted import PlantedWorld

PLANTED = "planted"
PEOPLE = 24  # simulated people an instance
Points = NDArray[np.float64]


@dataclass(frozen=True)
class CourseSettings:
    """How all instances of a run are clicked on."""

    clicks: str
    clicks_args: str
    groups: int
    rounds: int
    group_rule: str
    perfect: str
    halves: bool
    prompts_a_call: int
    seed: int


@dataclass(frozen=True)
class InstanceUnit:
    """One instance: where it is found, people's clicks (n, 2) x, y and, once prepared, its arrays."""

    settings: CourseSettings
    dataset: str
    name: str
    image: str
    source: ObjectInstance | None = None
    scene: tuple[PlantedWorld, int] | None = None
    simulated_people: bool = False
    people: Points | None = field(default=None, repr=False)
    mobile: NDArray[np.bool_] | None = field(default=None, repr=False)
    instance: Instance | None = field(default=None, repr=False)


def world_of(options: RClicksOptions) -> PlantedWorld:
    """The planted world that these options mean."""
    return PlantedWorld(seed=options.seed, count=options.scenes)


def sources_of(options: RClicksOptions) -> Mapping[str, Path | str]:
    """The datasets, or the planted world, and people's clicks."""
    given: dict[str, Path | str] = dict(options.data) or {"planted world": world_of(options).fingerprint()}
    if options.users not in (PLANTED_USERS, NO_USERS):
        given["user_clicks"] = Path(options.users).expanduser()
    return given


def settings_of(options: RClicksOptions) -> CourseSettings:
    """What the options say of all instances."""
    return CourseSettings(
        options.clicks,
        options.clicks_args,
        options.groups,
        options.rounds,
        options.group_rule,
        options.perfect,
        options.halves,
        options.prompts_a_call,
        options.seed,
    )


def planted_instances(options: RClicksOptions) -> list[InstanceUnit]:
    """The subject of every scene of the planted world."""
    world, settings = world_of(options), settings_of(options)
    names = [f"{index + 1:06d}" for index in range(len(world))]
    people = options.users == PLANTED_USERS
    return [
        InstanceUnit(settings, PLANTED, name, name, scene=(world, index), simulated_people=people)
        for index, name in enumerate(names)
    ]


def stored_instances(options: RClicksOptions) -> tuple[list[InstanceUnit], list[LeftOut]]:
    """Every instance of every dataset, and what was left out."""
    listed = list_instances(
        options.data, at_most=options.at_most, seed=options.seed, min_area=options.min_area, split=options.split
    )
    settings, people = settings_of(options), options.users == PLANTED_USERS
    units = [
        InstanceUnit(settings, one.dataset, one.full_stem, one.image_key, source=one, simulated_people=people)
        for one in listed.instances
    ]
    return units, [LeftOut(note.what, note.count, note.why, note.examples) for note in listed.left_out]


def prepare(unit: Unit) -> Unit:
    """Read the image and the masks; let simulated people click."""
    payload: InstanceUnit = unit.payload
    instance = read_instance(payload)
    if payload.simulated_people:
        chance = user_map(instance.image, instance.target, instance.target, True)
        points = draw_clicks(chance, PEOPLE, key=(payload.dataset, payload.name), seed=payload.settings.seed)
        payload = replace(payload, people=points.astype(np.float64), mobile=np.zeros(len(points), bool))
    return replace(unit, payload=replace(payload, instance=instance))


def read_instance(payload: InstanceUnit) -> Instance:
    """The arrays of an instance, from its files or its scene."""
    if payload.scene is not None:
        world, index = payload.scene
        rendered = world[index]
        band = trimap(rendered.target_mask) == IGNORE
        return Instance(payload.dataset, payload.name, rendered.image, rendered.target_mask, band)
    assert payload.source is not None
    target = payload.source.read_target()
    return Instance(payload.dataset, payload.name, payload.source.read(), target.mask, target.ignore)
