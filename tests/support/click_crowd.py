"""A crowd with known ways that takes part in a study of clicks, through the store alone."""

import math
import sqlite3
from contextlib import closing
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import distance_transform_edt

from hardlook.collect.store.records import BatchRules, NewAnswer
from hardlook.collect.store.store import Store
from hardlook.collect.study.clicks import make_click_study
from hardlook.collect.study.pictures import read_mask
from hardlook.collect.study.settings import StudySettings
from hardlook.collect.study.validity import ClickValidator
from hardlook.data.object_instances import list_instances
from hardlook.world.layouts import write_world

SIZE = (96, 72)


def world_study(folder, scenes=4, **settings):
    """A study on scenes of the planted world that lie in GrabCut's layout at `folder`/world."""
    if not (folder / "world").exists():
        write_world(folder / "world", layout="isegm", seed=3, count=scenes, size=SIZE)
    instances = list_instances({"grabcut": folder / "world"}).instances
    chosen = {"kind": "clicks", "title": "Scenes", "batch_size": 4, "training_tasks": 0, "target_answers": 11}
    return make_click_study(
        folder / "study",
        instances,
        StudySettings.model_validate(chosen | settings),
        describe=lambda instance: f"the object of {instance.full_stem}",
    )


def open_store(study):
    """The study's own database, ready."""
    store = Store.open(study.database)
    store.prepare(study.items, study.settings.devices, study.fingerprint)
    return store


@dataclass
class Person:
    """How somebody clicks: anywhere on the object, on its left part or deep in it, and far outside at some positions.

    `late` adds milliseconds to the plan; `batches` is how many they do, `leaves_after` how many answers of the last
    batch, if it is not done.
    """

    device: str = "pc"
    missed: tuple[int, ...] = ()
    part: str = ""
    reaction: float = 900.0
    late: float = 4.0
    early: int = 0
    shows: int = 0
    batches: int = 1
    leaves_after: int | None = None
    pointer: str = ""


def take_part(study, store, person, rng, now=1000.0):
    """Let a person do their batches; the id."""
    validator, rules = ClickValidator(study), BatchRules.of(study.settings)
    pointer = person.pointer or {"pc": "mouse", "mobile": "touch"}[person.device]
    who = store.join(None, "en", now).id
    store.set_device(who, person.device, now)
    store.set_trained(who, now)
    for number in range(person.batches):
        batch = store.next_batch(who, rules, now)
        if batch is None:
            break
        last = number == person.batches - 1 and person.leaves_after is not None
        for trial in batch.trials[: person.leaves_after] if last else batch.trials:
            now += 7.0
            for _ in range(person.shows):
                store.show(who, trial.id, now - 6.0)
            task = study.by_id[trial.item.task]
            x, y = aimed(study, task, rng, person.part, trial.position in person.missed)
            validity = validator.validate(task.id, x, y)
            plan = study.settings.timings
            durations = {
                "image": 1000 * plan.image + person.late,
                "target": 1000 * plan.target_of(trial.item.mode) + person.late,
                "again": 1000 * plan.again + person.late,
                "frame": 16.7,
                "longest_frame": 17.1,
            }
            new = NewAnswer(
                f"key-{trial.id}",
                trial.id,
                x=x,
                y=y,
                inside=validity.inside,
                near=validity.near,
                early=person.early,
                reaction_ms=person.reaction + 10 * trial.position,
                durations=durations,
                circumstances={"pointer": pointer, "ratio": 1.0, "hidden": 1},
            )
            store.answer(who, new, study.settings.inside_needed, now)
    return who


def aimed(study, task, rng, part="", missed=False):
    """A place on the object or a part of it, or in the corner farthest from it."""
    mask = read_mask(study.file(task.mask))
    ys, xs = np.nonzero(mask)
    if missed:
        corners = [(x, y) for x in (0, task.width - 1) for y in (0, task.height - 1)]
        x, y = max(corners, key=lambda corner: np.hypot(xs - corner[0], ys - corner[1]).min())
    else:
        middle, depth = np.median(xs), distance_transform_edt(mask)[ys, xs]
        keep = {"": xs == xs, "left": xs <= middle, "deep": depth >= 0.6 * depth.max()}[part]
        place = rng.choice(np.flatnonzero(keep))
        x, y = xs[place], ys[place]
    return float(x + rng.random() * 0.99), float(y + rng.random() * 0.99)


def distance_to_mask(mask, x, y):
    """Pixels between the centres of the clicked pixel and of the nearest of the mask, looked at one by one."""
    column, row = math.floor(x), math.floor(y)
    return min(math.hypot(column - at, row - down) for down, at in zip(*np.nonzero(mask), strict=True))


def stored_rows(study, table):
    """All rows of a table as dicts, read past the store, in the order in which they came."""
    with closing(sqlite3.connect(study.path / "answers.sqlite")) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute(f"SELECT * FROM {table} ORDER BY rowid")]
