"""From tasks to episodes: the same task as images, vectors or maps, as the learner asks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hardlook.benchmarks.metacoco.features import features_of
from hardlook.benchmarks.metacoco.images import eligibility_of, open_images
from hardlook.benchmarks.metacoco.units import TaskUnit
from hardlook.errors import ModelError
from hardlook.models.roles import Episode
from hardlook.tasks.checking import check_tasks
from hardlook.tasks.drawing import Tasks, draw_tasks

ACCEPTED = ("images", "features", "maps")


def tasks_of(units: Sequence[TaskUnit]) -> Tasks:
    """The tasks of units that share mode, ways and shots; drawn anew, and checked for leaks."""
    first = units[0]
    settings = first.settings
    eligible = eligibility_of(
        settings.source,
        settings.modes,
        first.ways,
        first.shots,
        settings.queries,
        settings.blind_supports,
        settings.support_contexts,
    )
    opened = open_images(settings.source)
    tasks = draw_tasks(
        opened.table,
        eligible,
        first.mode,
        first.ways,
        first.shots,
        settings.queries,
        [unit.index for unit in units],
        seed=settings.source.seed,
        blind_supports=settings.blind_supports,
    )
    check_tasks(tasks, opened.table)
    return tasks


def episodes_of(units: Sequence[TaskUnit], tasks: Tasks, model: Any) -> list[Episode]:
    """One episode a task; supports and queries class by class."""
    accepts = getattr(model, "accepts", None)
    if accepts not in ACCEPTED:
        raise ModelError(
            f"the learner accepts {accepts!r}", remedy=f"its attribute `accepts` is one of {', '.join(ACCEPTED)}"
        )
    settings = units[0].settings
    labels = np.repeat(np.arange(tasks.ways), tasks.shots)
    supports, queries = (rows.reshape(len(rows), -1) for rows in (tasks.support, tasks.query))
    if accepts == "images":
        opened = open_images(settings.source)

        def take(rows: np.ndarray) -> Any:
            return [opened.read(int(row)) for row in rows]
    else:
        table = features_of(settings, accepts)

        def take(rows: np.ndarray) -> Any:
            return np.asarray(table[rows])

    return [
        Episode(take(supports[place]), labels, take(queries[place]), tasks.ways, key=_key(unit))
        for place, unit in enumerate(units)
    ]


def _key(unit: TaskUnit) -> str:
    return f"{unit.ways}way-{unit.shots}shot-{unit.mode}-{unit.index}"
