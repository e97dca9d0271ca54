"""What a browser is told of a trial, and which file each of its pictures is; ids of the training round are numbers.

>>> training_number("training-2"), training_number("training-x"), training_id(0)
(2, None, 'training-0')
"""

from __future__ import annotations

import re

from hardlook.collect.study.folder import Study
from hardlook.collect.study.tasks import ClickTask, ReviewTask, Task
from hardlook.collect.web.replies import ShownClick, ShownRating, ShownReview

ShownView = ShownClick | ShownReview | ShownRating
_TRAINING = re.compile(r"training-(0|[1-9][0-9]?)")
_ID = re.compile(r"[A-Za-z0-9_-]{8,64}")


def is_trial_id(text: str) -> bool:
    """Whether a text can be a trial's id at all; anything else need not trouble the database."""
    return _ID.fullmatch(text) is not None


def training_id(number: int) -> str:
    """The id of a trial of the training round."""
    return f"training-{number}"


def training_number(trial: str) -> int | None:
    """Which trial of the training round an id means, if any."""
    found = _TRAINING.fullmatch(trial)
    return int(found[1]) if found else None


def training_task(study: Study, trial: str) -> Task | None:
    """The task of a trial of the training round."""
    number = training_number(trial)
    return study.training[number] if number is not None and number < len(study.training) else None


def training_mode(study: Study, trial: str) -> str:
    """The display mode of a training trial: the study's modes in turn, as far as the task has a picture for it."""
    task, number = training_task(study, trial), training_number(trial)
    if not isinstance(task, ClickTask) or number is None:
        return ""
    modes = study.settings.modes
    turned = [modes[(number + place) % len(modes)] for place in range(len(modes))]
    fitting = [mode for mode in (*turned, *sorted(task.targets)) if mode == "text" or mode in task.targets]
    return fitting[0] if fitting else "text"


def shown_view(study: Study, trial: str, task: Task, mode: str) -> ShownView:
    """What a shown trial looks like; nothing in it tells where the region to click lies."""
    image = f"/pictures/{trial}/image" if task.image else None
    if isinstance(task, ClickTask):
        return {
            "id": trial,
            "mode": mode,
            "click_type": task.click_type,
            "width": task.width,
            "height": task.height,
            "image": image,
            "target": f"/pictures/{trial}/target" if mode in task.targets else None,
            "description": task.description if mode == "text" else "",
        }
    if isinstance(task, ReviewTask):
        return {"id": trial, "image": image, "concept": task.concept, "context": task.context}
    value = task.value if study.settings.question == "fit" else None
    return {"id": trial, "form": task.form, "labels": list(task.labels), "value": value, "image": image}


def picture_of(task: Task, mode: str, what: str) -> str | None:
    """The file of a picture, relative to the study; None where there is none of that name.

    >>> from hardlook.collect.study.tasks import RatingTask
    >>> picture_of(RatingTask("t1", "s", "pair", ("a", "b"), "path", 0.5), "", "image") is None
    True
    """
    if what == "image":
        return task.image or None
    if what == "target" and isinstance(task, ClickTask):
        return task.targets.get(mode)
    return None
