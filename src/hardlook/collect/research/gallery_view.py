"""The gallery: every task with its counts by display mode and device, the neediest first if asked."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any
from urllib.parse import quote

from hardlook.collect.research.paging import page_of
from hardlook.collect.research.parameters import Asked, Pairs
from hardlook.collect.research.snapshot import Snapshot
from hardlook.collect.research.task_counts import TaskCounts, task_counts
from hardlook.collect.study.tasks import ClickTask, ReviewTask, Task
from hardlook.report.numerals import counted

ADDRESS, SIZE = "/research/images", 48
SORTS = {"fewest": "fewest valid answers first", "most": "most valid answers first", "order": "in the study's order"}


def gallery_view(snapshot: Snapshot, excluded: Collection[str], pairs: Pairs) -> dict[str, Any]:
    """What the template `images.html` shows."""
    asked = Asked(pairs, ("q", "below", "sort", "page"))
    study, text = snapshot.study, asked.text("q").casefold()
    below, sort = asked.whole("below", 0, 1, 1_000_000), asked.choice("sort", tuple(SORTS))
    every = task_counts(study, snapshot.answers, excluded)
    found = [one for one in every if not below or one.fewest < below]
    if text:
        found = [one for one in found if text in name_of(study.by_id[one.task]).casefold()]
    if sort != "order":
        # Sorting is stable: equals stay in the study's order.
        found = sorted(found, key=lambda one: (one.fewest, one.valid), reverse=sort == "most")
    shown, pager = page_of(found, asked, ADDRESS, SIZE)
    return {
        "counted": counted(len(found), "task"),
        "of": len(every),
        "filtered": len(found) < len(every),
        "cards": [_card(study.by_id[one.task], one) for one in shown],
        "pager": pager,
        "asked": {"q": asked.text("q"), "below": below or "", "sort": sort},
        "sorts": list(SORTS.items()),
        "target": study.settings.target_answers,
    }


def _card(task: Task, counts: TaskCounts) -> dict[str, Any]:
    return {
        "name": name_of(task),
        "address": image_address(task.id),
        "picture": thumbnail_address(task.id) if task.image else "",
        "devices": list(dict.fromkeys(device for _, device in counts.cells)),
        "rows": table_rows(counts),
        "fewest": counts.fewest,
    }


def table_rows(counts: TaskCounts) -> list[tuple[str, list[tuple[int, int]]]]:
    """A row a display mode, in it the counts of every device."""
    rows: dict[str, list[tuple[int, int]]] = {}
    for (mode, _), cell in counts.cells.items():
        rows.setdefault(mode, []).append(cell)
    return list(rows.items())


def name_of(task: Task) -> str:
    """What people call a task.

    >>> from hardlook.collect.study.tasks import RatingTask
    >>> name_of(RatingTask("t1", "pair/cat/dog", "pair", ("cat", "dog"), "path", 0.2))
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
    """A task's picture, small."""
    return f"/research/pictures/{quote(task, safe='')}/small"


def picture_address(task: str) -> str:
    """A task's picture as it is."""
    return f"/research/pictures/{quote(task, safe='')}/whole"
