"""The progress of a study: answers wanted and received, active people, and how many batches are still needed."""

from __future__ import annotations

import hmac
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

import hardlook
from hardlook.collect.results.quality import measure_participants
from hardlook.collect.study.folder import Study
from hardlook.collect.web.tokens import derive_completion_code, read_invitation
from hardlook.errors import OptionError
from hardlook.harness.rounding import format_percent
from hardlook.report.formatting import format_count

if TYPE_CHECKING:
    from hardlook.collect.store.store import Store

SCHEMA = "hardlook.study-status/1"

Identifier = Literal["number", "code", "id", "link", "platform-id"]

_IDENTIFIERS: Mapping[Identifier, str] = {
    "number": "number",
    "code": "completion code",
    "id": "reference",
    "link": "invitation link",
    "platform-id": "platform's id",
}

_ANSWERS = {"clicks": "valid clicks", "review": "reviews", "ratings": "ratings"}

ACTIVE_SECONDS = 15 * 60.0


def build_status(study: Study, store: Store, now: float) -> dict[str, Any]:
    """The status as JSON values; `now`, in seconds since 1970, decides who is active.

    Answers beyond the target of an item and device do not replace others and are not counted as progress.
    """
    target = study.settings.target_answers
    progress = _read_progress(study, store).with_columns(pl.min_horizontal("valid", pl.lit(target)).alias("done"))
    batches, people = store.batches(), store.participants()
    needed = {device: _estimate_batches(study, progress, batches, device) for device in study.settings.devices}
    tasks = progress.group_by("task").agg((pl.col("valid") >= target).all().alias("done"))
    at_work = (pl.col("seen") >= now - ACTIVE_SECONDS) & pl.col("finished").is_null()
    closed = batches.filter(pl.col("state") != "open")
    failed = closed.filter(~pl.col("valid"))["state"].to_list()
    return {
        "schema": SCHEMA,
        "hardlook": hardlook.__version__,
        "title": study.settings.title,
        "kind": study.settings.kind,
        "answers": int(batches["answered"].sum()),
        **_counts(progress, target),
        "by_device": {device: _counts(part, target) for device, part in _partition(progress, "device")},
        "by_mode": {
            mode: {device: _counts(part, target) for device, part in _partition(of_mode, "device")}
            for mode, of_mode in _partition(progress, "mode")
        },
        "tasks": {"done": int(tasks["done"].sum()), "all": tasks.height},
        "participants": {
            "joined": people.height,
            # None if the study has no training round.
            "trained": people["trained"].count() if study.training else None,
            "at_work": people.filter(at_work).height,
            "finished": people["finished"].count(),
            "deleted": store.count_deleted(),
        },
        "batches": {
            "open": batches.height - closed.height,
            "valid": closed.filter(pl.col("valid")).height,
            "dropped": failed.count("complete"),
            "given_up": failed.count("returned"),
        },
        "batches_needed": {"all": sum(needed.values()), **needed},
    }


def find_participant_by_code(study: Study, store: Store, code: str) -> dict[str, Any]:
    """The number and the quality of the participant with a completion code; blanks, hyphens and case do not matter."""
    found = find_participant(study, store, "code", code)
    own = derive_completion_code(study.secret, found["participant"])
    return {"code": own, **{name: value for name, value in found.items() if name != "participant"}}


def find_participant(study: Study, store: Store, by: Identifier, value: str) -> dict[str, Any]:
    """The row of `measure_participants` of one participant, by one of the things that they or a researcher may know."""
    with store.one_snapshot():
        frames = (store.answers(), store.batches(), store.participants(), store.check_answers())
    people = measure_participants(study, *frames).to_dicts()
    if by == "code":
        wanted = "".join(letter for letter in value.upper() if letter.isalnum()).encode()
        codes = (derive_completion_code(study.secret, row["participant"]).encode() for row in people)
        found = [row for row, code in zip(people, codes, strict=True) if hmac.compare_digest(code, wanted)]
    elif by == "number":
        found = [row for row in people if str(row["number"]) == value.strip()]
    else:
        id = _find_id(study, store, by, value.strip())
        found = [row for row in people if row["participant"] == id]
    if not found:
        raise OptionError(
            f"no participant of this study has the {_IDENTIFIERS[by]} {value!r}",
            remedy="compare it with what the participant sent, and the study with the link that they used",
        )
    return found[0]


def _find_id(study: Study, store: Store, by: Identifier, value: str) -> str:
    if by == "id":
        return value
    if by == "platform-id":
        known = store.person(value)
    else:
        # Expired or not.
        invitation = read_invitation(study.secret, value.rpartition("/")[2], now=0.0)
        known = store.invited(invitation) if invitation else None
    return known.id if known else ""


def describe_status(status: Mapping[str, Any]) -> list[str]:
    """The document of `build_status` as lines for a terminal: bars by device and display mode, then sentences."""
    people, batches, tasks, needed = (status[name] for name in ("participants", "batches", "tasks", "batches_needed"))
    wanted = _ANSWERS[status["kind"]]
    shown = [("all", status)]
    devices = status["by_device"]
    if len(devices) > 1:
        shown += list(devices.items())
    if len(status["by_mode"]) > 1:
        shown += [
            (f"{mode}, {device}" if len(devices) > 1 else mode, counts)
            for mode, of_mode in status["by_mode"].items()
            for device, counts in of_mode.items()
        ]
    deleted = f", {people['deleted']} deleted on request" if people["deleted"] else ""
    trained = "" if people["trained"] is None else f"{people['trained']} trained, "
    widest = max(len(name) for name, _ in shown)
    more = "No more batches are needed."
    if count := needed["all"]:
        verb = "is" if count == 1 else "are"
        by_device = ", ".join(f"{needed[device]} on {device}" for device in devices) if len(devices) > 1 else ""
        more = (
            f"About {format_count(count, 'more batch', 'more batches')} {verb} needed{by_device and ': '}{by_device}."
        )
    return [
        f"{status['title']}: {status['valid']} of {status['wanted']} {wanted}",
        "",
        *(f"{name:<{widest}}  {format_bar(one['valid'], one['wanted'])}  {_format_counts(one)}" for name, one in shown),
        "",
        f"{tasks['done']} of {format_count(tasks['all'], 'task')} done; "
        f"{format_count(status['answers'], 'answer')} came in.",
        f"{format_count(people['joined'], 'participant')}: {trained}{people['at_work']} at work in the "
        f"last quarter of an hour, {people['finished']} finished{deleted}.",
        f"Batches: {batches['open']} open, {batches['valid']} valid, {batches['dropped']} dropped, "
        f"{batches['given_up']} given up.",
        more,
    ]


def describe_participant(participant: Mapping[str, Any], kind: str) -> list[str]:
    """The document of `find_participant_by_code` as lines for a terminal."""
    batches = ", ".join(
        f"{participant[f'{state}_batches']} {words}"
        for state, words in (("valid", "valid"), ("dropped", "dropped"), ("given_up", "given up"), ("open", "open"))
    )
    lines = [
        f"The code is that of participant {participant['number']} ({participant['device'] or 'no device yet'}).",
        f"{format_count(participant['answers'], 'answer')} in "
        f"{format_count(participant['batches'], 'batch', 'batches')}: {batches}. "
        + ("Nothing was left to do." if participant["finished"] else "There was more to do."),
    ]
    if kind == "clicks" and participant["inside"] is not None:
        lines.append(f"{format_percent(participant['inside'])} of the clicks lie inside.")
    return lines


def format_bar(done: int, wanted: int, width: int = 24) -> str:
    """A bar of characters; it is full only when all is done.

    >>> format_bar(1, 2, 8), format_bar(99, 100, 8), format_bar(1, 100, 8)
    ('━━━━────', '━━━━━━━─', '────────')
    """
    filled = done * width // wanted if wanted else width
    return "━" * filled + "─" * (width - filled)


def _format_counts(counts: Mapping[str, int]) -> str:
    share = 100 * counts["valid"] // counts["wanted"] if counts["wanted"] else 100
    pending = f", {counts['pending']} under way" if counts["pending"] else ""
    return f"{counts['valid']} of {counts['wanted']} ({share} %){pending}"


def _read_progress(study: Study, store: Store) -> pl.DataFrame:
    items = [(item.id, item.task, item.mode) for item in study.items]
    known = pl.DataFrame(items, {"item": pl.String, "task": pl.String, "mode": pl.String}, orient="row")
    devices = pl.DataFrame({"device": list(study.settings.devices)}, {"device": pl.String})
    stored = store.progress().select("item", "device", "pending", "valid")
    found = known.join(devices, how="cross").join(stored, on=["item", "device"], how="left", maintain_order="left")
    return found.with_columns(pl.col("pending", "valid").fill_null(0))


def _estimate_batches(study: Study, progress: pl.DataFrame, batches: pl.DataFrame, device: str) -> int:
    """Missing answers over the mean number that a closed batch of this device brought so far.

    While closed batches have brought nothing, each is assumed to bring all its answers: those of a full batch, or, of a
    study with fewer images or pairs than that, one of each.
    """
    here = progress.filter(pl.col("device") == device)
    missing = here.height * study.settings.target_answers - int(here["done"].sum())
    closed = batches.filter((pl.col("device") == device) & (pl.col("state") != "open")).height
    brought = int(here["valid"].sum()) / closed if closed else 0.0
    return math.ceil(missing / (brought or study.full_batch) - 1e-9)


def _counts(progress: pl.DataFrame, target: int) -> dict[str, int]:
    return {
        "valid": int(progress["done"].sum()),
        "pending": int(progress["pending"].sum()),
        "wanted": progress.height * target,
    }


def _partition(frame: pl.DataFrame, column: str) -> list[tuple[str, pl.DataFrame]]:
    return [(str(name[0]), part) for name, part in frame.partition_by(column, as_dict=True).items()]
