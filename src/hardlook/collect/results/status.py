"""Where a study stands: answers wanted and come in, people at work, and how many batches are still needed."""

from __future__ import annotations

import hmac
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import polars as pl

import hardlook
from hardlook.collect.results.answer_frames import typed_batches, typed_participants
from hardlook.collect.results.quality import participant_quality
from hardlook.collect.study.folder import Study
from hardlook.errors import OptionError

if TYPE_CHECKING:
    from hardlook.collect.store.store import Store

SCHEMA = "hardlook.study-status/1"
ACTIVE_SECONDS = 15 * 60.0
_PROGRESS = {"item": pl.String, "device": pl.String, "pending": pl.Int64, "valid": pl.Int64}


def study_status(study: Study, store: Store, now: float) -> dict[str, Any]:
    """The status as JSON's values; `now` in seconds since 1970 tells who is at work.

    Answers beyond the target of an item and device do not make up for others and are not counted as progress.
    """
    target = study.settings.target_answers
    progress = _progress(study, store).with_columns(pl.min_horizontal("valid", pl.lit(target)).alias("done"))
    batches = typed_batches(store.batches())
    people = typed_participants(store.participants())
    needed = {device: _batches_needed(study, progress, batches, device) for device in study.settings.devices}
    tasks = progress.group_by("task").agg((pl.col("valid") >= target).all().alias("done"))
    at_work = (pl.col("seen") >= now - ACTIVE_SECONDS) & pl.col("finished").is_null()
    closed = batches.filter(pl.col("state") != "open")
    return {
        "schema": SCHEMA,
        "hardlook": hardlook.__version__,
        "title": study.settings.title,
        "kind": study.settings.kind,
        "answers": int(batches["answered"].sum()),
        **_counts(progress, target),
        "by_device": {device: _counts(part, target) for device, part in _parts(progress, "device")},
        "by_mode": {
            mode: {device: _counts(part, target) for device, part in _parts(of_mode, "device")}
            for mode, of_mode in _parts(progress, "mode")
        },
        "tasks": {"done": int(tasks["done"].sum()), "all": tasks.height},
        "participants": {
            "joined": people.height,
            # None where there is nothing to train on.
            "trained": people["trained"].count() if study.training else None,
            "at_work": people.filter(at_work).height,
            "finished": people["finished"].count(),
        },
        "batches": {
            "open": batches.height - closed.height,
            "valid": closed.filter(pl.col("valid")).height,
            "dropped": closed.filter(~pl.col("valid").fill_null(False) & (pl.col("state") == "complete")).height,
            "given_up": closed.filter(~pl.col("valid").fill_null(False) & (pl.col("state") == "returned")).height,
        },
        "batches_needed": {"all": sum(needed.values()), **needed},
    }


def whose_code(study: Study, store: Store, code: str, code_of: Callable[[bytes, str], str]) -> dict[str, Any]:
    """The participant, by number, that a completion code belongs to, and what they did.

    `code_of` makes the code of a participant from the study's secret and their id. Blanks, hyphens and small letters
    do not matter.
    """
    wanted = _plain(code).encode()
    people = participant_quality(study, store.answers(), store.batches(), store.participants())
    for row in people.iter_rows(named=True):
        own = _plain(code_of(study.secret, row["participant"]))
        if hmac.compare_digest(own.encode(), wanted):
            return {"code": own, **{name: value for name, value in row.items() if name != "participant"}}
    raise OptionError(
        f"no participant of this study has the completion code {code!r}",
        remedy="compare it with what the participant sent, and the study with the link that they used",
    )


def _progress(study: Study, store: Store) -> pl.DataFrame:
    items = [(item.id, item.task, item.mode) for item in study.items]
    known = pl.DataFrame(items, {"item": pl.String, "task": pl.String, "mode": pl.String}, orient="row")
    devices = pl.DataFrame({"device": list(study.settings.devices)}, {"device": pl.String})
    stored = store.progress().select(*_PROGRESS).cast(_PROGRESS)  # type: ignore[arg-type]
    found = known.join(devices, how="cross").join(stored, on=["item", "device"], how="left", maintain_order="left")
    return found.with_columns(pl.col("pending", "valid").fill_null(0))


def _batches_needed(study: Study, progress: pl.DataFrame, batches: pl.DataFrame, device: str) -> int:
    """Missing answers over those that a closed batch of this device has brought so far.

    Before any batch is closed each is taken to bring all its answers.
    """
    here = progress.filter(pl.col("device") == device)
    missing = here.height * study.settings.target_answers - int(here["done"].sum())
    closed = batches.filter((pl.col("device") == device) & (pl.col("state") != "open")).height
    brought = int(here["valid"].sum()) / closed if closed else float(study.settings.batch_size)
    # Batches that brought nothing so far say nothing about those to come.
    return math.ceil(missing / (brought or float(study.settings.batch_size)) - 1e-9)


def _counts(progress: pl.DataFrame, target: int) -> dict[str, int]:
    return {
        "valid": int(progress["done"].sum()),
        "pending": int(progress["pending"].sum()),
        "wanted": progress.height * target,
    }


def _parts(frame: pl.DataFrame, column: str) -> list[tuple[str, pl.DataFrame]]:
    return [(str(name[0]), part) for name, part in frame.partition_by(column, as_dict=True).items()]


def _plain(code: str) -> str:
    return "".join(letter for letter in code.upper() if letter.isalnum())
