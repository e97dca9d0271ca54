"""Simulated participants who join, train, take batches and answer over HTTP, as a browser would.

An answer is sent again, under the same key, until the server has acknowledged that it is stored. Answers depend on the
seed, the participant's number and the task alone, so that a rehearsal is reproducible.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from html import unescape
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hardlook.collect.study.folder import Study
from hardlook.collect.study.tasks import ClickTask, RatingTask, ReviewTask, Task
from hardlook.data.images import read_image
from hardlook.data.label_maps import read_label_map
from hardlook.errors import DataError, RunError
from hardlook.extras import require
from hardlook.models.registry import build
from hardlook.models.roles import ClickModel
from hardlook.randomness import generator
from hardlook.rclicks.click_models.distribution import ClickDistribution, click_distribution

if TYPE_CHECKING:
    from httpx import AsyncClient, Response

_CSRF = re.compile(r'name="csrf"[^>]*value="([^"]*)"')
_RETRY_STATUSES = (429, 502, 503, 504)
_TIMEOUT = 120.0  # seconds without a reply of the server after which a participant gives up


@dataclass(frozen=True)
class CrowdResult:
    """All acknowledged answers, the number of participants, and the completion codes of those who finished."""

    answers: tuple[AcknowledgedAnswer, ...]
    participants: int
    codes: tuple[str, ...]

    def quantile(self, share: float) -> float:
        """The quantile of seconds from sending an answer to its acknowledgement; NaN without answers.

        >>> CrowdResult((), 0, ()).quantile(0.99)
        nan
        """
        return float(np.quantile([one.seconds for one in self.answers], share)) if self.answers else float("nan")


@dataclass(frozen=True)
class AcknowledgedAnswer:
    """An answer to a task that looks like all `tasks`, stored `seconds` after the last of `sent` attempts."""

    key: str
    tasks: tuple[str, ...]
    answer: Mapping[str, Any]
    seconds: float
    sent: int


def simulate_crowd(
    study: Study,
    address: str,
    *,
    participants: int,
    batches: int | None = None,
    thinking: float = 0.0,
    clicks: str = "distance",
    careless: float = 0.0,
    seed: int = 0,
    arriving: float = 0.0,
    on_answers: Callable[[int], None] | None = None,
) -> CrowdResult:
    """Let `participants` take part at `address`; `on_answers` is called with the number of answers so far.

    They use the open link, arrive one after the other within `arriving` seconds, and have the study's devices in turn.
    """
    require("httpx", extra="web")
    answers = AnswerModel(study, clicks=clicks, careless=careless, seed=seed)
    finder = TaskFinder(study)
    devices = study.settings.devices

    async def run_all() -> CrowdResult:
        from httpx import AsyncClient, Limits, Timeout

        clients = [
            AsyncClient(base_url=address, timeout=Timeout(60.0), limits=Limits(max_connections=2))
            for _ in range(participants)
        ]
        people = [
            SimulatedParticipant(number, client, answers, finder, devices[number % len(devices)], thinking)
            for number, client in enumerate(clients)
        ]
        watching = asyncio.create_task(_report_progress(people, on_answers)) if on_answers else None
        try:
            async with asyncio.TaskGroup() as group:
                for person in people:
                    group.create_task(_arrive(person, arriving * person.number / participants, batches))
        except ExceptionGroup as errors:
            # The others were stopped by the first one.
            raise errors.exceptions[0] from None
        finally:
            if watching:
                watching.cancel()
            for client in clients:
                await client.aclose()
        acknowledged = tuple(answer for person in people for answer in person.acknowledged)
        return CrowdResult(acknowledged, participants, tuple(person.code for person in people if person.code))

    return asyncio.run(run_all())


async def _arrive(person: SimulatedParticipant, after: float, batches: int | None) -> None:
    await asyncio.sleep(after)
    await person.take_part(batches)


async def _report_progress(people: Sequence[SimulatedParticipant], on_answers: Callable[[int], None]) -> None:
    while True:
        on_answers(sum(len(person.acknowledged) for person in people))
        await asyncio.sleep(0.2)


class _StudyFull(Exception):
    """The server says that no more answers are needed."""


@dataclass
class SimulatedParticipant:
    """One participant; about `thinking` seconds pass before each answer, in addition to the phases of the study."""

    number: int
    client: AsyncClient
    answers: AnswerModel
    finder: TaskFinder
    device: str
    thinking: float = 0.0
    acknowledged: list[AcknowledgedAnswer] = field(default_factory=list)
    code: str = ""
    _headers: dict[str, str] = field(default_factory=dict)
    _timings: dict[str, float] = field(default_factory=dict)

    async def take_part(self, batches: int | None = None) -> None:
        """Answer `batches` batches, or all that there are if None."""
        try:
            await self._join()
        except _StudyFull:
            return
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
        page = await self._request("GET", "/")
        found = _CSRF.search(page.text)
        if page.status_code != 200:
            raise RunError(f"the first page has no form to join: status {page.status_code}")
        if found is None:
            raise _StudyFull
        form = {"token": "", "csrf": unescape(found[1]), "agree": "yes", "language": "en"}
        # Browsers send the origin of a form.
        origin = str(self.client.base_url).rstrip("/")
        joined = await self._request("POST", "/join", data=form, headers={"Origin": origin})
        if joined.status_code == 409:
            raise _StudyFull
        state = (await self._request("GET", "/api/state")).json()
        if "csrf" not in state:
            raise RunError(f"participant {self.number} could not join: {state.get('message', state)}")
        self._headers, self._timings = {"X-CSRF-Token": state["csrf"]}, state["timings"]
        if self.device in ("pc", "mobile"):
            pointer = "mouse" if self.device == "pc" else "touch"
            await self._post("/api/device", {"device": self.device, "pointer": pointer})
        if not state["trained"]:
            for trial in state["training"]:
                await self._practise(trial)
            await self._post("/api/trained", {})

    async def _practise(self, trial: str) -> None:
        """Answer a trial of the training round until it is right, or twice, as the page asks for."""
        task = self.finder.find_training(trial)
        for attempt in range(2):
            shown = (await self._post(f"/api/trials/{trial}/show", {})).json()
            await asyncio.sleep(sum(self._phases(shown.get("mode", "")).values()))
            answer = self.answers.answer(self.number + attempt, task)
            verdict = await self._post("/api/training", {"trial": trial, **answer})
            if verdict.json()["right"]:
                return

    async def _answer(self, trial: str) -> None:
        """Start the trial, fetch its pictures, wait as long as the study says, and answer."""
        response = await self._post(f"/api/trials/{trial}/show", {}, may_fail=(409,))
        if response.status_code == 409:
            return  # answered before the server died, or assigned again
        shown = response.json()
        begun = time.monotonic()
        tasks = await self._fetch_pictures(shown)
        phases = self._phases(shown.get("mode", ""))
        pause = float(self.thinking * generator(0, "thinking", self.number, trial).uniform(0.5, 1.5))
        await asyncio.sleep(max(0.0, sum(phases.values()) - (time.monotonic() - begun)) + pause)
        measured = {
            # As people have: most around 700 ms, sometimes twice that; reported, not waited for.
            "reaction_ms": float(700 * generator(0, "reaction", self.number, trial).lognormal(0.0, 0.3)),
            "durations": {name: 1000 * seconds for name, seconds in phases.items()},
            "circumstances": {"pointer": "touch" if self.device == "mobile" else "mouse"},
        }
        await self._send(trial, tasks, self.answers.answer(self.number, tasks[0]), measured)

    async def _fetch_pictures(self, shown: Mapping[str, Any]) -> tuple[Task, ...]:
        addresses = [shown.get(name) for name in ("image", "target")]
        image, target = [(await self._request("GET", one)).content if one else None for one in addresses]
        return self.finder.find(image, target, shown)

    def _phases(self, mode: str) -> dict[str, float]:
        """Seconds of each phase before a click counts; none in a study without clicks."""
        if not mode:
            return {}
        target = self._timings["target_text"] if mode == "text" else self._timings["target"]
        return {"image": self._timings["image"], "target": target, "again": self._timings["again"]}

    async def _send(
        self, trial: str, tasks: tuple[Task, ...], answer: Mapping[str, Any], measured: Mapping[str, Any]
    ) -> None:
        key = f"rehearsal-{self.number}-{trial}"[:64]
        body = {"key": key, "trial": trial, **answer, **measured}
        response, seconds, sent = await self._retry("POST", "/api/answers", json=body, headers=self._headers)
        if response.status_code != 200:
            raise RunError(f"an answer was refused: {response.status_code} {response.text[:200]}", unit=trial)
        ids = tuple(task.id for task in tasks)
        self.acknowledged.append(AcknowledgedAnswer(key, ids, answer, seconds, sent))

    async def _post(self, address: str, body: Mapping[str, Any], may_fail: tuple[int, ...] = ()) -> Response:
        response = await self._request("POST", address, json=body, headers=self._headers)
        if response.status_code == 409 and response.json()["error"].startswith("full"):
            raise _StudyFull
        if response.status_code >= 400 and response.status_code not in may_fail:
            raise RunError(f"{address}: {response.status_code} {response.text[:200]}")
        return response

    async def _request(self, method: str, address: str, **rest: Any) -> Response:
        return (await self._retry(method, address, **rest))[0]

    async def _retry(self, method: str, address: str, **rest: Any) -> tuple[Response, float, int]:
        """Send a request until the server replies; the reply, the seconds it took, and the number of attempts."""
        from httpx import TransportError

        started = time.monotonic()
        for attempt in count(1):
            before = time.monotonic()
            try:
                response = await self.client.request(method, address, **rest)
                if response.status_code not in _RETRY_STATUSES:
                    return response, time.monotonic() - before, attempt
            except (OSError, TransportError):
                pass
            if time.monotonic() - started > _TIMEOUT:
                break
            await asyncio.sleep(0.2)
        raise RunError(f"{address}: the server does not reply")


class AnswerModel:
    """Draws answers: clicks from the model `clicks`, a share `careless` anywhere, and ratings near the task's value."""

    def __init__(self, study: Study, *, clicks: str = "distance", careless: float = 0.0, seed: int = 0) -> None:
        self._study, self._careless, self._seed = study, careless, seed
        self._model: ClickModel | None = build(clicks, "click-model") if study.settings.kind == "clicks" else None
        self._distribution = lru_cache(maxsize=256)(self._compute_distribution)

    def answer(self, participant: int, task: Task) -> Mapping[str, Any]:
        """The fields of an answer that depend on the task: x and y, or a value."""
        rng = generator(self._seed, "rehearsal", participant, task.id)
        if isinstance(task, ClickTask):
            anywhere = rng.random() < self._careless
            size = np.array([task.width, task.height], float)
            x, y = rng.random(2) * size if anywhere else self._distribution(task.id).draw(rng, 1)[0] + 0.5
            return {"x": float(x), "y": float(y)}
        if isinstance(task, ReviewTask):
            return {"value": int(rng.random() < 0.8)}
        assert isinstance(task, RatingTask)
        return {"value": int(np.clip(round(1 + 9 * task.value + rng.normal()), 1, 10))}

    def _compute_distribution(self, task_id: str) -> ClickDistribution:
        task = self._study.by_id[task_id]
        assert isinstance(task, ClickTask) and self._model is not None
        image = read_image(self._study.file(task.image))
        mask: NDArray[np.bool_] = read_label_map(self._study.file(task.mask)) > 0
        return click_distribution(self._model.click_map(image, mask, mask, task.click_type != "fp"), mask)


class TaskFinder:
    """Finds the task of a trial by what a participant sees of it.

    A participant gets trial ids and nothing else, so pictures are compared, byte by byte, with those of the study.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from hardlook.collect.study.folder import make_study
    >>> from hardlook.collect.study.settings import StudySettings
    >>> path = Path(tempfile.mkdtemp())
    >>> _ = (path / "a.jpg").write_bytes(b"a picture")
    >>> settings = StudySettings(kind="review", title="Cats", devices=("any",))
    >>> cats = make_study(path, settings, [ReviewTask("t1", "a", "a", "cat", "snow", "a.jpg")], made={})
    >>> [task.id for task in TaskFinder(cats).find(b"a picture", None, {"concept": "cat", "context": "snow"})]
    ['t1']
    """

    def __init__(self, study: Study) -> None:
        self._study = study
        self._tasks: dict[tuple[str, ...], list[Task]] = {}
        for task in (*study.tasks, *study.checks):
            if not task.training:
                for key in self._keys(task):
                    self._tasks.setdefault(key, []).append(task)

    def find(self, image: bytes | None, target: bytes | None, shown: Mapping[str, Any]) -> tuple[Task, ...]:
        """The tasks that look like this, several where two measures give a pair one value; none is a `DataError`."""
        found = self._tasks.get(_make_key(image, target, shown), [])
        if not found:
            raise DataError("the server showed a picture that no task has", unit=str(shown.get("id", "")))
        return tuple(found)

    def find_training(self, trial: str) -> Task:
        """The task of a trial of the training round."""
        return self._study.training[int(trial.removeprefix("training-"))]

    def _keys(self, task: Task) -> list[tuple[str, ...]]:
        image = self._study.file(task.image).read_bytes() if task.image else None
        if isinstance(task, ClickTask):
            targets = [self._study.file(name).read_bytes() for name in task.targets.values()]
            return [_make_key(image, target, {"description": task.description}) for target in (*targets, None)]
        if isinstance(task, ReviewTask):
            return [_make_key(image, None, {"concept": task.concept, "context": task.context})]
        value = task.value if self._study.settings.question == "fit" else None
        return [_make_key(image, None, {"labels": task.labels, "value": value})]


def _make_key(image: bytes | None, target: bytes | None, shown: Mapping[str, Any]) -> tuple[str, ...]:
    """What a participant sees of a task: hashes of its pictures, and texts; a description only without a target."""
    value = shown.get("value")
    return (
        *(hashlib.blake2b(picture or b"", digest_size=16).hexdigest() for picture in (image, target)),
        shown.get("description", "") if target is None else "",
        shown.get("concept", ""),
        shown.get("context", ""),
        "/".join(shown.get("labels", ())),
        "" if value is None else f"{value:.9f}",
    )
