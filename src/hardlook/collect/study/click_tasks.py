"""A study of clicks, from objects or from the errors of predictions: pictures, masks, targets, tasks.

>>> import tempfile
>>> from hardlook.collect.study.instances_to_click import planted_instances
>>> from hardlook.world.planted import PlantedWorld
>>> settings = StudySettings(kind="clicks", title="Cups", modes=("cut-out", "silhouette"), training_tasks=0)
>>> study = click_study(Path(tempfile.mkdtemp()), planted_instances(PlantedWorld(seed=0, count=2)), settings)
>>> [(task.id, task.full_stem, sorted(task.targets)) for task in study.tasks]
[('t000001', '000001', ['cut-out', 'silhouette']), ('t000002', '000002', ['cut-out', 'silhouette'])]
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import hardlook
from hardlook.collect.study.display_modes import is_small_shift
from hardlook.collect.study.folder import Study, make_study
from hardlook.collect.study.instances_to_click import ClickableInstance, PlantedInstance
from hardlook.collect.study.pictures import write_previous_mask
from hardlook.collect.study.region_task import write_task
from hardlook.collect.study.regions_to_click import Region
from hardlook.collect.study.settings import StudySettings
from hardlook.collect.study.tasks import ClickTask
from hardlook.collect.study.training import training_tasks
from hardlook.collect.study.unfinished import remove_leftovers, unfinished
from hardlook.data.object_instances import LeftOutNote
from hardlook.data.object_instances.left_out import LeftOutNotes
from hardlook.errors import DataError, HardlookError

SCHEMA = "hardlook.study-made/1"
Describe = Callable[[ClickableInstance], str]
Moved = Callable[[int, int], None]
Facts = Mapping[str, Any]


def click_study(
    path: Path,
    instances: Sequence[ClickableInstance],
    settings: StudySettings,
    *,
    describe: Describe = lambda instance: "",
    left_out: Sequence[LeftOutNote] = (),
    facts: Callable[[], Facts] = dict,
    skip_broken: bool = False,
    progress: Callable[[int, int], Moved] | None = None,
) -> Study:
    """A first round: every instance is a task, in their order.

    `describe` gives the words of the text mode; an instance without words is an error there. `left_out` is what the
    listing left out, `facts` what else `made.json` is to say, asked for when all is read. An instance that cannot be
    read is an error, or with `skip_broken` counted as left out. `progress` starts a bar over (instances, done).
    """
    notes = LeftOutNotes("")
    # All words before any picture, so that a missing one is found at once.
    words = [describe(one) if "text" in settings.modes else "" for one in instances]
    for one, said in zip(instances, words, strict=True):
        _refuse_wordless(settings, said, f"{one.dataset}/{one.full_stem}")
    moved = progress(len(instances), 0) if progress else (lambda units, failed: None)

    def regions() -> Iterator[Region]:
        image, key = None, ""
        for one, said in zip(instances, words, strict=True):
            try:
                target = one.read_target().mask
                image, key = (image, key) if image is not None and one.image_key == key else (one.read(), one.image_key)
                yield Region(
                    one.dataset, one.image_stem, one.object_stem, one.full_stem, image, target, target,
                    subject=one.image_key, description=said, exact=isinstance(one, PlantedInstance),
                )  # fmt: skip
            except HardlookError as error:
                if not skip_broken:
                    raise
                notes.add("instances that cannot be read", error.what, f"{one.dataset}/{one.full_stem}")
            moved(1, 0)

    def made() -> Facts:
        return {"round": 1, **facts(), "left_out": [asdict(note) for note in (*left_out, *notes.listed())]}

    return region_study(path, regions(), settings, facts=made)


def region_study(
    path: Path, regions: Iterable[Region], settings: StudySettings, *, facts: Callable[[], Facts] = dict
) -> Study:
    """A study of regions, one task each, in their order, after a training round on the same kinds of clicks.

    `facts` are asked for when all regions are read: they go into `made.json` with `round` and `left_out`, if given.
    The folder is no study before its last file is written; what a stopped command left is taken up.
    """
    tasks: dict[tuple[str, str], ClickTask] = {}
    notes, names = LeftOutNotes(""), []
    with unfinished(path):
        for region in regions:
            _refuse_wordless(settings, region.description, region.unit)
            if (region.dataset, region.full_stem) in tasks:
                raise DataError("two regions of one name", unit=region.unit, remedy="give each region its own name")
            task = write_task(path, region, settings, f"t{len(tasks) + 1:06d}")
            tasks[region.dataset, region.full_stem] = task
            names += [task.image, task.mask, *task.targets.values()]
            if region.previous is not None:
                names.append(write_previous_mask(path, region.dataset, region.full_stem, region.previous))
            _note(task, settings, notes)
        if not tasks:
            left = "; ".join(f"{note['count']} {note['what']}, {note['why']}" for note in facts().get("left_out", ()))
            remedy = "give other data, or in a second round the --masks that belong to these data"
            raise DataError(f"there is nothing to click on ({left or 'no region came'})", remedy=remedy)
        training = training_tasks(path, settings, tuple(dict.fromkeys(task.click_type for task in tasks.values())))
        names += [name for task in training for name in (task.image, task.mask, *task.targets.values())]
        remove_leftovers(path, names)
        _note_ambiguous(tasks.values(), settings, notes)
        document = {
            "schema": SCHEMA,
            "hardlook": hardlook.__version__,
            "round": 1 if all(task.click_type == "first" for task in tasks.values()) else 2,
            "tasks": len(tasks),
            "images": len({task.subject for task in tasks.values()}),
            "left_out": [],
            **facts(),
            "counted": [asdict(note) for note in notes.listed()],
        }
        return make_study(path, settings, [*tasks.values(), *training], made=document)


def _refuse_wordless(settings: StudySettings, words: str, unit: str) -> None:
    if "text" in settings.modes and not words:
        remedy = "give --descriptions FILE.csv with full_stem and description, or leave --mode text out"
        raise DataError("no description for the text mode", unit=unit, remedy=remedy)


def _note(task: ClickTask, settings: StudySettings, notes: LeftOutNotes) -> None:
    if "shifted" in settings.modes and is_small_shift(task.shift, (task.height, task.width)):
        what, why = "objects that hardly move in the mode shifted", "the frame leaves them no room"
        notes.add(what, why, f"{task.dataset}/{task.full_stem}")


def _note_ambiguous(tasks: Iterable[ClickTask], settings: StudySettings, notes: LeftOutNotes) -> None:
    if "text" not in settings.modes:
        return
    alike: defaultdict[tuple[str, str], list[ClickTask]] = defaultdict(list)
    for task in tasks:
        alike[task.subject, task.description].append(task)
    for group in alike.values():
        if len({task.object_stem for task in group}) > 1:
            for task in group:
                what, why = "descriptions that fit several objects", "another object of the image has the same words"
                notes.add(what, why, f"{task.dataset}/{task.full_stem}")
