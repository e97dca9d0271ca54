"""The answers of a clicks study as tables: `clicks.csv` and `previews.csv` in RClicks' columns, and every click.

A click at (x, y) becomes the whole numbers of its pixel. Rows are sorted by what was clicked, so that the order tells
nothing about who clicked.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from hardlook.collect.results.answer_classes import EXCLUDED, VALID, with_class
from hardlook.collect.results.answer_frames import SCREEN, measured_phases, shown_on, typed_answers
from hardlook.collect.study.folder import Study
from hardlook.collect.study.tasks import ClickTask
from hardlook.data.click_file import check_clicks, write_clicks
from hardlook.data.click_table import COLUMNS, ClickTable
from hardlook.errors import OptionError

_NAMES = ("dataset", "image_stem", "object_stem", "model_type", "click_type", "full_stem", "width", "height")
_ORDER = ("dataset", "full_stem", "mode", "device", "received", "key")
_DURATIONS = ("image", "target", "again", "frame", "longest_frame")


@dataclass(frozen=True, eq=False)
class Previews:
    """The clicks by display mode; `twins` are full stems of several datasets, which a mode cannot tell apart."""

    table: ClickTable
    twins: tuple[str, ...]
    left_out: int


def clicks_table(
    study: Study,
    answers: pl.DataFrame,
    excluded: Collection[str],
    mode: str | None = None,
    valid_only: bool = True,
) -> ClickTable:
    """The clicks as RClicks' table: valid ones of participants that are not excluded.

    With `mode` those of one display mode; all modes together without. Without `valid_only` also clicks outside, and
    of batches that do not count.
    """
    return check_clicks(_columns(_chosen(study, answers, excluded, mode, valid_only)))


def previews_table(study: Study, answers: pl.DataFrame, excluded: Collection[str], valid_only: bool = True) -> Previews:
    """The clicks of all display modes, with the mode in place of the dataset."""
    chosen = _chosen(study, answers, excluded, None, valid_only)
    stems = pl.DataFrame(
        sorted({(task.dataset, task.full_stem) for task in _click_tasks(study).values()}),
        {"dataset": pl.String, "full_stem": pl.String},
        orient="row",
    )
    twins = stems.group_by("full_stem").len().filter(pl.col("len") > 1).sort("full_stem")["full_stem"]
    kept = chosen.filter(~pl.col("full_stem").is_in(twins.to_list())).with_columns(pl.col("mode").alias("dataset"))
    table = check_clicks(_columns(kept.sort(_ORDER)))
    return Previews(table, tuple(twins), chosen.height - kept.height)


def every_click(
    study: Study, answers: pl.DataFrame, excluded: Collection[str], numbers: Mapping[str, int], mode: str | None = None
) -> pl.DataFrame:
    """All answers, a row each: who by number, where to a fraction of a pixel, what became of it, all that was timed.

    `numbers` are the participants' by id. Times are in milliseconds, `after_s` in seconds since the first answer of
    the participant; no id of the database and no time of day is in it.
    """
    known = shown_on(measured_phases(_named(study, with_class(typed_answers(answers), excluded, mode))))
    number = pl.col("participant").replace_strict(numbers, return_dtype=pl.Int64)
    first = pl.col("received").min().over("participant")
    return known.sort(_ORDER).select(
        number.alias("participant"),
        *("device", "dataset", "full_stem", "click_type", "mode", "x", "y", "inside", "near", "class"),
        pl.col("batch_number").alias("batch"),
        *("batch_state", "batch_valid", "position", "shows", "early", "reaction_ms"),
        *(pl.col(name).alias(f"{name}_ms") for name in _DURATIONS),
        *("pointer", *SCREEN, "hidden", "restarts"),
        (pl.col("received") - first).alias("after_s"),
    )


def write_whole_numbers(path: Path, table: ClickTable) -> None:
    """Write a table of clicks on pixels: 12, not 12.0."""
    write_clicks(path, ClickTable(table.frame.with_columns(pl.col("x", "y").cast(pl.Int64))))


def check_mode(study: Study, mode: str | None) -> None:
    """Refuse a display mode that the study does not have."""
    if mode is not None and mode not in study.settings.modes:
        remedy = f"choose one of {', '.join(study.settings.modes)}"
        raise OptionError(f"the study has no display mode {mode!r}", remedy=remedy)


def _chosen(
    study: Study, answers: pl.DataFrame, excluded: Collection[str], mode: str | None, valid_only: bool
) -> pl.DataFrame:
    check_mode(study, mode)
    known = with_class(typed_answers(answers), excluded, mode)
    if valid_only:
        wanted = pl.col("class") == VALID
    else:
        wanted = (pl.col("class") != EXCLUDED) & pl.col("mode").is_in(study.settings.modes if mode is None else [mode])
    return _named(study, known.filter(wanted)).sort(_ORDER)


def _named(study: Study, answers: pl.DataFrame) -> pl.DataFrame:
    rows = [(task.id, *(getattr(task, name) for name in _NAMES)) for task in _click_tasks(study).values()]
    kinds = {name: pl.Int64 if name in ("width", "height") else pl.String for name in _NAMES}
    named = pl.DataFrame(rows, {"task": pl.String, **kinds}, orient="row")
    return answers.join(named, on="task", how="inner", maintain_order="left")


def _columns(clicks: pl.DataFrame) -> pl.DataFrame:
    return clicks.with_columns(
        pl.col("x", "y").floor(), pl.col("width").alias("w"), pl.col("height").alias("h")
    ).select(COLUMNS)


def _click_tasks(study: Study) -> dict[str, ClickTask]:
    return {task.id: task for task in study.tasks if isinstance(task, ClickTask) and not task.training}
