"""A rating study: means and distributions so far, by measure where a value is shown, and every thing that is rated."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import polars as pl

from hardlook.collect.research.gallery_view import thumbnail_address
from hardlook.collect.research.paging import page_of
from hardlook.collect.research.parameters import Asked, Pairs
from hardlook.collect.research.snapshot import Snapshot
from hardlook.collect.research.task_counts import counting
from hardlook.collect.study.tasks import RatingTask
from hardlook.report.numerals import counted, numeral

ADDRESS, SIZE = "/research/images", 100
SORTS = {
    "fewest": "fewest ratings first",
    "low": "lowest mean first",
    "high": "highest mean first",
    "order": "in order",
}
SCALE = tuple(range(1, 11))


def ratings_view(snapshot: Snapshot, excluded: Collection[str], pairs: Pairs) -> dict[str, Any]:
    """What the template `ratings.html` shows; ratings by `excluded` participants are left out."""
    asked = Asked(pairs, ("q", "measure", "sort", "page"))
    tasks = [task for task in snapshot.study.tasks if isinstance(task, RatingTask) and not task.training]
    measures = tuple(dict.fromkeys(task.measure for task in tasks))
    measure, text = asked.choice("measure", measures, ""), asked.text("q").casefold()
    sort = asked.choice("sort", tuple(SORTS))
    found = [task for task in tasks if not measure or task.measure == measure]
    found = [task for task in found if text in " ".join(task.labels).casefold()]
    by_task = ratings_by_task(snapshot.answers.filter(counting(snapshot.answers, excluded)))
    shown, pager = page_of(_sorted(found, by_task, sort), asked, ADDRESS, SIZE)
    return {
        "measures": measure_rows(tasks, by_task),
        "scale": SCALE,
        "question": snapshot.study.settings.question,
        "wanted": snapshot.study.settings.target_answers,
        "counted": counted(len(found), "thing"),
        "of": len(tasks),
        "filtered": len(found) < len(tasks),
        "rows": [_row(task, by_task.get(task.id, [])) for task in shown],
        "pager": pager,
        "asked": {"q": asked.text("q"), "measure": measure, "sort": sort},
        "choices": [name for name in measures if name],
        "sorts": list(SORTS.items()),
    }


def ratings_by_task(answers: pl.DataFrame) -> dict[str, list[int]]:
    """The ratings of each task that has any, 1 to 10.

    >>> ratings_by_task(pl.DataFrame({"task": ["a", "a", "b"], "value": [3, 5, None]}))
    {'a': [3, 5]}
    """
    rated = answers.filter(pl.col("value").is_in(SCALE)).group_by("task", maintain_order=True).agg("value")
    return dict(rated.iter_rows())


def measure_rows(tasks: list[RatingTask], by_task: dict[str, list[int]]) -> list[dict[str, Any]]:
    """By measure: ratings, things rated, their mean, and how often each rating was given, with the heights of bars.

    All ratings count alike.
    """
    given: dict[str, list[int]] = {task.measure: [] for task in tasks}
    things = dict.fromkeys(given, 0)
    for task in tasks:
        ratings = by_task.get(task.id, [])
        given[task.measure] += ratings
        things[task.measure] += bool(ratings)
    rows = []
    for measure, ratings in given.items():
        counts = [ratings.count(rating) for rating in SCALE]
        most = max(counts)
        rows.append(
            {
                "measure": measure or "all",
                "ratings": numeral(len(ratings), 0),
                "things": numeral(things[measure], 0),
                "mean": numeral(sum(ratings) / len(ratings) if ratings else None, 2),
                "counts": counts,
                "heights": [round(24 * count / most, 1) if most else 0.0 for count in counts],
            }
        )
    return rows


def _sorted(tasks: list[RatingTask], by_task: dict[str, list[int]], sort: str) -> list[RatingTask]:
    if sort == "order":
        return tasks
    if sort == "fewest":
        return sorted(tasks, key=lambda task: len(by_task.get(task.id, [])))
    # Things without a rating have no mean and come last, whichever end is first.
    rated = [task for task in tasks if task.id in by_task]
    ordered = sorted(rated, key=lambda task: sum(by_task[task.id]) / len(by_task[task.id]), reverse=sort == "high")
    return ordered + [task for task in tasks if task.id not in by_task]


def _row(task: RatingTask, ratings: list[int]) -> dict[str, Any]:
    return {
        "labels": ", ".join(task.labels),
        "picture": thumbnail_address(task.id) if task.image else "",
        "measure": task.measure,
        "value": numeral(task.value, 3) if task.measure else "",
        "ratings": len(ratings),
        "mean": numeral(sum(ratings) / len(ratings) if ratings else None, 2),
        "given": ", ".join(map(str, sorted(ratings)[:20])) + (" …" if len(ratings) > 20 else ""),
    }
