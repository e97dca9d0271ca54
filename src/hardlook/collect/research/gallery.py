"""The gallery page of a click study: every task with its picture and its counts by display mode and device."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hardlook.collect.research.requests import Pairs, Parameters, paginate
from hardlook.collect.research.snapshot import Snapshot, select_counted
from hardlook.collect.study.folder import Study
from hardlook.collect.study.pictures import read_mask
from hardlook.collect.study.tasks import ClickTask, ReviewTask, Task
from hardlook.collect.web.pages import find_image_type
from hardlook.collect.web.refusals import RequestRefused
from hardlook.errors import DataError
from hardlook.report.formatting import format_count

ADDRESS, TASKS_PER_PAGE = "/research/images", 48

SORTS = {"fewest": "fewest valid answers first", "most": "most valid answers first", "order": "in the study's order"}

THUMBNAIL_PIXELS, MAX_THUMBNAIL_BYTES, _JPEG_QUALITY = 320, 32 * 2**20, 80


def gallery_view(snapshot: Snapshot, excluded: Collection[str], pairs: Pairs) -> dict[str, Any]:
    """The values of the template `images.html`."""
    parameters = Parameters(pairs, ("q", "below", "sort", "page"))
    study, text = snapshot.study, parameters.text("q").casefold()
    below, sort = parameters.whole("below", 0, 1, 1_000_000), parameters.choice("sort", tuple(SORTS))
    counts = count_answers_by_task(study, snapshot.answers, excluded)
    found = [task for task in counts if not below or task.fewest < below]
    if text:
        found = [task for task in found if text in describe_task(study.by_id[task.task]).casefold()]
    if sort != "order":
        # Sorting is stable: equals stay in the study's order.
        found = sorted(found, key=lambda task: (task.fewest, task.valid), reverse=sort == "most")
    shown, pager = paginate(found, parameters, ADDRESS, TASKS_PER_PAGE)
    return {
        "counted": format_count(len(found), "task"),
        "of": len(counts),
        "filtered": len(found) < len(counts),
        "cards": [_card(study.by_id[task.task], task) for task in shown],
        "pager": pager,
        "asked": {"q": parameters.text("q"), "below": below or "", "sort": sort},
        "sorts": list(SORTS.items()),
        "target": study.settings.target_answers,
    }


def _card(task: Task, counts: TaskCounts) -> dict[str, Any]:
    rows: dict[str, list[tuple[int, int]]] = {}
    for (mode, _), cell in counts.cells.items():
        rows.setdefault(mode, []).append(cell)
    return {
        "name": describe_task(task),
        "address": image_address(task.id),
        "picture": thumbnail_address(task.id) if task.image else "",
        "devices": list(dict.fromkeys(device for _, device in counts.cells)),
        "rows": list(rows.items()),
        "fewest": counts.fewest,
    }


@dataclass(frozen=True)
class TaskCounts:
    """Counts of one task; keys of `cells` are (mode, device), values (answers that count, all answers)."""

    task: str
    cells: dict[tuple[str, str], tuple[int, int]]

    @cached_property
    def fewest(self) -> int:
        """Answers that count in the cell with the fewest."""
        return min(valid for valid, _ in self.cells.values())

    @cached_property
    def valid(self) -> int:
        """Answers that count, over all cells."""
        return sum(valid for valid, _ in self.cells.values())


def count_answers_by_task(study: Study, answers: pl.DataFrame, excluded: Collection[str] = ()) -> list[TaskCounts]:
    """The counts of every task that is handed out, in the order of tasks; cells without an answer are 0."""
    keys = ("task", "mode", "device")
    grouped = (
        answers.select(*keys, select_counted(answers, excluded).alias("counts"))
        .group_by(keys)
        .agg(pl.col("counts").sum(), pl.len().alias("answers"))
    )
    found = {(task, mode, device): (valid, every) for task, mode, device, valid, every in grouped.iter_rows()}
    cells: dict[str, dict[tuple[str, str], tuple[int, int]]] = {}
    for item in study.items:
        for device in study.settings.devices:
            counts = found.get((item.task, item.mode, device), (0, 0))
            cells.setdefault(item.task, {})[item.mode, device] = counts
    return [TaskCounts(task, of_task) for task, of_task in cells.items()]


def describe_task(task: Task) -> str:
    """A task's name for people.

    >>> from hardlook.collect.study.tasks import RatingTask
    >>> describe_task(RatingTask("t1", "pair/cat/dog", "pair", ("cat", "dog"), "path", 0.2))
    'cat, dog (path)'
    """
    if isinstance(task, ClickTask):
        return task.full_stem
    if isinstance(task, ReviewTask):
        return f"{task.name}: {task.concept}, {task.context}"
    return f"{', '.join(task.labels)} ({task.measure})"


def image_address(task: str) -> str:
    """The page of a task.

    >>> image_address("t 1/..")
    '/research/images/t%201%2F..'
    """
    return f"{ADDRESS}/{quote(task, safe='')}"


def thumbnail_address(task: str) -> str:
    """A task's picture, reduced."""
    return f"/research/pictures/{quote(task, safe='')}/small"


def picture_address(task: str) -> str:
    """A task's picture in full size."""
    return f"/research/pictures/{quote(task, safe='')}/whole"


class TaskPictures:
    """Pictures of a study's tasks, found by task id and never by a path; up to 32 MiB of thumbnails are cached."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self._thumbnails: OrderedDict[str, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def whole(self, task: str) -> tuple[bytes, str]:
        """The picture's file and its media type."""
        content = self._file(task).read_bytes()
        media_type = find_image_type(content)
        if not media_type:
            raise _no_picture("The picture of this task is in no known format.")
        return content, media_type

    def small(self, task: str) -> bytes:
        """A JPEG of at most 320 pixels a side."""
        with self._lock:
            if task in self._thumbnails:
                self._thumbnails.move_to_end(task)
                return self._thumbnails[task]
        content = _make_thumbnail(self._file(task))
        with self._lock:
            self._thumbnails[task] = content
            while sum(map(len, self._thumbnails.values())) > MAX_THUMBNAIL_BYTES:
                self._thumbnails.popitem(last=False)
        return content

    def mask(self, task: str) -> NDArray[np.bool_] | None:
        """The region (H, W) that a click should hit; None where there is none, or its file is missing or broken."""
        known = self.study.by_id[task]
        if not isinstance(known, ClickTask):
            return None
        try:
            return read_mask(self.study.file(known.mask), (known.width, known.height))
        except (DataError, OSError):
            return None

    def _file(self, task: str) -> Path:
        known = self.study.by_id.get(task)
        if known is None or not known.image:
            raise _no_picture("There is no such picture.")
        path = self.study.file(known.image)
        if not path.is_file():
            raise _no_picture("The picture of this task is gone from the study's folder.")
        return path


def _make_thumbnail(path: Path) -> bytes:
    import cv2

    encoded = np.frombuffer(path.read_bytes(), np.uint8)
    pixels = cv2.imdecode(encoded, cv2.IMREAD_COLOR) if encoded.size else None
    if pixels is None:
        raise _no_picture("The picture of this task cannot be read.")
    height, width = pixels.shape[:2]
    factor = min(1.0, THUMBNAIL_PIXELS / max(height, width))
    size = max(1, round(width * factor)), max(1, round(height * factor))
    small = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA)
    _, jpeg = cv2.imencode(".jpg", small, [cv2.IMWRITE_JPEG_QUALITY, _JPEG_QUALITY])
    return jpeg.tobytes()


def _no_picture(message: str) -> RequestRefused:
    return RequestRefused(404, "no-picture", message)
