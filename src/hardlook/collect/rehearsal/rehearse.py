"""A whole rehearsal: the study's own server on a free port, a crowd that takes part, and the account."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hardlook.collect.rehearsal.account import Account, account
from hardlook.collect.rehearsal.crowd import Heard, send_crowd
from hardlook.collect.study.folder import Study
from hardlook.collect.study.settings import Timings
from hardlook.collect.web.app import make_app
from hardlook.errors import OptionError
from hardlook.serving.background import served

if TYPE_CHECKING:
    from hardlook.collect.store.store import Store

AT_ONCE = Timings(image=0, target=0, target_text=0, again=0)
NO_LIMIT = 1_000_000


@dataclass(frozen=True)
class Rehearsal:
    """What the crowd heard, the account, and how long it all took; `study` is the one that they took part in."""

    study: Study
    heard: Heard
    account: Account
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """The numbers, for a document."""
        storing = {name: 1000 * self.heard.quantile(share) for name, share in (("median", 0.5), ("p99", 0.99))}
        return {
            "participants": self.heard.participants,
            "finished": len(self.heard.codes),
            "seconds": self.seconds,
            "answers_a_second": len(self.heard.answers) / self.seconds,
            "storing_ms": storing if self.heard.answers else None,
            **self.account.as_dict(),
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
    heard: Callable[[int], None] | None = None,
) -> Rehearsal:
    """Let simulated people take part in a study whose answers go to `store`, which must have none yet.

    Without `real_time` the phases take no time. The server's limits are those of the study for a participant; all come
    from one address, which is not limited.
    """
    changes: dict[str, Any] = {"open_link": True}
    limits = {"per_address": NO_LIMIT}
    if not real_time:
        changes["timings"] = AT_ONCE
        limits["per_participant"] = NO_LIMIT
    changes["limits"] = study.settings.limits.model_copy(update=limits)
    rehearsed = replace(study, settings=study.settings.model_copy(update=changes))
    store.prepare(rehearsed.items, rehearsed.settings.devices, rehearsed.fingerprint)
    if store.participants().height:
        raise OptionError("there are participants in this database", remedy="rehearse in an empty one")
    started = time.monotonic()
    with served(make_app(rehearsed, store, research_key=secrets.token_hex(16))) as address:
        crowd = send_crowd(
            rehearsed,
            address,
            participants=participants,
            batches=batches,
            thinking=thinking,
            clicks=clicks,
            careless=careless,
            seed=seed,
            heard=heard,
        )
    seconds = time.monotonic() - started
    return Rehearsal(rehearsed, crowd, account(store, crowd.answers, target=study.settings.target_answers), seconds)
