"""A study as a folder: `study.json`, `tasks.jsonl`, pictures, a secret, and the answers beside them.

    STUDY/study.json       settings; may be edited by hand while nothing is served
    STUDY/tasks.jsonl      the tasks, one per line
    STUDY/made.json        what the study was made of and what was left out
    STUDY/images masks targets previous-masks
    STUDY/secret.key       signs tokens and cookies; keep it private
    STUDY/answers.sqlite   the answers, unless another database is named

>>> import tempfile
>>> from hardlook.collect.study.tasks import RatingTask
>>> pair = RatingTask("t000001", "pair/cat/dog", "pair", ("cat", "dog"), "path", 0.2)
>>> settings = StudySettings(kind="ratings", title="Alike", devices=("any",))
>>> path = Path(tempfile.mkdtemp()) / "study"
>>> with mark_unfinished(path):
...     made = make_study(path, settings, [pair], made={"of": "an example"})
>>> study = open_study(path)
>>> check_complete(study)
>>> [task.subject for task in study.tasks], study.settings.title, len(study.secret)
(['pair/cat/dog'], 'Alike', 32)
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import ValidationError

from hardlook import __version__
from hardlook.collect.study.pictures import KINDS, PREVIOUS_MASKS
from hardlook.collect.study.settings import StudySettings, describe_validation_error
from hardlook.collect.study.tasks import ClickTask, Item, Task, format_task, list_items, parse_task
from hardlook.errors import DataError, OptionError
from hardlook.fingerprints import hash_value
from hardlook.harness.runs.folder import write_atomically
from hardlook.reading import read_json, reading

SETTINGS, TASKS, MADE, SECRET, ANSWERS = "study.json", "tasks.jsonl", "made.json", "secret.key", "answers.sqlite"
CHECKS = "checks.jsonl"
UNFINISHED = "unfinished.txt"
OWN_NAMES = {SETTINGS, TASKS, MADE, SECRET, ANSWERS, f"{ANSWERS}-wal", f"{ANSWERS}-shm", CHECKS, *KINDS, PREVIOUS_MASKS}
MADE_SCHEMA = "hardlook.study-made/1"

# Starts a progress bar over (total, done) and returns the function that advances it by (units, failed ones).
Progress = Callable[[int, int], Callable[[int, int], None]]

# An id becomes the name of a file in some exports.
_ID = re.compile(r"(?!\.)[A-Za-z0-9._-]{1,64}")
_REMEDY = "make one with: hardlook collect init clicks STUDY (or review, or ratings)"
_RESTORE = "restore it from a copy of the study, or make the study anew in another folder"

_NEW_SECRET = (
    "restore it from a copy; if there is none, write 64 random hexadecimal digits into it: the answers stay, but all "
    "links, cookies, completion codes and your key change"
)


@dataclass(frozen=True)
class Study:
    """A study that has been read and checked; `made` is the content of `made.json`, `secret` is 32 bytes.

    `checks` are the attention checks: tasks with a known answer, which are not part of the results.
    """

    path: Path
    settings: StudySettings
    tasks: tuple[Task, ...]
    made: Mapping[str, Any]
    secret: bytes
    checks: tuple[Task, ...] = ()

    @cached_property
    def by_id(self) -> Mapping[str, Task]:
        """Tasks and attention checks by their id."""
        return {task.id: task for task in (*self.tasks, *self.checks)}

    @cached_property
    def items(self) -> tuple[Item, ...]:
        """All that is collected, in the order of tasks."""
        return tuple(item for task in self.tasks for item in list_items(task, self.settings.modes))

    @cached_property
    def check_items(self) -> tuple[Item, ...]:
        """The attention checks as they are assigned, each in one display mode, in turn."""
        modes = self.settings.modes
        return tuple(
            list_items(task, modes)[number % len(modes) if isinstance(task, ClickTask) else 0]
            for number, task in enumerate(self.checks)
        )

    @cached_property
    def subjects(self) -> int:
        """How many images or pairs there are to see; nobody is shown one twice."""
        return len({item.subject for item in self.items})

    @property
    def full_batch(self) -> int:
        """How many tasks a batch has at most, without attention checks."""
        return min(self.settings.batch_size, self.subjects)

    @property
    def most_per_person(self) -> int:
        """How many batches one person can get at most."""
        return min(self.settings.most_batches, -(-self.subjects // self.settings.batch_size))

    @property
    def stored_items(self) -> tuple[Item, ...]:
        """All items that the store must know."""
        return (*self.items, *self.check_items)

    @cached_property
    def training(self) -> tuple[Task, ...]:
        """The tasks of the training round."""
        return tuple(task for task in self.tasks if task.training)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the tasks: answers belong to these and no others."""
        return hash_value([format_task(task) for task in (*self.tasks, *self.checks)])

    @property
    def database(self) -> str:
        """The address of the database in the folder."""
        return f"sqlite:///{(self.path / ANSWERS).resolve()}"

    def file(self, name: str) -> Path:
        """A file that a task names; `name` comes from `tasks.jsonl`, never from a request."""
        return self.path / name

    def refuse_own_file(self, target: Path) -> None:
        """Raise an error where a file that is to be written is, or lies in, a part of this study."""
        place, folder = target.resolve(), self.path.resolve()
        if place.is_relative_to(folder) and place != folder and place.relative_to(folder).parts[0] in OWN_NAMES:
            raise OptionError("--out would replace a part of the study", file=target, remedy="choose another name")


def make_study(
    path: Path, settings: StudySettings, tasks: Sequence[Task], *, made: Mapping[str, Any], checks: Sequence[Task] = ()
) -> Study:
    """Write settings, tasks, attention checks and a new secret into a folder; its pictures are there or come next.

    `made` is what `made.json` holds besides its schema and the version. A folder that holds a study is an error:
    answers may belong to it.
    """
    check_no_study(path)
    made = {"schema": MADE_SCHEMA, "hardlook": __version__, **made}
    path.mkdir(parents=True, exist_ok=True)
    secret = secrets.token_bytes(32)
    handle = os.open(path / SECRET, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w") as stream:
        stream.write(secret.hex() + "\n")
    write_atomically(path / TASKS, "".join(format_task(task) + "\n" for task in tasks))
    if checks:
        write_atomically(path / CHECKS, "".join(format_task(task) + "\n" for task in checks))
    write_atomically(path / MADE, json.dumps(made, indent=2, ensure_ascii=False) + "\n")
    # Last, so that a folder with settings is a whole study.
    write_atomically(path / SETTINGS, settings.model_dump_json(by_alias=True, indent=2) + "\n")
    return Study(path, settings, tuple(tasks), made, secret, tuple(checks))


def check_no_study(path: Path) -> None:
    """Raise a `DataError` if the folder holds a study."""
    if (path / SETTINGS).exists():
        raise DataError("there is a study here already", file=path, remedy="choose another folder, or delete this one")


@contextmanager
def mark_unfinished(path: Path) -> Iterator[None]:
    """Mark a folder while its study is made, so that an interrupted command can be repeated; other files are errors."""
    check_no_study(path)
    if path.exists() and not path.is_dir():
        raise DataError("there is a file of this name", file=path, remedy="choose another folder")
    mark = path / UNFINISHED
    if path.is_dir() and not mark.exists() and any(path.iterdir()):
        raise DataError("the folder holds other files", file=path, remedy="choose an empty or a new folder")
    path.mkdir(parents=True, exist_ok=True)
    mark.write_text("This study is being made, or its command was interrupted: run it again.\n", encoding="utf-8")
    yield
    mark.unlink(missing_ok=True)


def start_progress(progress: Progress | None, total: int) -> Callable[[int, int], None]:
    """Start a progress bar, if one is given."""
    return progress(total, 0) if progress else lambda units, failed: None


def remove_stale_pictures(path: Path, tasks: Iterable[Task], previous: Iterable[str] = ()) -> None:
    """Delete the pictures of an interrupted attempt: all but those of the tasks and the `previous` masks."""
    kept = {path / name for task in tasks for name in list_task_files(task)} | {path / name for name in previous}
    for kind in (*KINDS, PREVIOUS_MASKS):
        for file in (path / kind).rglob("*"):
            if file.is_file() and file not in kept:
                file.unlink()


def open_study(path: Path) -> Study:
    """Read and check a study folder; errors name the file, the line and the field."""
    if not (path / SETTINGS).is_file():
        raise DataError("no study here", file=path, remedy=_REMEDY)
    content = _read_json(path / SETTINGS)
    with reading(path / SETTINGS, "not the settings of a study", remedy="correct them"):
        try:
            settings = StudySettings.model_validate(content)
        except ValidationError as error:
            raise DataError(describe_validation_error(error), remedy="correct this field") from error
    try:
        secret = bytes.fromhex((path / SECRET).read_text(encoding="ascii").strip())
    except (OSError, ValueError) as error:
        raise DataError("the secret cannot be read", file=path / SECRET, remedy=_NEW_SECRET) from error
    if len(secret) != 32:
        raise DataError(f"the secret has {len(secret)} bytes, not 32", file=path / SECRET, remedy=_NEW_SECRET)
    made = _read_json(path / MADE)
    if not isinstance(made, dict):
        raise DataError("not an object", file=path / MADE, remedy=_RESTORE)
    tasks = _read_tasks(path / TASKS, settings)
    if all(task.training for task in tasks):
        raise DataError("the study has no tasks", file=path / TASKS, remedy=_REMEDY)
    checks = _read_tasks(path / CHECKS, settings) if (path / CHECKS).exists() else ()
    return Study(path, settings, tasks, made, secret, checks)


def _read_json(path: Path) -> Any:
    if not path.exists():
        raise DataError("a part of the study is missing", file=path, remedy=_RESTORE)
    return read_json(path, what="not readable as JSON", remedy="correct it")


def _read_tasks(path: Path, settings: StudySettings) -> tuple[Task, ...]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError("the tasks cannot be read", file=path, remedy=_RESTORE) from error
    tasks: dict[str, Task] = {}
    for number, line in enumerate(lines, 1):
        with reading(path, f"line {number}", remedy="make the study anew"):
            task = parse_task(settings.kind, json.loads(line))
        if task.id in tasks:
            raise DataError(f"line {number}: a second task of this id", file=path, unit=task.id, remedy="remove one")
        if not _ID.fullmatch(task.id):
            what = f"line {number}: an id is made of letters, digits, dots, hyphens and underscores"
            raise DataError(what, file=path, unit=task.id, remedy="make the study anew")
        for name in list_task_files(task):
            parts = PurePosixPath(name)
            if parts.is_absolute() or ".." in parts.parts or "\\" in name or "\0" in name:
                what = f"line {number}: {name!r} lies outside the study"
                raise DataError(what, file=path, remedy="make the study anew")
        tasks[task.id] = task
    return tuple(tasks.values())


def list_task_files(task: Task) -> tuple[str, ...]:
    """The files that a task names, as posix paths in the study folder."""
    named = (task.image, getattr(task, "mask", ""), *getattr(task, "targets", {}).values())
    return tuple(name for name in named if name)


def check_complete(study: Study) -> None:
    """Raise a `DataError` for a missing file or target, which a participant would only see as a picture that fails."""
    for task in study.tasks:
        if isinstance(task, ClickTask) and not task.training:
            for mode in study.settings.modes:
                if not (task.description if mode == "text" else task.targets.get(mode)):
                    what = f"the study was not made for the display mode {mode!r}"
                    remedy = "remove this one from study.json, or make the study anew with --mode"
                    remedy = f"modes are chosen when a study is made: {remedy}"
                    raise DataError(what, file=study.path / SETTINGS, unit=task.id, remedy=remedy)
    named = {name: task.id for task in study.by_id.values() for name in list_task_files(task)}
    with reading(study.path / TASKS, "a task names a file that cannot exist", remedy=_RESTORE):
        missing = [name for name in named if not study.file(name).is_file()]
    if missing:
        more = f", and {len(missing) - 1:,} more" if len(missing) > 1 else ""
        what = f"a file of the study is missing{more}"
        raise DataError(what, file=study.file(missing[0]), unit=named[missing[0]], remedy=_RESTORE)
