"""From tasks to episodes: the same task as images, vectors or maps, as the learner asks.

Features of all images of a run, each encoded once, whatever the modes, ways, shots and learners.

The record of a task: what was asked, and every query's answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hardlook.data.images import read_image
from hardlook.errors import ModelError, OptionError
from hardlook.harness.benchmark import Unit
from hardlook.harness.records import Column, Record, RecordSchema
from hardlook.metacoco.tasks.checking import check_tasks
from hardlook.metacoco.tasks.drawing import Tasks, draw_tasks
from hardlook.metacoco.tasks.eligibility import has_common_supports
from hardlook.metacoco.tasks.images import ImageTable, Numbers, make_key, random_numbers
from hardlook.metacoco.units import OpenedImages, TaskSettings, TaskUnit, find_eligible, open_images
from hardlook.models.arguments import parse_arguments
from hardlook.models.feature_tables import FeatureTable, build_feature_table
from hardlook.models.roles import Episode, Image

if TYPE_CHECKING:
    pass

Progress = Callable[[int, int], Any]


def encode_features(settings: TaskSettings, accepts: str, show_progress: Progress | None = None) -> None:
    """Encode what is not encoded yet, where the learner works on features; workers then find it on disk."""
    check_encoder_used(settings, accepts)
    if accepts in ("features", "maps"):
        _table(settings, accepts, show_progress)


def check_encoder_used(settings: TaskSettings, accepts: str) -> None:
    """Raise an `OptionError` where an encoder was asked for and the learner would not use it."""
    if accepts == "images" and settings.encoder_asked:
        raise OptionError(
            f"--encoder, --encoder-args: the learner works on images and would not use {settings.encoder!r}",
            remedy="leave them out; a learner that encodes images itself takes --model-arg encoder=NAME",
        )


def load_features(settings: TaskSettings, accepts: str) -> NDArray[np.float32]:
    """(images, D) vectors or (images, C, h, w) maps, row by row as the table of images; mapped into memory."""
    table = _opened(settings, accepts)
    if accepts == "features":
        return table.vectors
    if table.maps is None:
        raise ModelError("the learner works on maps, and the encoder gives none", remedy="choose another --encoder")
    return table.maps


@lru_cache(maxsize=4)
def _opened(settings: TaskSettings, accepts: str) -> FeatureTable:
    return _table(settings, accepts, None)


def _table(settings: TaskSettings, accepts: str, show_progress: Progress | None) -> FeatureTable:
    opened = open_images(settings.source)
    return build_feature_table(
        settings.encoder,
        parse_arguments(settings.encoder_args),
        opened.files or [Path(name) for name in opened.names],
        opened.hashes,
        maps=accepts == "maps",
        read=_reader(opened),
        show_progress=show_progress,
    )


def _reader(opened: OpenedImages) -> Callable[[Path], Image]:
    if opened.world is None:
        return read_image
    rows = {name: row for row, name in enumerate(opened.names)}
    return lambda path: opened.read(rows[path.name])


ACCEPTED = ("images", "features", "maps")


def draw_unit_tasks(units: Sequence[TaskUnit]) -> Tasks:
    """The tasks of units that share mode, ways and shots; drawn anew, and checked for leaks."""
    first = units[0]
    settings = first.settings
    eligible = find_eligible(
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
    key = make_key(seed, "order of queries", tasks.mode, tasks.ways, tasks.shots)
    places = np.arange(tasks.query[0].size)
    return np.argsort(random_numbers(key, tasks.index[:, None], places), axis=1, kind="stable")


def build_episodes(units: Sequence[TaskUnit], tasks: Tasks, order: Numbers, model: Any) -> list[Episode]:
    """One episode a task; supports class by class, queries in the `order` of `query_orders`."""
    accepts = getattr(model, "accepts", None)
    if accepts not in ACCEPTED:
        raise ModelError(
            f"the learner accepts {accepts!r}", remedy=f"its attribute `accepts` is one of {', '.join(ACCEPTED)}"
        )
    settings = units[0].settings
    check_encoder_used(settings, accepts)
    labels = np.repeat(np.arange(tasks.ways), tasks.shots)
    supports, queries = (rows.reshape(len(rows), -1) for rows in (tasks.support, tasks.query))
    queries = np.take_along_axis(queries, order, axis=1)
    if accepts == "images":
        opened = open_images(settings.source)

        def take(rows: Numbers) -> Any:
            return [opened.read(int(row)) for row in rows]
    else:
        table = load_features(settings, accepts)

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


def make_records(
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


def encode_images(units: Sequence[Unit], model: Any, show_progress: Any) -> None:
    """Encode every image once, before workers start; refuse an encoder that the learner would not use."""
    encode_features(units[0].payload.settings, getattr(model, "accepts", ""), show_progress)


def evaluate_units(units: Sequence[Unit], model: Any) -> Sequence[Record]:
    """Draw the tasks of each mode together, let the learner answer them together."""
    if model is None:
        raise ModelError("MetaCoCo needs a learner", remedy="`hardlook models --role few-shot-learner` lists some")
    alike: dict[tuple[str, int, int], list[Unit]] = {}
    for unit in units:
        alike.setdefault((unit.payload.mode, unit.payload.ways, unit.payload.shots), []).append(unit)
    records: list[Record] = []
    for some in alike.values():
        payloads = [unit.payload for unit in some]
        tasks = draw_unit_tasks(payloads)
        order = query_orders(tasks, payloads[0].settings.source.seed)
        answers = model.classify(build_episodes(payloads, tasks, order, model))
        if len(answers) != len(some):
            raise ModelError(f"the learner answered {len(answers)} of {len(some)} episodes", unit=some[0].id)
        records += make_records(some, tasks, order, open_images(payloads[0].settings.source).table, answers)
    return records
