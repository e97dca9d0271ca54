"""Simulated clicks on one instance: all courses click in step, so that each round is one batch of prompts.

`simulate_clicks` is a generator without side effects: it yields the prompts of the active courses and is sent the
segmenter's masks, so it does not matter who runs the network, where, and beside what else.

A click is a function of the dataset, the instance, the course, the round, the seed and the masks so far: one random
number, keyed by the first five, and nothing that other courses do.

>>> from hardlook.rclicks.clicks.courses import BASE, make_clicking_groups
>>> from hardlook.rclicks.click_models.simple import Uniform
>>> target = np.zeros((7, 9), bool)
>>> target[1:6, 1:6] = True
>>> instance = Instance("mine", "cat", np.zeros((7, 9, 3), np.uint8), target, target & False)
>>> simulation = simulate_clicks(instance, (BASE, *make_clicking_groups(2)), Uniform(), Rules(rounds=3))
>>> prompts = next(simulation)
>>> len(prompts), prompts[0].points.tolist(), prompts[0].positive.tolist()
(3, [[3.0, 3.0]], [True])
>>> half = target & (np.arange(9) < 3)
>>> [prompt.points.tolist() for prompt in simulation.send([Prompted(target), Prompted(half), Prompted(target)])]
[[[..., ...], [..., ...]]]
>>> try:
...     simulation.send([Prompted(target)])
... except StopIteration as end:
...     print((end.value.x >= 0).sum(1), end.value.intersection.tolist(), end.value.union[0, 0])
[1 2 1] [[25, 25, 25], [10, 25, 25], [25, 25, 25]] 25
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import astuple, dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardlook.errors import HardlookError, ModelError, OptionError
from hardlook.metrics.boundaries import BoundaryCounts, BoundaryTruth
from hardlook.models.answer_checks import AnswerError, find_array_faults, split_answers, to_array
from hardlook.models.roles import ClickModel, Clicks, Mask, Prompted
from hardlook.randomness import generator
from hardlook.rclicks.clicks.courses import HALVES, Course, Instance, Rules
from hardlook.rclicks.clicks.error_regions import (
    Choice,
    GroundTruth,
    MaskComparison,
    Pixels,
    Region,
    choose_error,
    compare_masks,
)
from hardlook.rclicks.clicks.groups import SortedValues, draw_pixel, sort_values


@dataclass(frozen=True)
class Trajectories:
    """The clicks and counts of all courses on one instance; arrays are (courses, rounds).

    `x`, `y` in pixels; `intersection`, `union` in pixels, ignored ones out. Rounds that were not clicked, since nothing
    was left to click, have x = y = -1, are not positive and repeat the counts. A first round with a box has
    x = y = -1, too, and counts of its own.
    `last` holds each course's last mask (H, W); `first_mean` (H, W) float32 in [0, 1] is the mean first mask of the
    clicking groups, of all courses where there is none. `fallbacks` counts the clicks of all courses that fell back
    to the centre rule because the click model gave every free pixel a chance of 0. `boundary` (courses, rounds, 6) has
    the fields of `BoundaryCounts`, where they are counted.
    """

    courses: tuple[str, ...]
    x: NDArray[np.int64]
    y: NDArray[np.int64]
    positive: NDArray[np.bool_]
    intersection: NDArray[np.int64]
    union: NDArray[np.int64]
    last: tuple[Mask, ...] = field(repr=False)
    first_mean: NDArray[np.float32] = field(repr=False)
    fallbacks: int
    boundary: NDArray[np.int64] | None = None


def join_draws(draws: Sequence[Trajectories]) -> Trajectories:
    """All draws on one instance as one; `last` and `first_mean` are those of the first draw."""
    names = ["x", "y", "positive", "intersection", "union"]
    if draws[0].boundary is not None:
        names.append("boundary")
    joined: dict[str, Any] = {name: np.concatenate([getattr(draw, name) for draw in draws]) for name in names}
    courses = tuple(course for draw in draws for course in draw.courses)
    return replace(draws[0], courses=courses, fallbacks=sum(draw.fallbacks for draw in draws), **joined)


def simulate_clicks(
    instance: Instance, courses: Sequence[Course], click_model: ClickModel, rules: Rules
) -> Generator[list[Clicks], list[Prompted], Trajectories]:
    """Click all courses on one instance, round by round, until none has anything left to click or the rounds are over.

    Yields the prompts of the active courses, in the order of `courses`; is sent one answer per prompt.
    """
    names = tuple(course.name for course in courses)
    if not names or len(set(names)) < len(names):
        raise OptionError(f"courses {list(names)}", remedy="at least one, each with a name of its own")
    truth = GroundTruth.of(instance.target, instance.ignore)
    boundary = BoundaryTruth.of(instance.target, instance.ignore) if rules.boundary else None
    empty = np.zeros(instance.shape, bool)
    untouched = compare_masks(truth, empty)
    states = [CourseState(course, empty, untouched) for course in courses]
    fallbacks, first_mean = 0, np.zeros(instance.shape, np.float32)
    for number in range(1, rules.rounds + 1):
        if rules.first_prompt == "box" and number == 1:
            # All courses begin with the same prompt, so that one answer serves them all.
            for state in states:
                state.box = find_box(truth.target)
            active, prompts = states, [states[0].prompt]
        else:
            fallbacks += _click_round([one for one in states if one.active], instance, click_model, rules, number)
            active = [one for one in states if one.active]
            prompts = [one.prompt for one in active]
        if not active:
            break
        answers = yield from request_masks(prompts, instance)
        answers = answers * (len(active) // len(prompts))
        for state, answer in zip(active, answers, strict=True):
            state.comparison = compare_masks(truth, answer.mask)
            state.mask, state.model_state = answer.mask, answer.state
            state.counts.append((state.comparison.intersection, state.comparison.union))
            if boundary is not None:
                state.boundaries.append(astuple(boundary.count(answer.mask)))
        if number == 1:
            groups = [one.mask for one in states if one.course.draws and one.course not in HALVES]
            first_mean = mean_mask(groups or [one.mask for one in states], instance.shape)
    return _collect(names, states, rules.rounds, first_mean, fallbacks)


@dataclass(frozen=True)
class FirstClicks:
    """What one positive click each gave: counts (n,) int64 in pixels, and the mean mask (H, W) float32 in [0, 1]."""

    intersection: NDArray[np.int64]
    union: NDArray[np.int64]
    mean_mask: NDArray[np.float32] = field(repr=False)


def simulate_first_clicks(
    instance: Instance, points: ArrayLike
) -> Generator[list[Clicks], list[Prompted], FirstClicks]:
    """Each of the `points` (n, 2), (x, y) in pixels, as the only click, in one batch; without points the mean is 0.

    >>> frame = np.zeros((4, 6), bool)
    >>> frame[1:3, 2:5] = True
    >>> instance = Instance("mine", "cat", np.zeros((4, 6, 3), np.uint8), frame, frame & False)
    >>> [prompt.points.tolist() for prompt in next(simulate_first_clicks(instance, [(2, 1), (0, 0)]))]
    [[[2.0, 1.0]], [[0.0, 0.0]]]
    """
    truth = GroundTruth.of(instance.target, instance.ignore)
    clicks = np.array(points, np.float32).reshape(-1, 2)
    answers = yield from request_masks([Clicks(point[None].copy(), np.ones(1, bool)) for point in clicks], instance)
    compared = [compare_masks(truth, answer.mask) for answer in answers]
    return FirstClicks(
        np.array([one.intersection for one in compared], np.int64),
        np.array([one.union for one in compared], np.int64),
        mean_mask([answer.mask for answer in answers], instance.shape),
    )


def request_masks(prompts: list[Clicks], instance: Instance) -> Generator[list[Clicks], list[Prompted], list[Prompted]]:
    """Yield the prompts and take the answers, one bool mask (H, W) per prompt.

    Answers are checked where a model's session is opened (`models.answer_checks.CheckedSession`). An error that is
    thrown in for a failed call leaves here with the instance's name.

    >>> frame = np.ones((2, 2), bool)
    >>> request = request_masks([Clicks(np.zeros((1, 2), np.float32), frame[0, :1])],
    ...                         Instance("mine", "cat", np.zeros((2, 2, 3), np.uint8), frame, ~frame))
    >>> len(next(request))
    1
    >>> request.throw(ModelError("expected 1 answers, got 0"))
    Traceback (most recent call last):
    ...
    hardlook.errors.ModelError: expected 1 answers, got 0
      unit: cat
    """
    try:
        answers = yield prompts
    except HardlookError as error:
        raise error.at(unit=instance.name) from error
    return answers


def mean_mask(masks: list[Mask], shape: tuple[int, int]) -> NDArray[np.float32]:
    """(H, W) float32: the share of the masks that hold each pixel; 0 where there are no masks.

    >>> mean_mask([np.array([[True, False]]), np.array([[True, True]])], (1, 2)).tolist()
    [[1.0, 0.5]]
    """
    counts = np.zeros(shape, np.float32)
    for mask in masks:
        counts += mask
    return counts / np.float32(max(len(masks), 1))


@dataclass
class CourseState:
    """One course so far: its clicks (row, column, positive), its counts per round, its latest mask and comparison."""

    course: Course
    mask: Mask
    comparison: MaskComparison
    clicks: list[tuple[int, int, bool]] = field(default_factory=list)
    counts: list[tuple[int, int]] = field(default_factory=list)
    boundaries: list[tuple[int, ...]] = field(default_factory=list)
    model_state: Any = None
    active: bool = True
    box: NDArray[np.float32] | None = None

    @property
    def pixels(self) -> Pixels:
        """(k, 2) rows and columns clicked so far."""
        return np.array([click[:2] for click in self.clicks], np.int64).reshape(-1, 2)

    @property
    def prompt(self) -> Clicks:
        """All clicks so far and the segmenter's latest state; arrays of its own."""
        positive = np.array([click[2] for click in self.clicks], bool)
        box = None if self.box is None else self.box.copy()
        return Clicks(self.pixels[:, ::-1].astype(np.float32), positive, self.model_state, box)


def find_box(mask: Mask) -> NDArray[np.float32]:
    """x0, y0, x1, y1 (4,) of the outermost pixels of a mask (H, W) with at least one.

    >>> find_box(np.array([[0, 0, 0, 0], [0, 1, 1, 0]], bool))
    array([1., 1., 2., 1.], dtype=float32)
    """
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    return np.array([columns[0], rows[0], columns[-1], rows[-1]], np.float32)


def _click_round(
    states: Sequence[CourseState], instance: Instance, click_model: ClickModel, rules: Rules, number: int
) -> int:
    """Add the click of round `number`, from 1, to each course, or end it; how many fell back to the centre rule."""
    # Before the first answer all courses have the same error, so one choice and one map serve them all.
    distinct = states[:1] if number == 1 else states
    choices = [choose_error(one.comparison, one.pixels) for one in distinct] * (len(states) // len(distinct))
    drawing: list[tuple[CourseState, Choice]] = []
    for state, choice in zip(states, choices, strict=True):
        if choice is not None and state.course.draws:
            drawing.append((state, choice))
        elif choice is not None:
            state.clicks.append((choice.row, choice.column, choice.positive))
        elif rules.perfect == "released":
            state.clicks.append((0, 0, False))
        else:
            state.active = False
    mapped = drawing[:1] if number == 1 else drawing
    found = _find_chances(instance, click_model, [choice for _, choice in mapped], [one.pixels for one, _ in mapped])
    fallbacks = 0
    for (state, choice), (pixels, ordered) in zip(drawing, found * (len(drawing) if number == 1 else 1), strict=True):
        course, row, column = state.course, choice.row, choice.column
        if ordered.is_empty or course.low is None or course.high is None:
            fallbacks += 1
        else:
            uniform = generator(rules.seed, instance.dataset, instance.name, course.name, number).random()
            index = draw_pixel(ordered, course.low, course.high, rules.groups, uniform)
            row, column = divmod(int(pixels[index]), choice.region.box.width)
            row, column = row + choice.region.box.top, column + choice.region.box.left
        state.clicks.append((row, column, choice.positive))
    return fallbacks


def _find_chances(
    instance: Instance, click_model: ClickModel, choices: Sequence[Choice], clicked: Sequence[Pixels]
) -> list[tuple[NDArray[np.intp], SortedValues]]:
    """Of each chosen error the free pixels (n,), flat indices in its box, and their chances.

    The pixels `clicked` (k, 2), rows and columns, are not free.

    The map is multiplied by the error and by not yet clicked; dividing it by its sum changes no draw and is left out.
    A `local` click model is given the error's box only; one with `click_maps` makes all maps at once. A map of another
    shape, or with a negative or undefined value on a free pixel, raises a `ModelError`.
    """
    maps = _local_maps if getattr(click_model, "local", False) else _frame_maps
    found = []
    for choice, chances, made in zip(choices, maps(instance, click_model, choices), clicked, strict=True):
        pixels = np.flatnonzero(_free_pixels(choice.region, made))
        ordered = sort_values(np.asarray(chances).reshape(-1)[pixels].astype(np.float64, copy=False))
        # Ascending, negative values come first and undefined ones last, so that two values check all.
        for value in ordered.ascending[[0, -1]] if len(pixels) else ():
            if not 0 <= value < np.inf:
                raise _map_error(click_model, instance, f"expected finite chances of at least 0, got {value}")
        found.append((pixels, ordered))
    return found


def _local_maps(instance: Instance, click_model: ClickModel, choices: Sequence[Choice]) -> list[Any]:
    maps = []
    for choice in choices:
        cut, error = choice.region.box.slices, choice.region.mask
        chances = click_model.click_map(instance.image[cut], instance.target[cut], error, choice.positive)
        maps.append(_check_shape(chances, error.shape, click_model, instance))
    return maps


def _frame_maps(instance: Instance, click_model: ClickModel, choices: Sequence[Choice]) -> list[Any]:
    errors, positives = [], []
    for choice in choices:
        error = np.zeros(instance.shape, bool)
        error[choice.region.box.slices] = choice.region.mask
        errors.append(error)
        positives.append(choice.positive)
    batched = getattr(click_model, "click_maps", None)
    if batched is not None:
        try:
            made = batched(instance.image, instance.target, errors, positives)
            maps = split_answers(made, len(errors), "error regions", exact=False)
        except AnswerError as error:
            raise _map_error(click_model, instance, str(error)) from None
    else:
        single = click_model.click_map
        maps = [single(instance.image, instance.target, *one) for one in zip(errors, positives, strict=True)]
    whole = [_check_shape(chances, instance.shape, click_model, instance) for chances in maps]
    return [chances[choice.region.box.slices] for choice, chances in zip(choices, whole, strict=True)]


def _free_pixels(region: Region, clicked: Pixels) -> Mask:
    places = clicked - (region.box.top, region.box.left)
    places = places[((places >= 0) & (places < region.mask.shape)).all(axis=1)]
    if not len(places):
        return region.mask
    free = region.mask.copy()
    free[places[:, 0], places[:, 1]] = False
    return free


def _check_shape(chances: Any, shape: tuple[int, ...], click_model: ClickModel, instance: Instance) -> Any:
    axes, chances = dict(zip(("H", "W"), shape, strict=True)), to_array(chances)
    if faults := find_array_faults("map", chances, np.float64, axes, exact=False, values=False):
        raise _map_error(click_model, instance, "; ".join(faults))
    return chances


def _map_error(click_model: ClickModel, instance: Instance, what: str) -> ModelError:
    return ModelError(
        f"the click model {type(click_model).__name__}: {what}",
        unit=instance.name,
        remedy="`hardlook check click-model NAME` tries it",
    )


def _collect(
    names: tuple[str, ...], states: list[CourseState], rounds: int, first_mean: NDArray[np.float32], fallbacks: int
) -> Trajectories:
    places = np.full((len(states), rounds, 2), -1, np.int64)
    positive = np.zeros((len(states), rounds), bool)
    counts = np.zeros((len(states), rounds, 2), np.int64)
    boundary = np.zeros((len(states), rounds, len(fields(BoundaryCounts))), np.int64) if states[0].boundaries else None
    for index, state in enumerate(states):
        made = len(state.counts)
        clicked = slice(made - len(state.clicks), made)
        places[index, clicked] = state.pixels
        positive[index, clicked] = state.prompt.positive
        counts[index, :made] = state.counts
        counts[index, made:] = state.counts[-1]
        if boundary is not None:
            boundary[index, :made] = state.boundaries
            boundary[index, made:] = state.boundaries[-1]
    return Trajectories(
        courses=names,
        x=places[..., 1],
        y=places[..., 0],
        positive=positive,
        intersection=counts[..., 0],
        union=counts[..., 1],
        last=tuple(state.mask for state in states),
        first_mean=first_mean,
        fallbacks=fallbacks,
        boundary=boundary,
    )
