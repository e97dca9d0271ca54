"""A region as a task of a study folder: its pictures are written, and the task names them.

>>> import tempfile
>>> import numpy as np
>>> frame = np.zeros((8, 9), bool)
>>> frame[1:3, 2:5] = True
>>> cat = Region("mine", "cat", "", "cat", np.zeros((8, 9, 3), np.uint8), frame, frame, subject="mine/cat")
>>> settings = StudySettings(kind="clicks", title="Cats", modes=("text", "shifted"))
>>> task = write_task(Path(tempfile.mkdtemp()), cat, settings, "t000001")
>>> task.width, task.height, list(task.targets), task.shift
(9, 8, ['shifted'], (1, 2))
"""

from __future__ import annotations

from pathlib import Path

from hardlook.collect.study.display_modes import shift_of, target_picture
from hardlook.collect.study.pictures import write_picture
from hardlook.collect.study.regions_to_click import Region
from hardlook.collect.study.settings import StudySettings
from hardlook.collect.study.tasks import ClickTask


def write_task(path: Path, region: Region, settings: StudySettings, name: str, *, training: bool = False) -> ClickTask:
    """Write the pictures of a region into the folder `path` and return its task, whose id is `name`."""
    shows = "shifted" in settings.modes
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
        targets={
            # A highlighted image shows its background anyway, and would be large without loss.
            mode: write_picture(
                path,
                "targets",
                target_picture(mode, region.image, region.region, region.click_type),
                lossless=mode != "highlighted",
            )
            for mode in settings.modes
            if mode != "text"
        },
        description=region.description,
        model_type=region.model_type,
        click_type=region.click_type,
        shift=shift_of(region.region) if shows else (0, 0),
        training=training,
    )
