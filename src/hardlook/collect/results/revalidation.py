"""The validity of clicks and batches, computed from the masks and not taken from the store.

Settings may have changed since the answers were stored, and an export should be reproducible. Differences from the
stored flags are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl

from hardlook.collect.results.answers import list_dropped_batches
from hardlook.collect.study.folder import Study
from hardlook.collect.study.validity import ClickValidator, classify_points
from hardlook.errors import DataError, HardlookError

_OTHER_STUDY = "name the database of this study with --database"


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
    """Validate all clicks and closed batches; `advance` is called with the number of tasks done.

    `answers` must be read from the store before `batches`. `inside`, `near`, `batch_valid` and a batch's `valid` are
    replaced. A batch is valid with `inside_needed` clicks inside, of the tasks that were handed out, also when it was
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
