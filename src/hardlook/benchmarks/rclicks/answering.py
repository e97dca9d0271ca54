"""Letting a model answer: each image is opened once, the courses of an instance go in lock-step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, cast

from hardlook.benchmarks.rclicks.units import CourseSettings, InstanceUnit
from hardlook.clicks.courses import BASE, HALVES, Course, clicking_groups
from hardlook.clicks.first_clicks import FirstClicks, first_clicks
from hardlook.clicks.rules import Rules
from hardlook.clicks.together import run_together
from hardlook.clicks.trajectories import Trajectories, play
from hardlook.contract.benchmark import Unit
from hardlook.models.click_models import registered_name
from hardlook.models.inner_model import InnerModel, build_inner
from hardlook.models.roles import Image, Session


@dataclass(frozen=True)
class Answer:
    """What came of one instance; `opened` says whether its image was opened for it (1) or for another one (0)."""

    trajectories: Trajectories
    people: FirstClicks | None
    opened: int


class Opening:
    """How an image is opened, and how often it was; all plays on the image share what is opened."""

    def __init__(self, image: Image, model: Any) -> None:
        self.image = image
        self.model = model
        self.times = 0

    def __call__(self) -> Session:
        """Open it."""
        self.times += 1
        session: Session = self.model.open(self.image)
        return session


@lru_cache(maxsize=2)
def click_model(name: str, args: str) -> InnerModel:
    """The click model of that name, made once in each process."""
    return build_inner(registered_name(name), "click-model", args)


def click_model_words(name: str, args: str) -> str:
    """The click model by name, with its arguments and what it says of itself.

    >>> click_model_words("planted-clicks", "edge=1")
    'planted-clicks (edge=1)'
    """
    conduct = getattr(click_model(name, args).model, "conduct", "")
    return name + (f" ({args})" if args else "") + (f": {conduct}" if conduct else "")


def courses_of(settings: CourseSettings) -> tuple[Course, ...]:
    """Everybody who clicks: the centre rule, the groups, and the two halves where asked for."""
    return (BASE, *clicking_groups(settings.groups), *(HALVES if settings.halves else ()))


def answer_units(units: Sequence[Unit], model: Any) -> list[Answer]:
    """One answer a prepared unit."""
    settings: CourseSettings = units[0].payload.settings
    who = click_model(settings.clicks, settings.clicks_args).model
    rules = Rules(
        settings.rounds,
        cast("Literal['threshold', 'exact']", settings.group_rule),
        cast("Literal['ours', 'released']", settings.perfect),
        settings.seed,
    )
    images: dict[str, Opening] = {}
    plays: list[tuple[Callable[[], Session], Any]] = []
    for unit in units:
        payload: InstanceUnit = unit.payload
        assert payload.instance is not None
        opened = images.setdefault(unit.group, Opening(payload.instance.image, model))
        plays.append((opened, play(payload.instance, courses_of(settings), who, rules)))
        if payload.people is not None and len(payload.people):
            plays.append((opened, first_clicks(payload.instance, payload.people)))
    results = iter(run_together(plays, prompts_a_call=settings.prompts_a_call))
    answers = []
    for unit in units:
        payload = unit.payload
        trajectories = next(results)
        people = next(results) if payload.people is not None and len(payload.people) else None
        opened = images[unit.group]
        answers.append(Answer(trajectories, people, opened.times))
        opened.times = 0
    return answers
