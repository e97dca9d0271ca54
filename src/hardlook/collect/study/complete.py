"""Whether a study can be served: every task has what its display modes need, and every file is there.

>>> import tempfile
>>> from pathlib import Path
>>> from hardlook.collect.study.folder import make_study
>>> from hardlook.collect.study.settings import StudySettings
>>> from hardlook.collect.study.tasks import RatingTask
>>> pair = RatingTask("t000001", "pair/cat/dog", "pair", ("cat", "dog"), "path", 0.2)
>>> settings = StudySettings(kind="ratings", title="Alike", devices=("any",))
>>> refuse_incomplete(make_study(Path(tempfile.mkdtemp()) / "study", settings, [pair], made={}))
"""

from __future__ import annotations

from hardlook.collect.study.folder import SETTINGS, Study, files_of
from hardlook.collect.study.tasks import ClickTask
from hardlook.errors import DataError

_MADE = "modes are chosen when a study is made: take this one out of study.json, or make the study anew with --mode"


def refuse_incomplete(study: Study) -> None:
    """A `DataError` for a display mode that a task has no target for, and for a file that is missing.

    Found before anybody comes: a participant could only be told that a picture does not load.
    """
    for task in study.tasks:
        if isinstance(task, ClickTask) and not task.training:
            _refuse_mode(study, task)
    named = {name: task.id for task in study.tasks for name in files_of(task)}
    missing = [name for name in named if not study.file(name).is_file()]
    if missing:
        more = f", and {len(missing) - 1:,} more" if len(missing) > 1 else ""
        remedy = "restore it from a copy of the study, or make the study anew in another folder"
        raise DataError(
            f"a file of the study is missing{more}", file=study.file(missing[0]), unit=named[missing[0]], remedy=remedy
        )


def _refuse_mode(study: Study, task: ClickTask) -> None:
    for mode in study.settings.modes:
        if not (task.description if mode == "text" else task.targets.get(mode)):
            what = f"the study was not made for the display mode {mode!r}"
            raise DataError(what, file=study.path / SETTINGS, unit=task.id, remedy=_MADE)
