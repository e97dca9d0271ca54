"""One simulated participant: joins, trains, takes batches and answers, over HTTP and nothing else.

As a browser would, it sends an answer again, under the same key, until the server has said that it is stored.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import unescape
from typing import TYPE_CHECKING, Any

from hardlook.collect.rehearsal.aim import Aim
from hardlook.collect.rehearsal.recognition import Recognition
from hardlook.collect.study.tasks import Task
from hardlook.errors import RunError
from hardlook.randomness import generator

if TYPE_CHECKING:
    from httpx import AsyncClient, Response

_CSRF = re.compile(r'name="csrf"[^>]*value="([^"]*)"')
_AGAIN = (429, 502, 503, 504)
_PATIENCE = 120.0  # seconds without an answer of the server after which a participant gives up


@dataclass(frozen=True)
class Acknowledged:
    """An answer that the server said is stored; `seconds` from sending it to hearing so, the last time.

    `tasks` are the ids of those that look as the one answered did.
    """

    key: str
    participant: int
    trial: str
    tasks: tuple[str, ...]
    answer: Mapping[str, Any]
    seconds: float
    sent: int


@dataclass
class Participant:
    """The `number`-th participant; `thinking` seconds pass before each answer, beside the phases of the plan."""

    number: int
    client: AsyncClient
    aim: Aim
    recognition: Recognition
    device: str
    thinking: float = 0.0
    token: str = ""
    acknowledged: list[Acknowledged] = field(default_factory=list)
    code: str = ""
    _headers: dict[str, str] = field(default_factory=dict)
    _wait: dict[str, float] = field(default_factory=dict)

    async def take_part(self, batches: int | None = None) -> None:
        """Answer `batches` batches, all that there are for None."""
        await self._join()
        done = 0
        while batches is None or done < batches:
            answer = (await self._post("/api/batch", {})).json()
            if answer["done"]:
                self.code = answer["code"]
                return
            for trial in answer["batch"]["trials"]:
                if not trial["answered"]:
                    await self._answer(trial["id"])
            done += 1

    async def _join(self) -> None:
        page = await self._ask("GET", f"/join/{self.token}" if self.token else "/")
        found = _CSRF.search(page.text)
        if page.status_code != 200 or found is None:
            raise RunError(f"the first page cannot be joined from: status {page.status_code}")
        form = {"token": self.token, "csrf": unescape(found[1]), "agree": "yes", "language": "en"}
        # A browser says where a form was sent from.
        await self._ask("POST", "/join", data=form, headers={"Origin": str(self.client.base_url).rstrip("/")})
        state = await self._state()
        if self.device in ("pc", "mobile"):
            pointer = "mouse" if self.device == "pc" else "touch"
            await self._post("/api/device", {"device": self.device, "pointer": pointer})
        if not state["trained"]:
            await self._post("/api/trained", {})

    async def _state(self) -> Mapping[str, Any]:
        state: Mapping[str, Any] = (await self._ask("GET", "/api/state")).json()
        if "csrf" not in state:
            raise RunError(f"participant {self.number} could not join: {state.get('message', state)}")
        self._headers = {"X-CSRF-Token": state["csrf"]}
        self._wait = state["timings"]
        return state

    async def _answer(self, trial: str) -> None:
        """Ask for the trial, look at its pictures as long as the plan says, and answer."""
        response = await self._post(f"/api/trials/{trial}/show", {}, may_fail=(409,))
        if response.status_code == 409:
            return  # answered before the server died, or returned
        shown = response.json()
        begun = time.monotonic()
        tasks = await self._look(shown)
        phases = self._phases(shown.get("mode", ""))
        pause = self._pause(trial)
        await asyncio.sleep(max(0.0, sum(phases.values()) - (time.monotonic() - begun)) + pause)
        said = {
            "reaction_ms": self._reaction(trial),
            "durations": {name: 1000 * seconds for name, seconds in phases.items()},
            "circumstances": {"pointer": "touch" if self.device == "mobile" else "mouse"},
        }
        await self._send(trial, tasks, self.aim.answer(self.number, tasks[0]), said)

    async def _look(self, shown: Mapping[str, Any]) -> tuple[Task, ...]:
        pictures = []
        for name in ("image", "target"):
            address = shown.get(name)
            pictures.append((await self._ask("GET", address)).content if address else None)
        return self.recognition.tasks(pictures[0], pictures[1], shown)

    def _phases(self, mode: str) -> dict[str, float]:
        """Seconds of each phase before a click is taken; none where nothing is clicked."""
        if not mode:
            return {}
        target = self._wait["target_text"] if mode == "text" else self._wait["target"]
        return {"image": self._wait["image"], "target": target, "again": self._wait["again"]}

    async def _send(
        self, trial: str, tasks: tuple[Task, ...], answer: Mapping[str, Any], said: Mapping[str, Any]
    ) -> None:
        key = f"rehearsal-{self.number}-{trial}"[:64]
        body = {"key": key, "trial": trial, **answer, **said}
        sent = 0
        started = time.monotonic()
        while True:
            sent += 1
            before = time.monotonic()
            try:
                response = await self._once("POST", "/api/answers", json=body, headers=self._headers)
            except OSError:
                response = None
            if response is not None and response.status_code == 200:
                seconds = time.monotonic() - before
                alike = tuple(task.id for task in tasks)
                self.acknowledged.append(Acknowledged(key, self.number, trial, alike, answer, seconds, sent))
                return
            if response is not None and response.status_code not in _AGAIN:
                raise RunError(f"an answer was refused: {response.status_code} {response.text[:200]}", unit=trial)
            if time.monotonic() - started > _PATIENCE:
                raise RunError("the server stays away", unit=trial)
            await asyncio.sleep(0.2)

    def _pause(self, trial: str) -> float:
        return float(self.thinking * generator(0, "thinking", self.number, trial).uniform(0.5, 1.5))

    def _reaction(self, trial: str) -> float:
        """Milliseconds as people's are: most around 700, now and then twice that; said, not waited for."""
        return float(700 * generator(0, "reaction", self.number, trial).lognormal(0.0, 0.3))

    async def _post(self, address: str, body: Mapping[str, Any], may_fail: tuple[int, ...] = ()) -> Response:
        response = await self._ask("POST", address, json=body, headers=self._headers)
        if response.status_code >= 400 and response.status_code not in may_fail:
            raise RunError(f"{address}: {response.status_code} {response.text[:200]}")
        return response

    async def _ask(self, method: str, address: str, **rest: Any) -> Response:
        """Ask until there is an answer: a server that is being started again is waited for."""
        started = time.monotonic()
        while True:
            try:
                response = await self._once(method, address, **rest)
                if response.status_code not in _AGAIN:
                    return response
            except OSError:
                pass
            if time.monotonic() - started > _PATIENCE:
                raise RunError(f"{address}: the server stays away")
            await asyncio.sleep(0.2)

    async def _once(self, method: str, address: str, **rest: Any) -> Response:
        """One request; a connection that broke off is an `OSError`."""
        from httpx import TransportError

        try:
            return await self.client.request(method, address, **rest)
        except TransportError as error:
            raise ConnectionError(str(error)) from error
