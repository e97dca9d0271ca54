"""Checking drawn tasks against the rules of their mode, independently of how they were drawn.

>>> from hardlook.data.concept_context import build_image_table
>>> table = build_image_table(["cat", "cat"], ["grass", "grass"], ["same", "same"])
>>> one = np.zeros((1, 1), np.int64)
>>> check_tasks(Tasks("iid", 1, 1, one[0], one, one[..., None], one[..., None] + 1, one), table)
Traceback (most recent call last):
...
hardlook.errors.DataError: a query has the content of a support
  unit: task 0 (iid, 1-way 1-shot)
  ...
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hardlook.data.concept_context import ImageTable
from hardlook.errors import DataError
from hardlook.metacoco.tasks.drawing import Tasks
from hardlook.metacoco.tasks.images import Numbers


def check_tasks(tasks: Tasks, table: ImageTable) -> None:
    """Raise a `DataError` that names the first task which breaks a rule."""
    for rule, kept in _check_rules(tasks, table):
        if not kept.all():
            number = tasks.index[int(np.argmin(kept))]
            raise DataError(
                rule,
                unit=f"task {number} ({tasks.mode}, {tasks.ways}-way {tasks.shots}-shot)",
                remedy="draw the tasks again from this table",
            )


def _check_rules(tasks: Tasks, table: ImageTable) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """(the error, (T,) whether each task is free of it)."""
    count, ways = tasks.classes.shape
    yield "a class occurs twice", _all_differ(tasks.classes)
    for rows in (tasks.support, tasks.query):
        own = table.concept[rows] == tasks.classes[..., None]
        yield "an image is not of its class", np.asarray(own.all((1, 2)))
    support, query = (table.content[rows].reshape(count, ways * rows.shape[2]) for rows in (tasks.support, tasks.query))
    yield "a query has the content of a support", ~_have_common(support, query)
    yield "two supports have one content", _all_differ(support)
    within = query.reshape(count * ways, tasks.query.shape[2])
    yield "two queries of a class have one content", np.asarray(_all_differ(within).reshape(count, ways).all(1))
    known = tasks.support_context >= 0
    seen = table.context[tasks.support] == tasks.support_context[..., None]
    yield "a support is not in its class's support context", np.asarray((seen.all(2) | ~known).all(1))
    if tasks.mode != "blind":
        yield f"a query's context is not one of the mode {tasks.mode}", _contexts_match_mode(tasks, table)


def _contexts_match_mode(tasks: Tasks, table: ImageTable) -> NDArray[np.bool_]:
    own, seen = tasks.support_context[..., None], table.context[tasks.query]
    if tasks.mode == "ood":
        return np.asarray((seen != own).all((1, 2)))
    if tasks.mode == "swapped":
        one = (seen == seen[..., :1]).all((1, 2))
        # Unequal to its own and among the task's: then it is another class's.
        others = (seen[..., :1] == tasks.support_context[:, None, :]).any(2) & (seen[..., 0] != own[..., 0])
        return np.asarray(one & others.all(1))
    same = (seen == own).all((1, 2))
    if tasks.mode == "shared":
        same = same & (tasks.support_context == tasks.support_context[:, :1]).all(1)
    return np.asarray(same)


def _all_differ(numbers: Numbers) -> NDArray[np.bool_]:
    """(n,) whether the numbers of each row all differ."""
    return np.asarray((np.diff(np.sort(numbers, axis=1), axis=1) != 0).all(1))


def _have_common(left: Numbers, right: Numbers) -> NDArray[np.bool_]:
    """(n,) whether rows of two arrays (n, a) and (n, b) have a number in common."""
    found = np.zeros(len(left), np.bool_)
    for column in left.T:  # a few dozen columns: cheaper than sorting every row
        found |= (right == column[:, None]).any(1)
    return found
