"""From tasks to episodes: the same task as images, vectors or maps, as the learner asks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hardlook.benchmarks.metacoco.features import features_of, refuse_idle_encoder
from hardlook.benchmarks.metacoco.images import eligibility_of, open_images
from hardlook.benchmarks.metacoco.units import TaskUnit
from hardlook.errors import ModelError
from hardlook.models.roles import Episode
from hardlook.tasks.checking import check_tasks
from hardlook.tasks.drawing import Tasks, draw_tasks
from hardlook.tasks.eligibility import has_common_supports
from hardlook.tasks.image_table import Numbers
from hardlook.tasks.keyed_draws import key_of, random_numbers

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


def query_orders(tasks: Tasks, seed: int) -> Numbers:
    """(T, queries) the place, class by class, of each query in the order in which the learner gets them.

    Class by class their order would give the labels away to a learner that looks at all of them.
    """
    key = key_of(seed, "order of queries", tasks.mode, tasks.ways, tasks.shots)
    places = np.arange(tasks.query[0].size)
    return np.argsort(random_numbers(key, tasks.index[:, None], places), axis=1, kind="stable")


def episodes_of(units: Sequence[TaskUnit], tasks: Tasks, order: Numbers, model: Any) -> list[Episode]:
    """One episode a task; supports class by class, queries in the `order` of `query_orders`."""
    accepts = getattr(model, "accepts", None)
    if accepts not in ACCEPTED:
        raise ModelError(
            f"the learner accepts {accepts!r}", remedy=f"its attribute `accepts` is one of {', '.join(ACCEPTED)}"
        )
    settings = units[0].settings
    refuse_idle_encoder(settings, accepts)
    labels = np.repeat(np.arange(tasks.ways), tasks.shots)
    supports, queries = (rows.reshape(len(rows), -1) for rows in (tasks.support, tasks.query))
    queries = np.take_along_axis(queries, order, axis=1)
    if accepts == "images":
        opened = open_images(settings.source)

        def take(rows: Numbers) -> Any:
            return [opened.read(int(row)) for row in rows]
    else:
        table = features_of(settings, accepts)

        def take(rows: Numbers) -> Any:
            return np.asarray(table[rows])

    return [
        Episode(take(supports[place]), labels, take(queries[place]), tasks.ways, key=_key(unit))
        for place, unit in enumerate(units)
    ]


def _key(unit: TaskUnit) -> str:
    """Names the supports: what a learner draws from it is the same in every mode that shows the same ones."""
    own = "" if has_common_supports(unit.mode, unit.settings.blind_supports) else f"{unit.mode}-"
    return f"{unit.ways}way-{unit.shots}shot-{own}{unit.index}"
