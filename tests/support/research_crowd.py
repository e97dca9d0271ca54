"""Studies of rectangles, and people who click on them in known ways, through the store alone."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from hardlook.collect.store.records import BatchRules, NewAnswer
from hardlook.collect.store.store import Store
from hardlook.collect.study.folder import make_study
from hardlook.collect.study.pictures import write_picture
from hardlook.collect.study.settings import StudySettings
from hardlook.collect.study.tasks import ClickTask
from hardlook.collect.study.validity import ClickValidator

WIDTH, HEIGHT = 96, 72


@dataclass(frozen=True)
class Person:
    """Clicks by turns as `ways` says: i inside, n near, o outside; `leaves` after so many answers of the last batch."""

    device: str = "pc"
    ways: str = "i"
    reaction: float = 900.0
    late: float = 4.0
    early: int = 0
    batches: int = 1
    leaves: int | None = None


def clicks_study(folder, tasks=8, *, stems=None, description="a rectangle", **settings):
    """A study of one rectangle an image, each somewhere else."""
    made = []
    for number in range(tasks):
        rng = np.random.default_rng(number)
        small = rng.integers(40, 220, (4, 5, 3), dtype=np.uint8)
        image = cv2.resize(small, (WIDTH, HEIGHT), interpolation=cv2.INTER_CUBIC)
        left, top, wide, high = box(number)
        mask = np.zeros((HEIGHT, WIDTH), bool)
        mask[top : top + high, left : left + wide] = True
        names = [write_picture(folder, kind, pixels) for kind, pixels in (("images", image), ("masks", mask))]
        stem = stems[number] if stems else f"scene-{number:02d}"
        own = (f"t{number + 1:06d}", f"subject-{number}", "world", stem, "", stem, *names, WIDTH, HEIGHT)
        made.append(ClickTask(*own, description=description))
    chosen = {"kind": "clicks", "title": "Rectangles", "batch_size": 4, "training_tasks": 0, "target_answers": 6}
    settings = StudySettings.model_validate(chosen | {"modes": ("text", "cut-out")} | settings)
    return make_study(folder, settings, made, made={"round": 1, "left_out": []})


def box(number):
    """Left, top, width and height of a task's rectangle, far from the frame's upper left corner."""
    return 30 + number, 25 + number, 24, 18


def open_store(study):
    store = Store.open(study.database)
    store.prepare(study.items, study.settings.devices, study.fingerprint)
    return store


def take_part(study, store, person, now):
    """Let a person do their batches, six seconds an answer; the id."""
    validator, rules, plan = ClickValidator(study), BatchRules.of(study.settings), study.settings.timings
    who, done = store.join(None, "en", now).id, 0
    store.set_device(who, person.device, now)
    store.set_trained(who, now)
    for number in range(person.batches):
        batch = store.next_batch(who, rules, now)
        if batch is None:
            break
        leaving = person.leaves if number == person.batches - 1 else None
        for trial in batch.trials[:leaving]:
            now += 6.0
            x, y = place(int(trial.item.task[1:]) - 1, person.ways[done % len(person.ways)], done)
            done += 1
            verdict = validator.validate(trial.item.task, x, y)
            phases = {"image": plan.image, "target": plan.target_of(trial.item.mode), "again": plan.again}
            answer = NewAnswer(
                f"key-{trial.id}",
                trial.id,
                x=x,
                y=y,
                inside=verdict.inside,
                near=verdict.near,
                early=person.early,
                reaction_ms=person.reaction,
                durations={name: 1000 * seconds + person.late for name, seconds in phases.items()},
                circumstances={"pointer": "touch" if person.device == "mobile" else "mouse", "hidden": 0},
            )
            store.show(who, trial.id, now - 5.5)
            store.answer(who, answer, study.settings.inside_needed, now)
    return who


def place(number, way, turn):
    """A place inside a task's rectangle, three pixels left of it, or in the frame's corner."""
    left, top, wide, high = box(number)
    if way == "i":
        return left + 0.5 + turn * 7 % wide, top + 0.5 + turn * 5 % high
    return (left - 2.5, top + 4.5) if way == "n" else (1.5, 1.5 + turn % 3)
