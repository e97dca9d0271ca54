"""Quality of each participant and each image: clicks inside, reaction times, batches, lateness, counts by device.

The inputs are the data frames of a store, or of `revalidate_answers`, which computes their flags from the masks.

>>> from pathlib import Path
>>> from hardlook.collect.study.settings import StudySettings
>>> study = Study(Path("study"), StudySettings(kind="clicks", title="Cups"), (), {}, bytes(32))
>>> answers = pl.DataFrame({"participant": ["a"], "device": ["pc"], "mode": ["text"], "inside": [True], "near": [True],
...     "reaction_ms": [800.0], "early": [0], "shows": [1], "durations": ['{"image": 1507}'],
...     "circumstances": ['{"pointer": "touch"}'], "batch": ["b"], "shown": [0.0], "received": [6.0]})
>>> batches = pl.DataFrame({"id": ["b"], "participant": ["a"], "state": ["complete"], "valid": [True]})
>>> people = pl.DataFrame({"number": [1, 2], "id": ["a", "b"], "device": ["pc", None], "finished": [None, None]})
>>> names = ("number", "answers", "inside", "late_ms", "valid_batches", "pointer_conflicts")
>>> measure_participants(study, answers, batches, people).select(names).rows()
[(1, 1, 1.0, 7.0, 1, 1), (2, 0, None, None, 0, 0)]
"""

from __future__ import annotations

import polars as pl

from hardlook.collect.results.answers import (
    PHASES,
    POINTER_CONFLICT,
    find_quick_batches,
    unpack_circumstances,
    unpack_durations,
)
from hardlook.collect.study.folder import Study
from hardlook.collect.study.tasks import ClickTask

_COUNTS = (
    *("answers", "early", "hidden", "restarts", "reshown", "pointer_conflicts"),
    *("batches", "valid_batches", "dropped_batches", "given_up_batches", "open_batches", "quick_batches"),
    *("checks", "failed_checks"),
)


def measure_participants(
    study: Study,
    answers: pl.DataFrame,
    batches: pl.DataFrame,
    participants: pl.DataFrame,
    checks: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """One row per participant, in the order of joining; null where there is no data.

    `number` is the participant's pseudonym in every file; `inside` and `near` are shares of the answers, 0 to 1;
    `reaction_ms` their median; `early` counts clicks made too early, `early_share` is the share of answers that had
    one; `late_ms` is the median, over phases of all answers, of how far the measured duration lies from the planned
    one; `hidden` counts how often the page was hidden, `reshown` the answers whose pictures were requested more
    than once. `dropped_batches` are complete and not valid, `given_up_batches` were returned. `pointer_conflicts`
    counts answers by touch on a computer or by mouse on a phone; `quick_batches` those that were closed in less time
    than they take; `failed_checks` attention checks (the frame `checks`) that were answered wrongly.
    """
    answered = (
        unpack_circumstances(answers)
        .with_columns(POINTER_CONFLICT.fill_null(False).alias("conflict"))
        .group_by("participant")
        .agg(
            pl.len().alias("answers"),
            pl.col("inside").mean(),
            pl.col("near").mean(),
            pl.col("reaction_ms").median(),
            pl.col("early").sum(),
            (pl.col("early") > 0).mean().alias("early_share"),
            pl.col("hidden").sum(),
            pl.col("restarts").sum(),
            (pl.col("shows") > 1).sum().alias("reshown"),
            pl.col("conflict").sum().alias("pointer_conflicts"),
            pl.col("conflict").mean().alias("pointer_conflict_share"),
        )
    )
    quick = pl.col("id").is_in(find_quick_batches(study.settings, answers)) & (pl.col("state") != "open")
    late = measure_lateness(study, answers).group_by("participant").agg(pl.col("late_ms").abs().median())
    state, valid = pl.col("state"), pl.col("valid").fill_null(False)
    counted = batches.group_by("participant").agg(
        pl.len().alias("batches"),
        valid.sum().alias("valid_batches"),
        ((state == "complete") & ~valid).sum().alias("dropped_batches"),
        (state == "returned").sum().alias("given_up_batches"),
        (state == "open").sum().alias("open_batches"),
        quick.sum().alias("quick_batches"),
    )
    checked = (answers.clear() if checks is None else checks).group_by("participant")
    failed = checked.agg(pl.len().alias("checks"), (~pl.col("near").fill_null(False)).sum().alias("failed_checks"))
    table = participants.sort("number").select("number", pl.col("id").alias("participant"), "device", "finished")
    for part in (answered, counted, late, failed):
        table = table.join(part, on="participant", how="left", maintain_order="left")
    return table.with_columns(
        pl.col("finished").is_not_null(), *(pl.col(name).fill_null(0).cast(pl.Int64) for name in _COUNTS)
    )


def measure_lateness(study: Study, answers: pl.DataFrame) -> pl.DataFrame:
    """One row per phase of an answer: participant, device, `phase`, `late_ms` (measured minus planned); clicks only."""
    timings = study.settings.timings
    target = pl.when(pl.col("mode") == "text").then(timings.target_of("text")).otherwise(timings.target_of(""))
    plans = {"image": pl.lit(timings.image), "target": target, "again": pl.lit(timings.again)}
    durations = unpack_durations(answers if study.settings.kind == "clicks" else answers.clear())
    late = durations.select(
        "participant", "device", *((pl.col(name) - 1000 * plans[name]).alias(name) for name in PHASES)
    )
    long = late.unpivot(PHASES, index=("participant", "device"), variable_name="phase", value_name="late_ms")
    return long.drop_nulls("late_ms")


def measure_images(study: Study, answers: pl.DataFrame) -> pl.DataFrame:
    """One row per task and display mode, in the order of tasks, without training tasks.

    `pc` and `mobile` count answers, `valid_pc` and `valid_mobile` those that are near in a valid batch; `inside` is
    the share of all answers, 0 to 1 and null where there are none; `reaction_ms` their median.
    """
    counted = (pl.col("near") & pl.col("batch_valid") & (pl.col("batch_state") != "open")).fill_null(False)
    by_device = {device: pl.col("device") == device for device in ("pc", "mobile")}
    counts = answers.group_by("item").agg(
        *(on_device.sum().alias(device) for device, on_device in by_device.items()),
        *((on_device & counted).sum().alias(f"valid_{device}") for device, on_device in by_device.items()),
        pl.col("inside").mean(),
        pl.col("reaction_ms").median(),
    )
    rows = [
        (item.id, task.id, task.dataset, task.full_stem, task.click_type, item.mode)
        for item in study.items
        if isinstance(task := study.by_id[item.task], ClickTask)
    ]
    names = ("item", "task", "dataset", "full_stem", "click_type", "mode")
    listed = pl.DataFrame(rows, dict.fromkeys(names, pl.String), orient="row")
    table = listed.join(counts, on="item", how="left", maintain_order="left")
    return table.with_columns(pl.col("pc", "mobile", "valid_pc", "valid_mobile").fill_null(0).cast(pl.Int64))
