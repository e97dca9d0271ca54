"""Make a study of clicks from the objects of datasets (first round) or from errors of predictions (second round).

>>> import tempfile
>>> settings = StudySettings(kind="clicks", title="Cups", modes=("cut-out", "silhouette"), training_tasks=0)
>>> study = make_planned_study(Path(tempfile.mkdtemp()), ClickStudyPlan(scenes=2), settings)
>>> [(task.id, task.full_stem, sorted(task.targets)) for task in study.tasks]
[('t000001', '000001', ['cut-out', 'silhouette']), ('t000002', '000002', ['cut-out', 'silhouette'])]
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from hardlook.collect.study.click_regions import ClickRegion, list_training_regions
from hardlook.collect.study.display_modes import draw_target, find_shift, is_small_shift
from hardlook.collect.study.folder import (
    Progress,
    Study,
    make_study,
    mark_unfinished,
    remove_stale_pictures,
    start_progress,
)
from hardlook.collect.study.instances import ClickableInstance, Descriptions, PlantedInstance, list_planted_instances
from hardlook.collect.study.pictures import write_picture, write_previous_mask
from hardlook.collect.study.second_round import MAX_IOU, ErrorChoice, ErrorRegions
from hardlook.collect.study.settings import StudySettings
from hardlook.collect.study.tasks import CHECK_SUBJECT, ClickTask, count_checks
from hardlook.data.click_names import ClickType
from hardlook.data.left_out import LeftOutNotes
from hardlook.data.object_instances import LeftOutNote, list_instances
from hardlook.errors import DataError, HardlookError, OptionError
from hardlook.report.formatting import format_count
from hardlook.world.planted import PlantedWorld

Facts = Mapping[str, Any]


@dataclass(frozen=True)
class ClickStudyPlan:
    """What a study of clicks is made of, as `hardlook collect init clicks` takes it.

    `data` are folders by dataset; without any, the objects are those of `scenes` planted scenes. `at_most`, `min_area`
    and `split` choose objects of the data. `descriptions` is a csv file for the text mode. `masks`, `limit` and
    `errors` are options of a second round, `skip_broken` of a first round.
    """

    data: Mapping[str, Path] = field(default_factory=dict)
    at_most: int | None = None
    min_area: int = 0
    split: str | None = None
    scenes: int = 24
    seed: int = 0
    descriptions: Path | None = None
    skip_broken: bool = False
    round: int = 1
    masks: tuple[Path, ...] = ()
    limit: float = MAX_IOU
    errors: ErrorChoice = "largest"

    def check(self, modes: Sequence[str]) -> None:
        """Raise an `OptionError` for options that contradict each other."""
        chosen = {"--at-most": self.at_most is not None, "--min-area": self.min_area > 0, "--split": bool(self.split)}
        if not self.data and any(chosen.values()):
            named = ", ".join(flag for flag, given in chosen.items() if given)
            raise OptionError(f"{named} without --data", remedy="pass --data; the planted world has --scenes")
        if self.descriptions and "text" not in modes:
            raise OptionError("--descriptions without --mode text", remedy="add --mode text, or leave them out")
        if self.round == 1 and self.masks:
            raise OptionError("--masks in a first round", remedy="add --round 2")
        if self.round == 2 and not self.masks:
            raise OptionError("a second round without --masks", remedy="pass a finished run of `hardlook run rclicks`")
        if self.round == 2 and self.skip_broken:
            raise OptionError("--skip-broken in a second round", remedy="leave it out")


def make_planned_study(
    path: Path, plan: ClickStudyPlan, settings: StudySettings, progress: Progress | None = None
) -> Study:
    """List the objects of a plan and make the study of its round in the folder `path`."""
    plan.check(settings.modes)
    instances: Sequence[ClickableInstance] = list_planted_instances(PlantedWorld(seed=plan.seed, count=plan.scenes))
    left_out: tuple[LeftOutNote, ...] = ()
    if plan.data:
        listed = list_instances(
            plan.data, at_most=plan.at_most, seed=plan.seed, min_area=plan.min_area, split=plan.split
        )
        instances, left_out = listed.instances, listed.left_out
    describe = Descriptions(plan.data, plan.descriptions)

    def collect_facts() -> Facts:
        return {
            "data": {name: str(path) for name, path in plan.data.items()} or {"planted": f"{plan.scenes} scenes"},
            **{name: getattr(plan, name) for name in ("at_most", "min_area", "split", "seed")},
            "round": plan.round,
            "descriptions_of_no_object": len(describe.unused),
        }

    if plan.round == 1:
        return make_click_study(
            path,
            instances,
            settings,
            describe=describe,
            left_out=left_out,
            facts=collect_facts,
            skip_broken=plan.skip_broken,
            progress=progress,
        )
    regions = ErrorRegions(
        instances,
        plan.masks,
        limit=plan.limit,
        errors=plan.errors,
        describe=describe if "text" in settings.modes else lambda instance: "",
        progress=progress,
    )

    def collect_second_round_facts() -> Facts:
        found = regions.facts
        return {**collect_facts(), **found, "left_out": [*(asdict(note) for note in left_out), *found["left_out"]]}

    return make_region_study(path, regions, settings, facts=collect_second_round_facts)


def make_click_study(
    path: Path,
    instances: Sequence[ClickableInstance],
    settings: StudySettings,
    *,
    describe: Callable[[ClickableInstance], str] = lambda instance: "",
    left_out: Sequence[LeftOutNote] = (),
    facts: Callable[[], Facts] = dict,
    skip_broken: bool = False,
    progress: Progress | None = None,
) -> Study:
    """Make a first round: every instance is a task, in the given order.

    `describe` returns the description of an instance for the text mode, where an empty one is an error. `left_out` are
    the notes of `list_instances`. `facts` is called after all instances are read; its result goes into `made.json`. An
    instance that cannot be read is an error, or with `skip_broken` counted as left out.
    """
    notes = LeftOutNotes("")
    # All descriptions are checked before any image is read, so that a missing one is reported at once.
    descriptions = [describe(one) if "text" in settings.modes else "" for one in instances]
    for one, description in zip(instances, descriptions, strict=True):
        _check_description(settings, description, f"{one.dataset}/{one.full_stem}")
    advance = start_progress(progress, len(instances))

    def generate_regions() -> Iterator[ClickRegion]:
        image, key = None, ""
        for one, description in zip(instances, descriptions, strict=True):
            try:
                target = one.read_target().mask
                if image is None or one.image_key != key:
                    image, key = one.read(), one.image_key
                stems, exact = (one.image_stem, one.object_stem, one.full_stem), isinstance(one, PlantedInstance)
                yield ClickRegion(one.dataset, *stems, image, target, target, key, description, exact=exact)
            except HardlookError as error:
                if not skip_broken:
                    raise
                notes.add("instances that cannot be read", error.what, f"{one.dataset}/{one.full_stem}")
            advance(1, 0)

    def collect_all_facts() -> Facts:
        return {"round": 1, **facts(), "left_out": [asdict(note) for note in (*left_out, *notes.summarize())]}

    return make_region_study(path, generate_regions(), settings, facts=collect_all_facts)


def make_region_study(
    path: Path, regions: Iterable[ClickRegion], settings: StudySettings, *, facts: Callable[[], Facts] = dict
) -> Study:
    """Make a study with one task per region, in the given order, and a training round with the same click types.

    `facts` is called after all regions are read; its result goes into `made.json` and may replace `round` and
    `left_out`. The folder is not a valid study until its last file is written; an interrupted command can be repeated.
    """
    tasks: dict[tuple[str, str], ClickTask] = {}
    notes, previous = LeftOutNotes(""), []
    with mark_unfinished(path):
        for region in regions:
            _check_description(settings, region.description, region.unit)
            if (region.dataset, region.full_stem) in tasks:
                raise DataError("two regions share a name", unit=region.unit, remedy="give each region its own name")
            task = write_click_task(path, region, settings, f"t{len(tasks) + 1:06d}")
            tasks[region.dataset, region.full_stem] = task
            if region.previous is not None:
                previous.append(write_previous_mask(path, region.dataset, region.full_stem, region.previous))
            if "shifted" in settings.modes and is_small_shift(task.shift, (task.height, task.width)):
                what, why = "objects that hardly move in the mode shifted", "the frame leaves them no room"
                notes.add(what, why, region.unit)
        if not tasks:
            left = "; ".join(f"{note['count']} {note['what']}, {note['why']}" for note in facts().get("left_out", ()))
            remedy = "pass other data, or in a second round the --masks that belong to these data"
            raise DataError(f"there is nothing to click on ({left or 'the data has no objects'})", remedy=remedy)
        click_types = tuple(dict.fromkeys(task.click_type for task in tasks.values()))
        checks = write_checks(path, settings, click_types)
        all_tasks = [*tasks.values(), *write_training_tasks(path, settings, click_types)]
        remove_stale_pictures(path, [*all_tasks, *checks], previous)
        if "text" in settings.modes:
            _note_ambiguous_descriptions(tasks.values(), notes)
        made = {
            "round": 1 if click_types == ("first",) else 2,
            "tasks": len(tasks),
            "images": len({task.subject for task in tasks.values()}),
            "left_out": [],
            **facts(),
            "counted": [asdict(note) for note in notes.summarize()],
        }
        return make_study(path, settings, all_tasks, made=made, checks=checks)


def write_click_task(
    path: Path, region: ClickRegion, settings: StudySettings, name: str, *, training: bool = False
) -> ClickTask:
    """Write the pictures of a region into the folder `path` and return its task, whose id is `name`.

    >>> import tempfile
    >>> import numpy as np
    >>> mask = np.zeros((8, 9), bool)
    >>> mask[1:3, 2:5] = True
    >>> cat = ClickRegion("mine", "cat", "", "cat", np.zeros((8, 9, 3), np.uint8), mask, mask, subject="mine/cat")
    >>> settings = StudySettings(kind="clicks", title="Cats", modes=("text", "shifted"))
    >>> task = write_click_task(Path(tempfile.mkdtemp()), cat, settings, "t000001")
    >>> task.width, task.height, list(task.targets), task.shift
    (9, 8, ['shifted'], (1, 2))
    """
    targets: dict[str, str] = {}
    for mode in settings.modes:
        if mode != "text":
            picture = draw_target(mode, region.image, region.region, region.click_type)
            # A highlighted target shows the whole image, which would be a large file without compression loss.
            targets[mode] = write_picture(path, "targets", picture, lossless=mode != "highlighted")
    return ClickTask(
        id=name,
        subject=region.subject,
        dataset=region.dataset,
        image_stem=region.image_stem,
        object_stem=region.object_stem,
        full_stem=region.full_stem,
        image=write_picture(path, "images", region.image, lossless=True if region.exact else None),
        mask=write_picture(path, "masks", region.region),
        width=region.size[0],
        height=region.size[1],
        targets=targets,
        description=region.description,
        model_type=region.model_type,
        click_type=region.click_type,
        shift=find_shift(region.region) if "shifted" in settings.modes else (0, 0),
        training=training,
    )


def write_training_tasks(
    path: Path, settings: StudySettings, click_types: Sequence[ClickType] = ("first",)
) -> tuple[ClickTask, ...]:
    """Write the training round in all display modes, ids training-0, training-1 and so on; click types alternate."""
    numbered = zip(range(settings.training_tasks), list_training_regions(click_types), strict=False)
    return tuple(write_click_task(path, region, settings, f"training-{i}", training=True) for i, region in numbered)


def write_checks(path: Path, settings: StudySettings, click_types: Sequence[ClickType]) -> list[ClickTask]:
    """Write the attention checks, ids check-0, check-1 and so on: more of what the training round shows."""
    start, count = settings.training_tasks, count_checks(settings)
    checks = []
    for i, region in enumerate(islice(list_training_regions(click_types), start, start + count)):
        task = write_click_task(path, region, settings, f"check-{i}")
        checks.append(replace(task, subject=f"{CHECK_SUBJECT}{i}"))
    return checks


def summarise_study(study: Study) -> dict[str, Any]:
    """What was made, as the document that `hardlook collect init clicks --json` prints."""
    settings, made = study.settings, study.made
    return {
        "study": str(study.path),
        "kind": settings.kind,
        "round": made["round"],
        "tasks": made["tasks"],
        "images": made["images"],
        "training": len(study.training),
        "modes": list(settings.modes),
        "devices": list(settings.devices),
        "clicks_wanted": len(study.items) * len(settings.devices) * settings.target_answers,
        "left_out": made["left_out"],
        "counted": made["counted"],
        "descriptions_of_no_object": made["descriptions_of_no_object"],
        "next": shlex.join(["hardlook", "collect", "serve", str(study.path)]),
    }


def describe_study(document: Mapping[str, Any], *, planted: bool = False) -> str:
    """The document of `summarise_study` as text for a terminal; `planted` where no data was given."""
    modes, devices = (_join_words(document[name]) for name in ("modes", "devices"))
    lines = [
        f"{format_count(document['tasks'], 'task')} on {format_count(document['images'], 'image')}, shown as {modes}; "
        f"{document['clicks_wanted']:,} valid clicks wanted, on {devices}."
    ]
    if planted:
        lines.append("Note: these are drawn scenes of the planted world; --data takes your own images.")
    for name, title in (("left_out", "Left out"), ("counted", "Note")):
        for note in document[name]:
            examples = ", ".join(note["examples"][:3])
            lines.append(f"{title}: {note['count']} {note['what']} ({note['why']}), such as {examples}.")
    if unused := document["descriptions_of_no_object"]:
        lines.append(f"Note: {format_count(unused, 'description')} of --descriptions fit no object of the study.")
    return "\n".join([*lines, f"Next: {document['next']}"])


def _check_description(settings: StudySettings, description: str, unit: str) -> None:
    if "text" in settings.modes and not description:
        remedy = "pass --descriptions FILE.csv with full_stem and description, or leave --mode text out"
        raise DataError("no description for the text mode", unit=unit, remedy=remedy)


def _note_ambiguous_descriptions(tasks: Iterable[ClickTask], notes: LeftOutNotes) -> None:
    by_description: defaultdict[tuple[str, str], list[ClickTask]] = defaultdict(list)
    for task in tasks:
        by_description[task.subject, task.description].append(task)
    for group in by_description.values():
        if len({task.object_stem for task in group}) > 1:
            for task in group:
                what, why = "descriptions that fit several objects", "another object of the image has the same words"
                notes.add(what, why, f"{task.dataset}/{task.full_stem}")


def _join_words(words: Sequence[str]) -> str:
    """Words with commas and an `and`.

    >>> _join_words(["pc"]), _join_words(["text", "cut-out", "shifted"])
    ('pc', 'text, cut-out and shifted')
    """
    return " and ".join(part for part in (", ".join(words[:-1]), words[-1]) if part)
