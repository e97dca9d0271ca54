"""The class of each answer of a store, valid or left out for one reason; and the fields of its JSON columns.

The first of these that holds is the reason why an answer is left out: a rule excludes the participant; the batch is
open or was returned before enough clicks lay inside; the batch is complete and too few lay inside; the click is outside
and not near; the display mode is another than the requested one.

>>> answers = pl.DataFrame({"participant": ["a", "b", "b"], "batch_state": ["complete", "complete", "open"],
...     "batch_valid": [True, True, None], "near": [True, True, True], "mode": ["text", "text", "text"]})
>>> classify_answers(answers, {"a": "named"})["class"].to_list()
['excluded by rule', 'valid', 'batch not complete']
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import polars as pl

from hardlook.errors import DataError

if TYPE_CHECKING:
    from polars.expr.whenthen import ChainedThen

    from hardlook.collect.study.settings import StudySettings

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
