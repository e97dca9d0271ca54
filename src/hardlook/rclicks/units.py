"""RClicks' units: one object of one image, with the first clicks that people made on it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hardlook.data.click_file import ClickTable, read_clicks
from hardlook.data.object_instances import ObjectInstance, list_instances, normalize_dataset_name, scale_points
from hardlook.data.stored_files.sources import HF_DATASET, OBJECT, list_source_files
from hardlook.errors import DataError, OptionError
from hardlook.harness.benchmark import Unit, UnitList
from hardlook.harness.scorecard import LeftOut
from hardlook.models.planted.click_models import user_map
from hardlook.rclicks.click_models import build_click_model
from hardlook.rclicks.clicks.courses import Instance
from hardlook.rclicks.options import NO_USERS, PLANTED_USERS, RClicksOptions
from hardlook.rclicks.user_clicks.loading import note_kept_clicks
from hardlook.rclicks.user_clicks.planted_users import draw_clicks
from hardlook.world.layouts import ISEGM_IGNORE, make_trimap
from hardlook.world.planted import PlantedWorld

PLANTED = "planted"
_SCENE = re.compile(f"{PLANTED}/([0-9]{{6,18}})")
PEOPLE = 24  # simulated people per instance
SHOWN = 5  # names of what is left out
Points = NDArray[np.float64]


@dataclass(frozen=True)
class InstanceUnit:
    """One instance: where it is read from, people's clicks (n, 2) x, y and, once prepared, its arrays."""

    options: RClicksOptions
    dataset: str
    name: str
    image: str
    source: ObjectInstance | None = None
    scene: tuple[PlantedWorld, int] | None = None
    simulated_people: bool = False
    first_of_image: bool = True
    people: Points | None = field(default=None, repr=False)
    mobile: NDArray[np.bool_] | None = field(default=None, repr=False)
    instance: Instance | None = field(default=None, repr=False)


def list_units(options: RClicksOptions) -> UnitList:
    """Every instance, and what was left out.

    >>> [unit.id for unit in list_units(RClicksOptions(scenes=2))]
    ['planted/000001', 'planted/000002']
    """
    simulated = options.users == PLANTED_USERS
    if options.planted:
        check_data_options(options)
        world = planted_world(options)
        return UnitList(_make_scene(options, world, index) for index in range(len(world)))
    listed = list_instances(
        options.data,
        at_most=options.at_most,
        seed=options.seed,
        min_area=options.min_area,
        split=options.split,
        columns=options.columns,
    )
    instances = [
        InstanceUnit(options, one.dataset, one.full_stem, one.image_key, source=one, simulated_people=simulated)
        for one in listed.instances
    ]
    left_out = [LeftOut(**asdict(note)) for note in listed.left_out]
    if options.users not in (PLANTED_USERS, NO_USERS):
        instances, notes = join_user_clicks(instances, read_clicks(Path(options.users).expanduser()))
        left_out += notes
    firsts = {(one.dataset, one.image): one for one in reversed(instances)}
    instances = [replace(one, first_of_image=firsts[one.dataset, one.image] is one) for one in instances]
    return UnitList(map(_make_unit, instances), left_out)


def find_units(options: RClicksOptions, ids: Collection[str]) -> Mapping[str, Unit] | None:
    """The units with these ids, where they are scenes of the planted world; None for other data."""
    if not options.planted:
        return None
    world = planted_world(options)
    numbers = {name: int(digits[1]) for name in ids if (digits := _SCENE.fullmatch(name))}
    found = (_make_scene(options, world, number - 1) for number in numbers.values() if 0 < number <= len(world))
    # `planted/0000001` is not the name of a scene, though scene 1 exists.
    return {unit.id: unit for unit in found if unit.id in numbers}


def check_data_options(options: RClicksOptions) -> None:
    """An `OptionError` for options that need --data."""
    given = {
        "--at-most": options.at_most is not None,
        "--min-area": options.min_area > 0,
        "--split": options.split is not None,
        "--columns": bool(options.columns),
        f"--user-clicks {options.users}": options.users not in (PLANTED_USERS, NO_USERS),
    }
    if named := [name for name, is_given in given.items() if is_given]:
        remedy = "give --data, or leave these out: the planted world has --scenes and people of its own"
        raise OptionError(f"{', '.join(named)} without data", remedy=remedy)


def planted_world(options: RClicksOptions) -> PlantedWorld:
    """The planted world of these options."""
    return PlantedWorld(seed=options.seed, count=options.scenes)


def list_sources(options: RClicksOptions) -> Mapping[str, Path | str]:
    """The datasets or the planted world, people's clicks, and the click model."""
    given: dict[str, Path | str] = {} if options.data else {"planted world": planted_world(options).fingerprint()}
    for name, path in options.data.items():
        given.update(list_source_files(name, path, options.split) if name in (HF_DATASET, OBJECT) else {name: path})
    if options.users not in (PLANTED_USERS, NO_USERS):
        given["user_clicks"] = Path(options.users).expanduser()
    return {**given, "click model": build_click_model(options.clicks, options.clicks_args).whole_fingerprint()}


def join_user_clicks(units: Sequence[InstanceUnit], table: ClickTable) -> tuple[list[InstanceUnit], list[LeftOut]]:
    """The units with the clicks on them, and what of the file has no instance."""
    first = table.first()
    joined: dict[str, InstanceUnit] = {f"{unit.dataset}/{unit.name}": unit for unit in units}
    unmatched: list[str] = []
    for dataset in sorted({unit.dataset for unit in units}):
        for stem, clicks in first.for_dataset(dataset).by_full_stem().items():
            unit = joined.get(f"{dataset}/{stem}")
            if unit is None:
                unmatched.append(f"{dataset}/{stem}")
                continue
            assert unit.source is not None
            points = scale_points(clicks.points, clicks.size, unit.source.size(), unit=f"{dataset}/{stem}")
            joined[f"{dataset}/{stem}"] = replace(unit, people=points, mobile=clicks.devices == "mobile")
    if not any(unit.people is not None for unit in joined.values()):
        datasets = ", ".join(first.datasets()) or "none"
        given = ", ".join(sorted({unit.dataset for unit in units}))
        what = f"no first click of the file is on an instance of {given}"
        raise DataError(what, remedy=f"the file's datasets are: {datasets}; its stems are names of images")
    return list(joined.values()), _left_out_clicks(units, table, unmatched)


def _left_out_clicks(units: Sequence[InstanceUnit], table: ClickTable, unmatched: Sequence[str]) -> list[LeftOut]:
    notes = []
    if unmatched:
        why = "no instance of that name is in the data, or it was not drawn"
        notes.append(LeftOut("stems of people's clicks", len(unmatched), why, tuple(unmatched[:SHOWN])))
    here = {unit.dataset for unit in units}
    absent = [name for name in table.first().datasets() if normalize_dataset_name(name) not in here]
    if absent:
        notes.append(LeftOut("datasets of people's clicks", len(absent), "not given as --data", tuple(absent)))
    if later := len(table) - len(table.first()):
        notes.append(LeftOut("people's clicks of later rounds (fn, fp)", later, "only first clicks are used here"))
    return [*notes, *note_kept_clicks(table)]


def prepare_unit(unit: Unit) -> Unit:
    """Read the image and the masks; let simulated people click."""
    payload: InstanceUnit = unit.payload
    instance = read_instance(payload)
    if payload.simulated_people:
        chance = user_map(instance.image, instance.target, instance.target, True)
        points = draw_clicks(chance, PEOPLE, key=(payload.dataset, payload.name), seed=payload.options.seed)
        payload = replace(payload, people=points.astype(np.float64), mobile=np.zeros(len(points), bool))
    return replace(unit, payload=replace(payload, instance=instance))


def read_instance(payload: InstanceUnit) -> Instance:
    """The arrays of an instance, from its files or its scene."""
    if payload.scene is not None:
        world, index = payload.scene
        rendered = world[index]
        band = make_trimap(rendered.target_mask) == ISEGM_IGNORE
        return Instance(payload.dataset, payload.name, rendered.image, rendered.target_mask, band)
    assert payload.source is not None
    target = payload.source.read_target()
    return Instance(payload.dataset, payload.name, payload.source.read(), target.mask, target.ignore)


def _make_scene(options: RClicksOptions, world: PlantedWorld, index: int) -> Unit:
    name, simulated = f"{index + 1:06d}", options.users == PLANTED_USERS
    return _make_unit(InstanceUnit(options, PLANTED, name, name, scene=(world, index), simulated_people=simulated))


def _make_unit(payload: InstanceUnit) -> Unit:
    return Unit(f"{payload.dataset}/{payload.name}", payload, group=f"{payload.dataset}/{payload.image}")
