"""The record of a task: what was asked, and every query's answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.benchmarks.metacoco.units import TaskUnit
from hardlook.contract.benchmark import Unit
from hardlook.contract.records import Column, Record, RecordSchema
from hardlook.errors import ModelError
from hardlook.tasks.drawing import Tasks
from hardlook.tasks.image_table import ImageTable, Numbers

SCHEMA = RecordSchema(
    (
        Column("mode", "text", "how supports' and queries' contexts relate", "slice"),
        Column("ways", "int", "classes of the task", "slice"),
        Column("shots", "int", "supports of a class", "slice"),
        Column("index", "int", "the task's number: the same classes and supports in every mode"),
        Column("repeat", "int", "which repeat the task belongs to", "slice"),
        Column("correct", "int", "queries answered rightly"),
        Column("queries", "int", "queries of the task"),
        Column("concepts", "text", "the classes, separated by line breaks"),
        Column("contexts", "text", "the contexts that occur, separated by line breaks"),
        Column("support_context", "ints", "of each class: place of its supports' context, -1 for several"),
        Column("query_context", "ints", "of each query, class by class: place of its context"),
        Column("predicted", "ints", "of each query: place of the class that was answered"),
        Column("support", "ints", "rows of the supports in the dataset", "picture"),
        Column("query", "ints", "rows of the queries in the dataset", "picture"),
    )
)


def records_of(
    units: Sequence[Unit], tasks: Tasks, order: Numbers, table: ImageTable, scores: Sequence[NDArray[np.float32]]
) -> list[Record]:
    """One record a task, its queries class by class; `scores` (queries, ways) are the learner's, in `order`."""
    return [
        _record(unit, place, tasks, order[place], table, answer)
        for place, (unit, answer) in enumerate(zip(units, scores, strict=True))
    ]


def _record(unit: Unit, place: int, tasks: Tasks, order: Numbers, table: ImageTable, answer: Any) -> Record:
    task: TaskUnit = unit.payload
    expected = (tasks.query[place].size, tasks.ways)
    if (wrong := _misfit(answer, expected)) is not None:
        remedy = "`hardlook check few-shot-learner MODEL` shows what else does not fit"
        raise ModelError(wrong, unit=unit.id, remedy=remedy)
    predicted = np.empty(len(order), np.int64)
    predicted[order] = answer.argmax(1)
    truth = np.repeat(np.arange(tasks.ways), tasks.query.shape[2])
    query = tasks.query[place].ravel()
    occurring, coded = np.unique(
        np.concatenate([tasks.support_context[place], table.context[query]]), return_inverse=True
    )
    known = occurring[occurring >= 0]
    coded = coded - int(len(known) < len(occurring))  # -1, for mixed supports, sorts first
    keep = task.settings.keep_predictions
    return {
        "unit": unit.id,
        "mode": task.mode,
        "ways": task.ways,
        "shots": task.shots,
        "index": task.index,
        "repeat": task.repeat,
        "correct": int((predicted == truth).sum()),
        "queries": len(truth),
        "concepts": "\n".join(table.concepts[concept] for concept in tasks.classes[place]),
        "contexts": "\n".join(table.contexts[context] for context in known),
        "support_context": coded[: tasks.ways].tolist(),
        "query_context": coded[tasks.ways :].tolist() if keep else [],
        "predicted": predicted.tolist() if keep else [],
        "support": tasks.support[place].ravel().tolist(),
        "query": query.tolist(),
    }


def _misfit(answer: Any, expected: tuple[int, int]) -> str | None:
    """What is wrong with a learner's answer."""
    if not isinstance(answer, np.ndarray) or answer.shape != expected:
        came = f"shape {answer.shape}" if isinstance(answer, np.ndarray) else type(answer).__name__
        return f"the learner answered {came} where {expected} scores (queries, ways) were expected"
    lost = int((~np.isfinite(answer)).sum())
    return f"{lost} of {answer.size} scores of the learner are not finite" if lost else None
