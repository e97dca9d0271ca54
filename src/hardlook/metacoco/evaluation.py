"""Evaluating a few-shot learner: images encoded once, tasks drawn and answered as episodes, one record per task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.data.concept_context import ImageTable
from hardlook.data.images import read_image
from hardlook.errors import ModelError, OptionError
from hardlook.harness.benchmark import Unit
from hardlook.harness.records import Column, Record, RecordSchema
from hardlook.metacoco.tasks.checking import check_tasks
from hardlook.metacoco.tasks.drawing import Tasks, draw_tasks
from hardlook.metacoco.tasks.eligibility import has_common_supports
from hardlook.metacoco.tasks.images import Numbers, draw_random_numbers, make_key
from hardlook.metacoco.units import TaskSettings, TaskUnit, find_eligible, load_images
from hardlook.models.answer_checks import check_answers
from hardlook.models.arguments import parse_arguments
from hardlook.models.feature_tables import FeatureTable, build_feature_table
from hardlook.models.few_shot.table_episodes import TableEpisodes
from hardlook.models.preprocessing import preprocess_image
from hardlook.models.roles import Episode, Image

Progress = Callable[[int, int], Any]
ACCEPTED = ("images", "features", "maps")

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
        Column("support", "ints", "rows of the supports in the dataset"),
        Column("query", "ints", "rows of the queries in the dataset"),
    )
)


def encode_images(units: Sequence[Unit], model: Any, show_progress: Progress | None) -> None:
    """Encode every image once, before workers start, where the learner takes features; workers find them on disk."""
    accepts = getattr(model, "accepts", "")
    settings = choose_encoder(units[0].payload.settings, model)
    check_encoder_used(settings, accepts)
    if accepts in ("features", "maps"):
        _build_features(settings, accepts, show_progress)


def evaluate_units(units: Sequence[Unit], model: Any) -> Sequence[Record]:
    """Draw all tasks of one mode, ways and shots together, and let the learner classify them in one call."""
    if model is None:
        raise ModelError("MetaCoCo needs a learner", remedy="`hardlook models --role few-shot-learner` lists some")
    groups: dict[tuple[str, int, int], list[Unit]] = {}
    for unit in units:
        groups.setdefault((unit.payload.mode, unit.payload.ways, unit.payload.shots), []).append(unit)
    records: list[Record] = []
    for group in groups.values():
        payloads: list[TaskUnit] = [unit.payload for unit in group]
        first = payloads[0]
        source, eligible = first.settings.source, find_eligible(first.settings, first.ways, first.shots)
        table = load_images(source).table
        tasks = draw_tasks(eligible, first.mode, [unit.index for unit in payloads], seed=source.seed)
        check_tasks(tasks, table)
        orders = shuffle_queries(tasks, source.seed)
        episodes, ids = build_episodes(payloads, tasks, orders, model), [unit.id for unit in group]
        # Row numbers in place of features: the check asks only how many queries there are.
        outline = (
            replace(episodes, table=np.arange(len(table), dtype=np.float32))
            if isinstance(episodes, TableEpisodes)
            else episodes
        )
        answers = check_answers("few-shot-learner", model, model.classify(episodes), outline, ids)
        records += [
            make_record(unit, place, tasks, orders[place], table, answer)
            for place, (unit, answer) in enumerate(zip(group, answers, strict=True))
        ]
    return records


def shuffle_queries(tasks: Tasks, seed: int) -> Numbers:
    """(T, queries) positions, class by class, of the queries in the order in which the learner gets them.

    Ordered class by class they would give the labels away to a learner that looks at all of them.
    """
    key = make_key(seed, "order of queries", tasks.mode, tasks.ways, tasks.shots)
    return np.argsort(
        draw_random_numbers(key, tasks.index[:, None], np.arange(tasks.query[0].size)), axis=1, kind="stable"
    )


def build_episodes(units: Sequence[TaskUnit], tasks: Tasks, order: Numbers, model: Any) -> Sequence[Episode]:
    """One episode per task: supports class by class, queries in the `order` of `shuffle_queries`."""
    accepts = getattr(model, "accepts", None)
    if accepts not in ACCEPTED:
        remedy = f"its attribute `accepts` is one of {', '.join(ACCEPTED)}"
        raise ModelError(f"the learner accepts {accepts!r}", remedy=remedy)
    settings = choose_encoder(units[0].settings, model)
    check_encoder_used(settings, accepts)
    labels = np.repeat(np.arange(tasks.ways), tasks.shots)
    supports, queries = (rows.reshape(len(rows), -1) for rows in (tasks.support, tasks.query))
    queries = np.take_along_axis(queries, order, axis=1)
    keys = tuple(_make_key(unit) for unit in units)
    if accepts != "images":
        table = load_features(settings, accepts)
        return TableEpisodes(table, supports, labels, queries, tasks.ways, keys)
    images = load_images(settings.source)

    def read(rows: Numbers) -> list[Image]:
        return [preprocess_image(images.read(row), settings.preprocessing) for row in rows.tolist()]

    return [
        Episode(read(support), labels, read(query), tasks.ways, key)
        for support, query, key in zip(supports, queries, keys, strict=True)
    ]


def _make_key(unit: TaskUnit) -> str:
    """Identifies the supports: what a learner draws at random is the same in every mode that has the same supports."""
    own = "" if has_common_supports(unit.mode, unit.settings.blind_supports) else f"{unit.mode}-"
    return f"{unit.ways}way-{unit.shots}shot-{own}{unit.index}"


def choose_encoder(settings: TaskSettings, model: Any) -> TaskSettings:
    """The settings with the encoder of a learner that has one of its own; an `OptionError` where another is given."""
    own = getattr(model, "own_encoder", None)
    if own is None:
        return settings
    if settings.encoder_given or settings.preprocessing != "encoder":
        what = f"--encoder, --encoder-args, --preprocessing: {own} was trained with an encoder of its own"
        raise OptionError(what, remedy="leave them out; a frozen learner takes this one by --encoder")
    return replace(settings, encoder=own, encoder_args=model.own_encoder_args)


def check_encoder_used(settings: TaskSettings, accepts: str) -> None:
    """Raise an `OptionError` where an encoder is given that the learner would not use."""
    if accepts == "images" and settings.encoder_given:
        what = f"--encoder, --encoder-args: the learner works on images and would not use {settings.encoder!r}"
        remedy = "leave them out; a learner that encodes images itself takes --model-arg encoder=NAME"
        raise OptionError(what, remedy=remedy)


@lru_cache(maxsize=4)
def load_features(settings: TaskSettings, accepts: str) -> NDArray[np.float32]:
    """(images, D) vectors or (images, C, h, w) maps, row by row as the table of images; mapped into memory."""
    features = _build_features(settings, accepts, None)
    if accepts == "features":
        return features.vectors
    if features.maps is None:
        raise ModelError("the learner works on maps, and the encoder gives none", remedy="choose another --encoder")
    return features.maps


def _build_features(settings: TaskSettings, accepts: str, show_progress: Progress | None) -> FeatureTable:
    images = load_images(settings.source)
    paths = images.files or [Path(name) for name in images.names]
    rows = {path: row for row, path in enumerate(paths)}

    def read(path: Path) -> Image:
        return read_image(path) if images.files else images.read(rows[path])

    return build_feature_table(
        settings.encoder,
        parse_arguments(settings.encoder_args),
        paths,
        images.hashes,
        maps=accepts == "maps",
        read=read,
        show_progress=show_progress,
        preprocessing=settings.preprocessing,
    )


def make_record(
    unit: Unit, place: int, tasks: Tasks, order: Numbers, table: ImageTable, answer: NDArray[np.float32]
) -> Record:
    """The record of task `place`, its queries class by class; `answer` (queries, ways) scores them in `order`."""
    task: TaskUnit = unit.payload
    predicted = np.empty(len(order), np.int64)
    predicted[order] = answer.argmax(1)
    truth = np.repeat(np.arange(tasks.ways), tasks.query.shape[2])
    query = tasks.query[place].ravel()
    found, coded = np.unique(np.concatenate([tasks.support_context[place], table.context[query]]), return_inverse=True)
    known = found[found >= 0]
    coded = coded - int(len(known) < len(found))  # -1, for mixed supports, sorts first
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
