"""Which clicks lie inside and which batches count, computed from the masks and not taken from what was stored.

Settings may have changed since, and whoever reads an export should be able to compute it again. What differs from
the judgement of the time is counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hardlook.collect.results.answer_frames import typed_answers, typed_batches
from hardlook.collect.study.folder import Study
from hardlook.collect.study.validity import Judge, judge_points
from hardlook.errors import DataError, HardlookError

OTHER_STUDY = "name the database of this study with --database"


@dataclass(frozen=True, eq=False)
class JudgedAgain:
    """Answers and batches with flags by the masks; how many have others than were stored."""

    answers: pl.DataFrame
    batches: pl.DataFrame
    changed_answers: int
    changed_batches: int


def judge_again(
    study: Study, answers: pl.DataFrame, batches: pl.DataFrame, advance: Callable[[int], None] = lambda tasks: None
) -> JudgedAgain:
    """Judge all clicks and closed batches; `advance` is called with the number of tasks done.

    `answers` are to be read from the store before `batches`. `inside`, `near`, `batch_valid` and a batch's `valid` are
    replaced. A batch is valid with `inside_needed` of the
    tasks that were handed out, also when it was given up before its end; an open one is not judged.
    """
    known = typed_answers(answers)
    stored = _as_seen(known, typed_batches(batches))
    _refuse_strangers(study, known)
    flags = np.zeros((known.height, 2), bool)
    judge, grouped = Judge(study), _by_task(known)
    advance(sum(not task.training for task in study.tasks) - len(grouped))
    for task, places in grouped.items():
        points = known[places].select("x", "y").to_numpy()
        try:
            inside, near = judge_points(judge.mask(task), points, study.settings.click_radius)
        except HardlookError as error:
            raise error.at(unit=task) from error
        flags[places, 0], flags[places, 1] = inside, near
        advance(1)
    judged = known.with_columns(pl.Series("inside", flags[:, 0]), pl.Series("near", flags[:, 1]))
    verdicts = _batches(study, judged, stored)
    by_batch = verdicts.select(
        pl.col("id").alias("batch"), pl.col("valid").alias("batch_valid"), pl.col("state").alias("batch_state")
    )
    judged = judged.drop("batch_valid", "batch_state").join(by_batch, on="batch", how="left", maintain_order="left")
    return JudgedAgain(
        judged.select(known.columns),
        verdicts,
        _different(known, judged, ("inside", "near")),
        _different(stored.filter(pl.col("state") != "open"), verdicts.filter(pl.col("state") != "open"), ("valid",)),
    )


def _batches(study: Study, judged: pl.DataFrame, batches: pl.DataFrame) -> pl.DataFrame:
    inside = judged.group_by("batch").agg(pl.col("inside").sum().alias("hits"))
    counted = batches.join(inside, left_on="id", right_on="batch", how="left", maintain_order="left")
    sizes = {size: study.settings.inside_needed(size) for size in counted["trials"].drop_nulls().unique()}
    needed = pl.col("trials").replace_strict(sizes, default=None, return_dtype=pl.Int64)
    valid = (pl.col("hits").fill_null(0) >= needed) & (pl.col("trials") > 0)
    closed = pl.when(pl.col("state") != "open").then(valid).otherwise(None)
    return counted.with_columns(closed.cast(pl.Boolean).alias("valid")).drop("hits")


def _as_seen(answers: pl.DataFrame, batches: pl.DataFrame) -> pl.DataFrame:
    """Batches as they stood when the answers were read: people go on while two frames are read, one after the other."""
    seen = answers.group_by("batch").agg(pl.len().alias("seen"))
    counted = batches.join(seen, left_on="id", right_on="batch", how="left", maintain_order="left")
    newer = pl.col("answered") > pl.col("seen").fill_null(0)
    return counted.with_columns(
        pl.when(newer).then(pl.lit("open")).otherwise("state").alias("state"),
        pl.when(newer).then(None).otherwise("valid").alias("valid"),
    ).drop("seen")


def _by_task(answers: pl.DataFrame) -> dict[str, NDArray[np.int64]]:
    grouped = answers.with_row_index("place").group_by("task", maintain_order=True).agg("place")
    return {task: np.array(places, np.int64) for task, places in grouped.iter_rows()}


def _refuse_strangers(study: Study, answers: pl.DataFrame) -> None:
    unknown = sorted(set(answers["task"].unique()) - study.by_id.keys())
    if unknown:
        what = f"answers to {len(unknown)} tasks that are not of this study, such as {unknown[0]!r}"
        raise DataError(what, file=study.path, remedy=OTHER_STUDY)
    without = answers.filter(pl.col("x").is_null() | pl.col("y").is_null())
    if without.height:
        what = f"{without.height} answers without a click, the first to {without['task'][0]}"
        raise DataError(what, file=study.path, remedy=OTHER_STUDY)


def _different(before: pl.DataFrame, after: pl.DataFrame, names: tuple[str, ...]) -> int:
    found = np.zeros(before.height, bool)
    for name in names:
        found |= before[name].ne_missing(after[name]).to_numpy()
    return int(found.sum())
