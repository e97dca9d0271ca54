"""All courses of one instance in lock-step: each round is one batch of prompts.

`play` is pure. It yields the prompts of the courses that still go on and is sent their answers, so who runs the
network, where and in which company changes nothing.

>>> from hardlook.clicks.courses import BASE, clicking_groups
>>> from hardlook.models.click_models.uniform import Uniform
>>> target = np.zeros((7, 9), bool)
>>> target[1:6, 1:6] = True
>>> instance = Instance("mine", "cat", np.zeros((7, 9, 3), np.uint8), target, target & False)
>>> playing = play(instance, (BASE, *clicking_groups(2)), Uniform(), Rules(rounds=3))
>>> prompts = next(playing)
>>> len(prompts), prompts[0].points.tolist(), prompts[0].positive.tolist()
(3, [[3.0, 3.0]], [True])
>>> half = target & (np.arange(9) < 3)
>>> [prompt.points.tolist() for prompt in playing.send([Prompted(target), Prompted(half), Prompted(target)])]
[[[..., ...], [..., ...]]]
>>> try:
...     playing.send([Prompted(target)])
... except StopIteration as end:
...     print(end.value.clicked, end.value.intersection.tolist(), end.value.union[0, 0])
[1 2 1] [[25, 25, 25], [10, 25, 25], [25, 25, 25]] 25
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hardlook.clicks.asking import ask
from hardlook.clicks.courses import HALVES, Course
from hardlook.clicks.error_regions import Truth, compare
from hardlook.clicks.first_clicks import mean_mask
from hardlook.clicks.instance import Instance
from hardlook.clicks.rules import Rules
from hardlook.clicks.turns import Player, take_turns
from hardlook.errors import OptionError
from hardlook.models.roles import ClickModel, Clicks, Mask, Prompted


@dataclass(frozen=True)
class Trajectories:
    """The clicks and counts of all courses on one instance; arrays are (courses, rounds).

    `x`, `y` in pixels; `intersection`, `union` in pixels, ignored ones out. Rounds that were not clicked, since nothing
    was left to click, have x = y = -1, are not positive and repeat the counts; `clicked` (courses,) says how many were.
    `last` holds each course's last mask (H, W); `first_mean` (H, W) float32 in [0, 1] is the mean first mask of the
    clicking groups, of all courses where there is none. `fallbacks` counts the clicks of all courses that fell back
    to the centre rule because no free pixel had a chance.
    """

    courses: tuple[str, ...]
    x: NDArray[np.int64]
    y: NDArray[np.int64]
    positive: NDArray[np.bool_]
    intersection: NDArray[np.int64]
    union: NDArray[np.int64]
    clicked: NDArray[np.int64]
    last: tuple[Mask, ...] = field(repr=False)
    first_mean: NDArray[np.float32] = field(repr=False)
    fallbacks: int


def play(
    instance: Instance, courses: Sequence[Course], click_model: ClickModel, rules: Rules
) -> Generator[list[Clicks], list[Prompted], Trajectories]:
    """Play all courses on one instance, round by round, until none has anything left to click or the rounds are over.

    Yields the prompts of the courses still going, in the order of `courses`; is sent one answer a prompt.
    """
    names = tuple(course.name for course in courses)
    if not names or len(set(names)) < len(names):
        raise OptionError(f"courses {list(names)}", remedy="at least one, each with a name of its own")
    truth = Truth.of(instance.target, instance.ignore)
    blank = np.zeros(instance.shape, bool)
    nothing = compare(truth, blank)
    players = [Player(course, blank, nothing) for course in courses]
    fallbacks, first_mean = 0, np.zeros(instance.shape, np.float32)
    for number in range(1, rules.rounds + 1):
        fallbacks += take_turns([one for one in players if one.going], instance, click_model, rules, number)
        going = [one for one in players if one.going]
        if not going:
            break
        answers = yield from ask([one.prompt for one in going], instance)
        for player, answer in zip(going, answers, strict=True):
            player.found = compare(truth, answer.mask)
            player.mask, player.state = answer.mask, answer.state
            player.counts.append((player.found.intersection, player.found.union))
        if number == 1:
            groups = [one.mask for one in players if one.course.draws and one.course not in HALVES]
            first_mean = mean_mask(groups or [one.mask for one in players], instance.shape)
    return _gather(names, players, rules.rounds, first_mean, fallbacks)


def _gather(
    names: tuple[str, ...], players: list[Player], rounds: int, first_mean: NDArray[np.float32], fallbacks: int
) -> Trajectories:
    places = np.full((len(players), rounds, 2), -1, np.int64)
    positive = np.zeros((len(players), rounds), bool)
    counts = np.zeros((len(players), rounds, 2), np.int64)
    for index, player in enumerate(players):
        made = len(player.clicks)
        places[index, :made] = player.pixels
        positive[index, :made] = player.prompt.positive
        counts[index, :made] = player.counts
        counts[index, made:] = player.counts[-1]
    return Trajectories(
        courses=names,
        x=places[..., 1],
        y=places[..., 0],
        positive=positive,
        intersection=counts[..., 0],
        union=counts[..., 1],
        clicked=np.array([len(player.clicks) for player in players], np.int64),
        last=tuple(player.mask for player in players),
        first_mean=first_mean,
        fallbacks=fallbacks,
    )
