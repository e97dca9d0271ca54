"""Many simulated participants at once, and what they were told is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hardlook.collect.rehearsal.aim import Aim
from hardlook.collect.rehearsal.participant import Acknowledged, Participant
from hardlook.collect.rehearsal.recognition import Recognition
from hardlook.collect.study.folder import Study
from hardlook.extras import require


@dataclass(frozen=True)
class Heard:
    """All acknowledged answers of a crowd, how many participants there were, and the codes of those who finished."""

    answers: tuple[Acknowledged, ...]
    participants: int
    codes: tuple[str, ...]

    def quantile(self, share: float) -> float:
        """Seconds from sending an answer to hearing that it is stored, in this share of all answers; NaN for none.

        >>> Heard((), 0, ()).quantile(0.99)
        nan
        """
        return float(np.quantile([one.seconds for one in self.answers], share)) if self.answers else float("nan")


def send_crowd(
    study: Study,
    address: str,
    *,
    participants: int,
    batches: int | None = None,
    thinking: float = 0.0,
    clicks: str = "distance",
    careless: float = 0.0,
    seed: int = 0,
    tokens: Sequence[str] = (),
    arriving: float = 0.0,
    heard: Callable[[int], None] | None = None,
) -> Heard:
    """Let `participants` take part at `address`; `heard` is called with the number of answers so far.

    They come one after the other within `arriving` seconds, and take turns with the devices. `tokens` are invitations,
    one each; without them everybody comes by the open link.
    """
    require("httpx", extra="web")
    aim = Aim(study, clicks=clicks, careless=careless, seed=seed)
    recognition = Recognition(study)
    devices = study.settings.devices

    async def everybody() -> Heard:
        from httpx import AsyncClient, Limits, Timeout

        clients = [
            AsyncClient(base_url=address, timeout=Timeout(60.0), limits=Limits(max_connections=2))
            for _ in range(participants)
        ]
        people = [
            Participant(
                number, client, aim, recognition, devices[number % len(devices)], thinking,
                tokens[number] if tokens else "",
            )
            for number, client in enumerate(clients)
        ]  # fmt: skip
        watching = asyncio.create_task(_watch(people, heard)) if heard else None
        try:
            async with asyncio.TaskGroup() as group:
                for person in people:
                    group.create_task(_come(person, arriving * person.number / participants, batches))
        finally:
            if watching:
                watching.cancel()
            for client in clients:
                await client.aclose()
        answers = tuple(answer for person in people for answer in person.acknowledged)
        return Heard(answers, participants, tuple(person.code for person in people if person.code))

    return asyncio.run(everybody())


async def _come(person: Participant, after: float, batches: int | None) -> None:
    await asyncio.sleep(after)
    await person.take_part(batches)


async def _watch(people: Sequence[Participant], heard: Callable[[int], None]) -> None:
    while True:
        heard(sum(len(person.acknowledged) for person in people))
        await asyncio.sleep(0.2)
