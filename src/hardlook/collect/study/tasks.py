"""The tasks of a study, one per line of `tasks.jsonl`; a task's pictures are files of the study folder.

>>> pair = RatingTask("t000001", "pair/cat/dog", "pair", ("cat", "dog"), "path", 0.2)
>>> parse_task("ratings", json.loads(format_task(pair))) == pair
True
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass

from hardlook.data.click_names import ClickType

if TYPE_CHECKING:
    from hardlook.collect.study.settings import StudySettings

_STRICT = ConfigDict(extra="forbid", arbitrary_types_allowed=False)


@checked_dataclass(frozen=True, config=_STRICT)
class ClickTask:
    """An object, or an error of a prediction, to be clicked on.

    `subject` is the image's key: a participant sees each subject once. `image` and `mask` are files of the study
    folder (posix paths relative to it), as are `targets`, one per display mode that has a picture. `mask` (H, W) is the
    region to click: the object, or the false negatives or positives. `width` and `height` are the image's, in pixels.
    `description` is the text mode's. `shift` is how far the shifted cut-out moved, (x, y) in pixels.
    `training` tasks are for the training round alone, and their answers are not stored.
    """

    id: str
    subject: str
    dataset: str
    image_stem: str
    object_stem: str
    full_stem: str
    image: str
    mask: str
    width: int
    height: int
    targets: Mapping[str, str] = field(default_factory=dict)
    description: str = ""
    model_type: str = ""
    click_type: ClickType = "first"
    shift: tuple[int, int] = (0, 0)
    training: bool = False


@checked_dataclass(frozen=True, config=_STRICT)
class ReviewTask:
    """An image, `name` in its folder, and the claim that it shows `concept` in `context`; `answer` is 1 if true."""

    id: str
    subject: str
    name: str
    concept: str
    context: str
    image: str
    split: str = ""
    training: bool = False
    answer: Literal[0, 1] | None = None


@checked_dataclass(frozen=True, config=_STRICT)
class RatingTask:
    """Two labels, or a picture with predicted labels, and the value that a similarity measure gives them.

    `labels` are the two of a pair, or (truth, prediction, ...) of a picture. `value` is the measure's, in [0, 1].
    """

    id: str
    subject: str
    form: Literal["pair", "picture"]
    labels: tuple[str, ...]
    measure: str
    value: float
    image: str = ""
    training: bool = False


Task = ClickTask | ReviewTask | RatingTask

# How the subject of an attention check begins; no image of a dataset has such a key.
CHECK_SUBJECT = "attention-check/"
_MOST_CHECKS = 20
_TYPES: Mapping[str, Any] = {"clicks": ClickTask, "review": ReviewTask, "ratings": RatingTask}


@dataclass(frozen=True)
class Item:
    """What is assigned to a participant: a task in a display mode ("" where there is none)."""

    id: str
    task: str
    mode: str
    subject: str

    @property
    def is_check(self) -> bool:
        """Whether it is an attention check."""
        return self.subject.startswith(CHECK_SUBJECT)


def list_items(task: Task, modes: tuple[str, ...]) -> tuple[Item, ...]:
    """The items of a task: one per display mode for a click, one for anything else; none for a training task.

    >>> [item.id for item in list_items(ReviewTask("t1", "a.jpg", "a.jpg", "cat", "snow", "images/a.jpg"), ())]
    ['t1']
    """
    if task.training:
        return ()
    if not isinstance(task, ClickTask):
        return (Item(task.id, task.id, "", task.subject),)
    return tuple(Item(f"{task.id}.{mode}", task.id, mode, task.subject) for mode in modes)


def count_checks(settings: StudySettings) -> int:
    """How many attention checks a study is made with: enough for every batch of a participant, 20 at most.

    Somebody who does more batches gets no further checks, since no check is shown to one person twice.
    """
    return min(settings.attention_checks * settings.most_batches, _MOST_CHECKS)


def format_task(task: Task) -> str:
    """One line of `tasks.jsonl`, without its line end."""
    return json.dumps(asdict(task), ensure_ascii=False, sort_keys=True)


def parse_task(kind: str, value: object) -> Task:
    """Read a task back from a parsed line; a `ValueError` names the wrong field."""
    try:
        task: Task = TypeAdapter(_TYPES[kind]).validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"{'.'.join(map(str, first['loc'])) or 'the line'}: {first['msg']}") from error
    return task
