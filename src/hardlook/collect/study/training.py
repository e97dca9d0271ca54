"""The training round of a study of clicks: clear objects of the planted world, in the display modes of the study.

Pictures are the same in every study, so that its first minutes are alike for all participants.

>>> import tempfile
>>> settings = StudySettings(kind="clicks", title="Cups", training_tasks=1)
>>> [task] = training_tasks(Path(tempfile.mkdtemp()), settings)
>>> task.id, task.training, (task.width, task.height)
('training-0', True, (480, 360))
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path

import numpy as np

from hardlook.clicks.planted_errors import planted_error
from hardlook.collect.study.instances_to_click import PlantedInstance, planted_instances
from hardlook.collect.study.region_task import write_task
from hardlook.collect.study.regions_to_click import Region
from hardlook.collect.study.settings import StudySettings
from hardlook.collect.study.tasks import ClickTask
from hardlook.data.full_stem import ClickType
from hardlook.randomness import generator
from hardlook.regions.boxes import box_of
from hardlook.world.planted import PlantedWorld

# Far more scenes than are needed: unclear ones are passed over.
WORLD = PlantedWorld(seed=20_240_901, count=960, size=(480, 360), salient=True, distractors=2)
DATASET = "training"
AREA = (0.04, 0.30)  # of the picture: easily seen, and with a place of its own
LEAST_ERROR = 0.01


def training_tasks(
    path: Path, settings: StudySettings, click_types: Sequence[ClickType] = ("first",)
) -> tuple[ClickTask, ...]:
    """`settings.training_tasks` tasks with the ids training-0, training-1 and so on, their pictures in `path`.

    Every one has the pictures of all display modes of the study, and words. The kinds of clicks take turns.
    """
    found = zip(range(settings.training_tasks), clear_regions(click_types), strict=False)
    return tuple(write_task(path, region, settings, f"training-{i}", training=True) for i, region in found)


def clear_regions(click_types: Sequence[ClickType]) -> Iterator[Region]:
    """Clear objects, or large errors of planted masks, of a new concept each time while there is one."""
    kinds, seen = cycle(click_types), set[str]()
    kind = next(kinds)
    for one in planted_instances(WORLD):
        if one.concept in seen or not _alone(one):
            continue
        target = one.read_target().mask
        region = planted_error(target, kind, generator(WORLD.seed, DATASET, kind, one.index))
        if not _clear(target) or region.mean() < LEAST_ERROR:
            continue
        name = one.image_stem if kind == "first" else f"{one.image_stem}_planted_{kind}"
        yield Region(
            DATASET, one.image_stem, "", name, one.read(), target, region,
            subject=f"{DATASET}/{one.image_stem}", description=one.concept, click_type=kind,
            model_type="" if kind == "first" else "planted",
        )  # fmt: skip
        seen = seen | {one.concept} if len(seen) < 11 else set()
        kind = next(kinds)


def _alone(one: PlantedInstance) -> bool:
    """Whether the words for the object fit nothing else in the picture."""
    return sum(thing.concept == one.concept for thing in one.world.scene(one.index).objects) == 1


def _clear(target: np.ndarray) -> bool:
    """Whether the object is neither small nor large, and wholly in the picture."""
    box = box_of(target)
    height, width = target.shape
    whole = box is not None and box.top > 0 and box.left > 0 and box.bottom < height and box.right < width
    return whole and AREA[0] <= float(target.mean()) <= AREA[1]
