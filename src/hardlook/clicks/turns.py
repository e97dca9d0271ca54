"""One round of clicks: every course that still goes on makes its click or stops.

A click is a function of the dataset, the instance, the course, the round, the seed and the masks so far: one random
number, keyed by the first five, and nothing that other courses do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hardlook.clicks.chances import Chances, find_chances
from hardlook.clicks.courses import Course
from hardlook.clicks.error_regions import Comparison
from hardlook.clicks.groups import draw
from hardlook.clicks.instance import Instance
from hardlook.clicks.next_click import Choice, Pixels, choose_error
from hardlook.clicks.rules import Rules
from hardlook.models.roles import ClickModel, Clicks, Mask
from hardlook.randomness import generator


@dataclass
class Player:
    """One course so far: its clicks (row, column, positive), its counts a round, its latest mask and what it gets."""

    course: Course
    mask: Mask
    found: Comparison
    clicks: list[tuple[int, int, bool]] = field(default_factory=list)
    counts: list[tuple[int, int]] = field(default_factory=list)
    state: Any = None
    going: bool = True

    @property
    def pixels(self) -> Pixels:
        """(k, 2) rows and columns clicked so far."""
        return np.array([click[:2] for click in self.clicks], np.int64).reshape(-1, 2)

    @property
    def prompt(self) -> Clicks:
        """All clicks so far and the latest state, as segmenters are asked; arrays of its own."""
        return Clicks(
            self.pixels[:, ::-1].astype(np.float32), np.array([click[2] for click in self.clicks], bool), self.state
        )


def take_turns(
    players: Sequence[Player], instance: Instance, click_model: ClickModel, rules: Rules, number: int
) -> int:
    """Add the click of round `number`, from 1, to each player, or stop it; how many fell back to the centre rule."""
    # Before the first answer all courses see the same, so one look and one map serve them all.
    seeing = players[:1] if number == 1 else players
    choices = [choose_error(player.found, player.pixels) for player in seeing] * (len(players) // len(seeing))
    drawing: list[tuple[Player, Choice]] = []
    for player, choice in zip(players, choices, strict=True):
        if choice is not None and player.course.draws:
            drawing.append((player, choice))
        elif choice is not None:
            player.clicks.append((choice.row, choice.column, choice.positive))
        elif rules.perfect == "released":
            player.clicks.append((0, 0, False))
        else:
            player.going = False
    asked = drawing[:1] if number == 1 else drawing
    found = find_chances(instance, click_model, [choice for _, choice in asked], [one.pixels for one, _ in asked])
    fallbacks = 0
    for (player, choice), chances in zip(drawing, found * (len(drawing) if number == 1 else 1), strict=True):
        place = _drawn(chances, player.course, instance, rules, number)
        fallbacks += place is None
        player.clicks.append((*(place or (choice.row, choice.column)), choice.positive))
    return fallbacks


def _drawn(chances: Chances, course: Course, instance: Instance, rules: Rules, number: int) -> tuple[int, int] | None:
    """Row and column of one draw, None where there is no chance anywhere."""
    if chances.ranked.empty or course.low is None or course.high is None:
        return None
    uniform = generator(rules.seed, instance.dataset, instance.name, course.name, number).random()
    return chances.place(draw(chances.ranked, course.low, course.high, rules.groups, uniform))
