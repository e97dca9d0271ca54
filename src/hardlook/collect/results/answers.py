"""The validity of answers: the class of each one, valid or left out for one reason, and clicks checked by the masks.

The first of these that holds is the reason why an answer is left out: a rule excludes the participant; the batch is
open or was returned before enough clicks lay inside; the batch is complete and too few lay inside; the click is outside
and not near; the display mode is another than the requested one.

>>> answers = pl.DataFrame({"participant": ["a", "b", "b"], "batch_state": ["complete", "complete", "open"],
...     "batch_valid": [True, True, None], "near": [True, True, True], "mode": ["text", "text", "text"]})
>>> classify_answers(answers, {"a": "named"})["class"].to_list()
['excluded by rule', 'valid', 'batch not complete']
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from hardlook.collect.study.folder import Study
from hardlook.collect.study.validity import ClickValidator, classify_points
from hardlook.errors import DataError, HardlookError

if TYPE_CHECKING:
    from polars.expr.whenthen import ChainedThen

    from hardlook.collect.study.settings import StudySettings

_OTHER_STUDY = "name the database of this study with --database"
PHASES = ("image", "target", "again")

DURATIONS = (*PHASES, "frame", "longest_frame")

SCREEN = ("ratio", "view_width", "view_height", "shown_width", "shown_height", "zoom", "queued_ms")

_CIRCUMSTANCES = {"pointer": pl.String, **dict.fromkeys(SCREEN, pl.Float64), "hidden": pl.Int64, "restarts": pl.Int64}


def unpack_durations(answers: pl.DataFrame) -> pl.DataFrame:
    """Answers with the milliseconds of each phase and of frames; null if the browser did not report them."""
    return _unpack_json(answers, "durations", pl.Struct(dict.fromkeys(DURATIONS, pl.Float64)))


def unpack_circumstances(answers: pl.DataFrame) -> pl.DataFrame:
    """Answers with the properties of the screen; null if the browser did not report them."""
    return _unpack_json(answers, "circumstances", pl.Struct(_CIRCUMSTANCES))


def _unpack_json(answers: pl.DataFrame, name: str, kind: pl.Struct) -> pl.DataFrame:
    try:
        return answers.with_columns(pl.col(name).str.json_decode(kind).struct.unnest())
    except pl.exceptions.PolarsError as error:
        raise DataError(f"{name} of an answer are not JSON: {error}", remedy="restore the database") from error


def find_quick_batches(settings: StudySettings, answers: pl.DataFrame) -> list[str]:
    """Ids of the batches whose answers came in less time than they take, whatever the study does with them."""
    grouped = answers.group_by("batch", maintain_order=True).agg("mode", "shown", "received")
    return [batch for batch, *columns in grouped.iter_rows() if settings.is_too_quick(zip(*columns, strict=True))]


def list_dropped_batches(settings: StudySettings, answers: pl.DataFrame) -> list[str]:
    """Ids of the batches that do not count since they were too quick; none where the study keeps them."""
    return find_quick_batches(settings, answers) if settings.quick_batches == "drop" else []


# A finger on a computer, or a mouse on a phone; a pen belongs to either.
POINTER_CONFLICT = ((pl.col("device") == "pc") & (pl.col("pointer") == "touch")) | (
    (pl.col("device") == "mobile") & (pl.col("pointer") == "mouse")
)


VALID, EXCLUDED, OPEN, INVALID = "valid", "excluded by rule", "batch not complete", "batch invalid"

OUTSIDE, OTHER_MODE = "outside", "of another display mode"

CLASSES = (VALID, OUTSIDE, INVALID, OPEN, EXCLUDED, OTHER_MODE)

BATCH_CLASSES = (VALID, INVALID, OPEN, EXCLUDED)

CLASS_MEANINGS = {
    VALID: "inside the region or within the click radius of it, in a batch that counts",
    OUTSIDE: "beyond the click radius, in a batch that counts",
    INVALID: "too few clicks of the batch lie inside, or it was done in less time than it takes",
    OPEN: "the batch is still open, or was returned before enough clicks lay inside",
    EXCLUDED: "a rule of exclusion leaves the participant out",
    OTHER_MODE: "valid, but in another display mode than the requested one",
}


def classify_answers(answers: pl.DataFrame, excluded: Collection[str], mode: str | None = None) -> pl.DataFrame:
    """Answers with a column `class`, one of `CLASSES`; `mode` is the requested display mode, None for all."""
    other = pl.col("mode") != mode if mode is not None else pl.lit(False)
    return answers.with_columns(
        _classify_batch(pl.col("batch_state"), pl.col("batch_valid"), excluded)
        .when(~pl.col("near").fill_null(False))
        .then(pl.lit(OUTSIDE))
        .when(other)
        .then(pl.lit(OTHER_MODE))
        .otherwise(pl.lit(VALID))
        .alias("class")
    )


def classify_batches(batches: pl.DataFrame, excluded: Collection[str]) -> pl.DataFrame:
    """Batches with a column `class`, one of `BATCH_CLASSES`.

    >>> batches = pl.DataFrame({"participant": ["a", "a"], "state": ["returned", "complete"], "valid": [False, False]})
    >>> classify_batches(batches, ())["class"].to_list()
    ['batch not complete', 'batch invalid']
    """
    return batches.with_columns(
        _classify_batch(pl.col("state"), pl.col("valid"), excluded).otherwise(pl.lit(VALID)).alias("class")
    )


def count_classes(frame: pl.DataFrame, classes: Collection[str] = CLASSES) -> dict[str, int]:
    """Rows of each class, 0 included.

    >>> count_classes(pl.DataFrame({"class": ["valid", "valid"]}), BATCH_CLASSES)
    {'valid': 2, 'batch invalid': 0, 'batch not complete': 0, 'excluded by rule': 0}
    """
    found = dict(frame.group_by("class").len().iter_rows())
    return {name: found.get(name, 0) for name in classes}


def _classify_batch(state: pl.Expr, valid: pl.Expr, excluded: Collection[str]) -> ChainedThen:
    counts = valid.fill_null(False)
    return (
        pl.when(pl.col("participant").is_in(list(excluded)))
        .then(pl.lit(EXCLUDED))
        .when((state == "open") | ((state == "returned") & ~counts))
        .then(pl.lit(OPEN))
        .when(~counts)
        .then(pl.lit(INVALID))
    )


@dataclass(frozen=True, eq=False)
class RevalidatedAnswers:
    """Answers and batches with flags computed from the masks, and how many differ from the stored ones."""

    answers: pl.DataFrame
    batches: pl.DataFrame
    changed_answers: int
    changed_batches: int


def revalidate_answers(
    study: Study, answers: pl.DataFrame, batches: pl.DataFrame, advance: Callable[[int], None] = lambda tasks: None
) -> RevalidatedAnswers:
    """Validate all clicks and closed batches by the masks; `advance` is called with the number of tasks done.

    The stored flags are not used: settings may have changed since, and an export should be reproducible.

    `answers` must be read from the store before `batches`. `inside`, `near`, `batch_valid` and a batch's `valid` are
    replaced. A batch is valid with `inside_needed` clicks inside, of the tasks that were assigned, also when it was
    returned before its end, unless it was done in less time than it takes; an open one has no validity.
    """
    stored = _reopen_newer_batches(answers, batches)
    _check_answers(study, answers)
    flags, validator = np.zeros((answers.height, 2), bool), ClickValidator(study)
    grouped = answers.with_row_index("row").group_by("task", maintain_order=True).agg("row", "x", "y")
    advance(sum(not task.training for task in study.tasks) - grouped.height)
    for task, rows, xs, ys in grouped.iter_rows():
        try:
            inside, near = classify_points(validator.mask(task), np.column_stack([xs, ys]), study.settings.click_radius)
        except HardlookError as error:
            raise error.at(unit=task) from error
        flags[rows, 0], flags[rows, 1] = inside, near
        advance(1)
    validated = answers.with_columns(pl.Series("inside", flags[:, 0]), pl.Series("near", flags[:, 1]))
    new_batches = _validate_batches(study, validated, stored)
    by_batch = new_batches.select(
        pl.col("id").alias("batch"), pl.col("valid").alias("batch_valid"), pl.col("state").alias("batch_state")
    )
    validated = validated.drop("batch_valid", "batch_state").join(
        by_batch, on="batch", how="left", maintain_order="left"
    )
    # Open batches have no validity before and after.
    return RevalidatedAnswers(
        validated.select(answers.columns),
        new_batches,
        _count_differences(answers, validated, ("inside", "near")),
        _count_differences(stored, new_batches, ("valid",)),
    )


def _validate_batches(study: Study, validated: pl.DataFrame, batches: pl.DataFrame) -> pl.DataFrame:
    inside = validated.group_by("batch").agg(pl.col("inside").sum().alias("hits"))
    counted = batches.join(inside, left_on="id", right_on="batch", how="left", maintain_order="left")
    sizes = {size: study.settings.inside_needed(size) for size in counted["trials"].drop_nulls().unique()}
    needed = pl.col("trials").replace_strict(sizes, default=None, return_dtype=pl.Int64)
    dropped = pl.col("id").is_in(list_dropped_batches(study.settings, validated))
    valid = (pl.col("hits").fill_null(0) >= needed) & (pl.col("trials") > 0) & ~dropped
    closed = pl.when(pl.col("state") != "open").then(valid).otherwise(None)
    return counted.with_columns(closed.cast(pl.Boolean).alias("valid")).drop("hits")


def _reopen_newer_batches(answers: pl.DataFrame, batches: pl.DataFrame) -> pl.DataFrame:
    """Batches as they were when the answers were read: people continue to answer while the two frames are read."""
    seen = answers.group_by("batch").agg(pl.len().alias("seen"))
    counted = batches.join(seen, left_on="id", right_on="batch", how="left", maintain_order="left")
    newer = pl.col("answered") > pl.col("seen").fill_null(0)
    return counted.with_columns(
        pl.when(newer).then(pl.lit("open")).otherwise("state").alias("state"),
        pl.when(newer).then(None).otherwise("valid").alias("valid"),
    ).drop("seen")


def _check_answers(study: Study, answers: pl.DataFrame) -> None:
    unknown = sorted(set(answers["task"].unique()) - study.by_id.keys())
    if unknown:
        what = f"answers to {len(unknown)} tasks that are not of this study, such as {unknown[0]!r}"
        raise DataError(what, file=study.path, remedy=_OTHER_STUDY)
    without = answers.filter(pl.col("x").is_null() | pl.col("y").is_null())
    if without.height:
        what = f"{without.height} answers without a click, the first to {without['task'][0]}"
        raise DataError(what, file=study.path, remedy=_OTHER_STUDY)


def _count_differences(before: pl.DataFrame, after: pl.DataFrame, names: tuple[str, ...]) -> int:
    return int(np.any([before[name].ne_missing(after[name]) for name in names], axis=0).sum())
