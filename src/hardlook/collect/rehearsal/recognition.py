"""Which task a simulated participant has before them: known by the very pictures that the server sent.

A participant is told trial ids and nothing else, so the pictures are compared, byte by byte, with those of the study.

>>> import tempfile
>>> from pathlib import Path
>>> from hardlook.collect.study.folder import make_study
>>> from hardlook.collect.study.settings import StudySettings
>>> from hardlook.collect.study.tasks import ReviewTask
>>> path = Path(tempfile.mkdtemp())
>>> _ = (path / "a.jpg").write_bytes(b"a picture")
>>> settings = StudySettings(kind="review", title="Cats", devices=("any",))
>>> cats = make_study(path, settings, [ReviewTask("t1", "a", "a", "cat", "snow", "a.jpg")], made={})
>>> [task.id for task in Recognition(cats).tasks(b"a picture", None, {"concept": "cat", "context": "snow"})]
['t1']
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from hardlook.collect.study.folder import Study
from hardlook.collect.study.tasks import ClickTask, RatingTask, ReviewTask, Task
from hardlook.errors import DataError

_Key = tuple[str, ...]


class Recognition:
    """All tasks of a study by what a participant sees of them."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._tasks: dict[_Key, list[Task]] = {}
        for task in study.tasks:
            if not task.training:
                for key in self._keys(task):
                    self._tasks.setdefault(key, []).append(task)

    def tasks(self, image: bytes | None, target: bytes | None, shown: Mapping[str, Any]) -> tuple[Task, ...]:
        """The task of a picture, its target and what was said with them; a `DataError` where it is none of ours.

        Several where they look the same: two measures may give a pair of labels the same value.
        """
        words = (
            shown.get("description", "") if target is None else "",
            shown.get("concept", ""),
            shown.get("context", ""),
            "/".join(shown.get("labels", ())),
            _value(shown.get("value")),
        )
        found = self._tasks.get((_hash(image), _hash(target), *words), [])
        if not found:
            raise DataError("the server showed a picture that no task has", unit=str(shown.get("id", "")))
        return tuple(found)

    def _keys(self, task: Task) -> list[_Key]:
        image = _hash(self._study.file(task.image).read_bytes() if task.image else None)
        if isinstance(task, ClickTask):
            targets = [self._study.file(name).read_bytes() for name in task.targets.values()]
            pictured = [(image, _hash(target), "", "", "", "", "") for target in targets]
            return [*pictured, (image, "", task.description, "", "", "", "")]
        if isinstance(task, ReviewTask):
            return [(image, "", "", task.concept, task.context, "", "")]
        assert isinstance(task, RatingTask)
        value = task.value if self._study.settings.question == "fit" else None
        return [(image, "", "", "", "", "/".join(task.labels), _value(value))]


def _value(value: float | None) -> str:
    return "" if value is None else f"{value:.9f}"


def _hash(content: bytes | None) -> str:
    return "" if content is None else hashlib.blake2b(content, digest_size=16).hexdigest()
