"""Rehearse a study: serve it on a free port, let simulated participants answer, and audit the stored answers.

The audit compares what was acknowledged with what is stored: nothing lost, nothing doubled, no image shown twice to one
person. Every number is counted from the rows and from the acknowledgements that the simulated participants got.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from hardlook.collect.rehearsal.participants import AcknowledgedAnswer, CrowdResult, simulate_crowd
from hardlook.collect.study.folder import Study
from hardlook.collect.study.settings import Timings
from hardlook.collect.web.app import make_app
from hardlook.errors import OptionError
from hardlook.serving import serve_in_background

if TYPE_CHECKING:
    from hardlook.collect.store.store import Store


NO_WAITING = Timings(image=0, target=0, target_text=0, again=0)
NO_LIMIT = 1_000_000
_ERRORS = ("lost", "changed", "doubled", "twice", "beyond", "miscounted")


@dataclass(frozen=True)
class AnswerAudit:
    """Counts that should be 0, beside the answers that were `acknowledged` and those that are `stored`.

    `lost`: acknowledged but not stored. `changed`: stored with another answer. `doubled`: more than one row for a key
    or a trial. `twice`: subjects that one person got again. `beyond`: items with more valid answers of a device than
    wanted. `miscounted`: items whose counters differ from a count of the rows.
    """

    acknowledged: int
    stored: int
    lost: int
    changed: int
    doubled: int
    twice: int
    beyond: int
    miscounted: int

    @property
    def clean(self) -> bool:
        """Whether all error counts are 0."""
        return not any(getattr(self, name) for name in _ERRORS)


def audit_answers(store: Store, sent: Sequence[AcknowledgedAnswer], *, target: int) -> AnswerAudit:
    """Compare `sent` answers with the store; `target` is the number of valid answers wanted per item and device."""
    collected = store.answers()
    rows = pl.concat([collected, store.check_answers()])
    stored = {row["key"]: row for row in rows.iter_rows(named=True)}
    lost = sum(answer.key not in stored for answer in sent)
    kept = [(answer, stored[answer.key]) for answer in sent if answer.key in stored]
    changed = sum(
        row["task"] not in answer.tasks or any(row[name] != value for name, value in answer.answer.items())
        for answer, row in kept
    )
    doubled = (rows.height - rows["key"].n_unique()) + (rows.height - rows["assignment"].n_unique())
    twice = rows.height - rows.select("participant", "subject").n_unique()
    counted = collected.filter(pl.col("batch_valid") == 1)
    if collected["near"].null_count() < collected.height:
        counted = counted.filter(pl.col("near") == 1)
    valid = {(item, device): n for item, device, n in counted.group_by("item", "device").len().iter_rows()}
    progress = store.progress().select("item", "device", "valid").iter_rows()
    miscounted = sum(valid.get((item, device), 0) != number for item, device, number in progress)
    beyond = sum(number > target for number in valid.values())
    return AnswerAudit(len(sent), rows.height, lost, changed, doubled, twice, beyond, miscounted)


@dataclass(frozen=True)
class Rehearsal:
    """The result of a rehearsal; `study` has the settings that were used, `seconds` is its duration."""

    study: Study
    crowd: CrowdResult
    audit: AnswerAudit
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """The numbers as a JSON document."""
        storing = {name: 1000 * self.crowd.quantile(share) for name, share in (("median", 0.5), ("p99", 0.99))}
        return {
            "participants": self.crowd.participants,
            "finished": len(self.crowd.codes),
            "seconds": self.seconds,
            "answers_a_second": len(self.crowd.answers) / self.seconds,
            "storing_ms": storing if self.crowd.answers else None,
            **asdict(self.audit),
        }


def rehearse(
    study: Study,
    store: Store,
    *,
    participants: int,
    batches: int | None = None,
    real_time: bool = False,
    thinking: float = 0.0,
    clicks: str = "distance",
    careless: float = 0.0,
    seed: int = 0,
    on_answers: Callable[[int], None] | None = None,
) -> Rehearsal:
    """Let simulated people take part in a study whose answers go to `store`, which must have none yet.

    Each of the `participants` answers up to `batches` batches (None: until none is left), thinks for about `thinking`
    seconds before an answer, and clicks by the click model `clicks`, or, in a share `careless` of the answers,
    anywhere. Without `real_time` the phases take no time and requests are not limited. All participants share one
    address, so requests and open batches per address are never limited. `on_answers` is called with the number of
    answers so far.
    """
    # Simulated people have no frame, and plain HTTP, over which the cookies of framed pages are not sent.
    changes: dict[str, Any] = {"open_link": True, "frame_origins": ()}
    limits = {"per_address": NO_LIMIT, "open_batches_per_address": NO_LIMIT}
    if not real_time:
        changes["timings"] = NO_WAITING
        changes["least_answer_seconds"] = 0.0
        limits["per_participant"] = NO_LIMIT
    changes["limits"] = study.settings.limits.model_copy(update=limits)
    rehearsed = replace(study, settings=study.settings.model_copy(update=changes))
    store.prepare(rehearsed.stored_items, rehearsed.settings.devices, rehearsed.fingerprint)
    if store.participants().height:
        raise OptionError("there are participants in this database", remedy="rehearse in an empty one")
    started = time.monotonic()
    with serve_in_background(make_app(rehearsed, store, research_key=secrets.token_hex(16))) as address:
        crowd = simulate_crowd(
            rehearsed,
            address,
            participants=participants,
            batches=batches,
            thinking=thinking,
            clicks=clicks,
            careless=careless,
            seed=seed,
            on_answers=on_answers,
        )
    seconds = time.monotonic() - started
    audit = audit_answers(store, crowd.answers, target=study.settings.target_answers)
    return Rehearsal(rehearsed, crowd, audit, seconds)


def describe_rehearsal(document: Mapping[str, Any]) -> str:
    """The document of `Rehearsal.as_dict` as text for a terminal."""
    lines = [
        f"{document['participants']:,} simulated people gave {document['acknowledged']:,} answers in "
        f"{document['seconds']:.1f} s ({document['answers_a_second']:.0f} per second); "
        f"{document['finished']:,} finished"
    ]
    if storing := document["storing_ms"]:
        lines.append(f"an answer was stored within {storing['median']:.0f} ms (median), {storing['p99']:.0f} ms (99 %)")
    counts = ", ".join(f"{name} {document[name]}" for name in _ERRORS)
    return "\n".join([*lines, f"{document['stored']:,} answers are stored: {counts}"])
