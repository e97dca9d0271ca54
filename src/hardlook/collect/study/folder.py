"""A study as a folder: `study.json`, `tasks.jsonl`, pictures, a secret, and the answers beside them.

    STUDY/study.json       settings; may be edited by hand while nothing is served
    STUDY/tasks.jsonl      what people are asked, a task a line
    STUDY/made.json        what the study was made of and what was left out
    STUDY/images masks targets previous-masks
    STUDY/secret.key       signs tokens and cookies; whoever has it can be anybody
    STUDY/answers.sqlite   the answers, unless another database is named

>>> import tempfile
>>> from hardlook.collect.study.tasks import ReviewTask
>>> made = make_study(
...     Path(tempfile.mkdtemp()) / "study",
...     StudySettings(kind="review", title="Cats", devices=("any",)),
...     [ReviewTask("t000001", "a.jpg", "a.jpg", "cat", "snow", "images/a.jpg")], made={"of": "an example"})
>>> study = open_study(made.path)
>>> [task.subject for task in study.tasks], study.settings.title, len(study.secret)
(['a.jpg'], 'Cats', 32)
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import ValidationError

from hardlook.collect.study.setting_errors import in_words
from hardlook.collect.study.settings import StudySettings
from hardlook.collect.study.tasks import Item, Task, items_of, json_of_task, task_of_json
from hardlook.errors import DataError
from hardlook.fingerprint import of_value
from hardlook.runs.folder import write_whole

SETTINGS, TASKS, MADE, SECRET, ANSWERS = "study.json", "tasks.jsonl", "made.json", "secret.key", "answers.sqlite"
# An id becomes the name of a file in some exports.
_ID = re.compile(r"(?!\.)[A-Za-z0-9._-]{1,64}")
_REMEDY = "make one with: hardlook collect init clicks STUDY (or review, or ratings)"
_RESTORE = "restore it from a copy of the study, or make the study anew in another folder"
_NEW_SECRET = (
    "restore it from a copy; if there is none, write 64 random hexadecimal digits into it: the answers stay, and "
    "links, cookies, completion codes and your key become others"
)


@dataclass(frozen=True)
class Study:
    """A study that has been read and checked; `secret` is 32 bytes."""

    path: Path
    settings: StudySettings
    tasks: tuple[Task, ...]
    made: Mapping[str, Any]
    secret: bytes

    @cached_property
    def by_id(self) -> Mapping[str, Task]:
        """Tasks by their id."""
        return {task.id: task for task in self.tasks}

    @cached_property
    def items(self) -> tuple[Item, ...]:
        """All that can be handed out, in the order of tasks."""
        return tuple(item for task in self.tasks for item in items_of(task, self.settings.modes))

    @cached_property
    def training(self) -> tuple[Task, ...]:
        """The tasks of the training round."""
        return tuple(task for task in self.tasks if task.training)

    @cached_property
    def fingerprint(self) -> str:
        """Of the tasks: answers belong to these and no others."""
        return of_value([json_of_task(task) for task in self.tasks])

    @property
    def database(self) -> str:
        """The address of the database in the folder."""
        return f"sqlite:///{(self.path / ANSWERS).resolve()}"

    def file(self, name: str) -> Path:
        """A file that a task names; `name` comes from `tasks.jsonl`, never from a request."""
        return self.path / name


def make_study(path: Path, settings: StudySettings, tasks: Sequence[Task], *, made: Mapping[str, Any]) -> Study:
    """Write settings, tasks and a new secret into a folder that has its pictures already or gets them next.

    A folder that holds a study is refused: answers may belong to it.
    """
    if (path / SETTINGS).exists():
        raise DataError("there is a study here already", file=path, remedy="choose another folder, or delete this one")
    path.mkdir(parents=True, exist_ok=True)
    secret = secrets.token_bytes(32)
    handle = os.open(path / SECRET, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w") as stream:
        stream.write(secret.hex() + "\n")
    write_whole(path / TASKS, "".join(json_of_task(task) + "\n" for task in tasks))
    write_whole(path / MADE, json.dumps(made, indent=2, ensure_ascii=False) + "\n")
    # Last, so that a folder with settings is a whole study.
    write_whole(path / SETTINGS, settings.model_dump_json(by_alias=True, indent=2) + "\n")
    return Study(path, settings, tuple(tasks), made, secret)


def open_study(path: Path) -> Study:
    """Read and check a study folder; errors name the file, the line and the field."""
    if not (path / SETTINGS).is_file():
        raise DataError("no study here", file=path, remedy=_REMEDY)
    settings = _settings(path / SETTINGS)
    tasks = _tasks(path, settings)
    made = _json(path / MADE)
    try:
        secret = bytes.fromhex((path / SECRET).read_text(encoding="ascii").strip())
    except (OSError, ValueError) as error:
        raise DataError("the secret cannot be read", file=path / SECRET, remedy=_NEW_SECRET) from error
    if len(secret) != 32:
        raise DataError(f"the secret has {len(secret)} bytes, not 32", file=path / SECRET, remedy=_NEW_SECRET)
    return Study(path, settings, tasks, made, secret)


def _settings(path: Path) -> StudySettings:
    try:
        return StudySettings.model_validate(_json(path))
    except ValidationError as error:
        raise DataError(in_words(error, StudySettings), file=path, remedy="correct this field") from error


def _tasks(folder: Path, settings: StudySettings) -> tuple[Task, ...]:
    path, tasks = folder / TASKS, []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError("the tasks cannot be read", file=path, remedy=_RESTORE) from error
    seen: set[str] = set()
    for number, line in enumerate(lines, 1):
        try:
            task = task_of_json(settings.kind, json.loads(line))
        except ValueError as error:
            raise DataError(f"line {number}: {error}", file=path, remedy="make the study anew") from error
        if task.id in seen:
            raise DataError(f"line {number}: a second task of this id", file=path, unit=task.id, remedy="remove one")
        if not _ID.fullmatch(task.id):
            what = f"line {number}: an id is made of letters, digits, dots, hyphens and underscores"
            raise DataError(what, file=path, unit=task.id, remedy="make the study anew")
        seen.add(task.id)
        for name in files_of(task):
            _refuse_outside(name, number, path)
        tasks.append(task)
    if not any(not task.training for task in tasks):
        raise DataError("no task to hand out", file=path, remedy=_REMEDY)
    return tuple(tasks)


def files_of(task: Task) -> tuple[str, ...]:
    """The files that a task names, as posix paths in the study folder."""
    named = (task.image, getattr(task, "mask", ""), *getattr(task, "targets", {}).values())
    return tuple(name for name in named if name)


def _refuse_outside(name: str, number: int, path: Path) -> None:
    place = PurePosixPath(name)
    if place.is_absolute() or ".." in place.parts or "\\" in name or "\0" in name:
        raise DataError(f"line {number}: {name!r} lies outside the study", file=path, remedy="make the study anew")


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError("a part of the study is missing", file=path, remedy=_RESTORE) from None
    except ValueError as error:
        raise DataError(f"not readable as JSON: {error}", file=path, remedy="correct it") from error
