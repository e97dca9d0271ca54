"""Whole courses: against a full-frame implementation by the words, and what perfect masks and empty maps lead to."""

from dataclasses import astuple, replace
from types import SimpleNamespace

import numpy as np
import pytest
from click_scenes import drive, instances, plain, same
from scipy import ndimage

from hardlook.errors import DataError, ModelError, OptionError
from hardlook.metrics.boundaries import BoundaryTruth
from hardlook.metrics.regions import Box
from hardlook.models.answer_checks import CheckedSession
from hardlook.models.planted.click_models import PlantedClicks
from hardlook.models.planted.disc import Disc
from hardlook.models.roles import Clicks, Prompted
from hardlook.randomness import generator
from hardlook.rclicks.click_models.simple import Center, Distance, Uniform
from hardlook.rclicks.clicks.courses import BASE, HALVES, Course, Instance, Rules, make_clicking_groups
from hardlook.rclicks.clicks.error_regions import Region
from hardlook.rclicks.clicks.simulation import _free_pixels, join_draws, simulate_clicks, simulate_first_clicks
from hardlook.rclicks.clicks.simulation_runner import run_simulations


def test_each_point_is_tried_alone():
    for instance in instances(2):
        session = Disc(fragility=1.0).open(instance.image)
        y, x = np.nonzero(instance.target)
        points = np.stack([x, y], axis=1)[:: len(x) // 8]
        found = drive(simulate_first_clicks(instance, points), session.predict)
        counted, masks = ~instance.ignore, []
        for index, point in enumerate(points):
            [answer] = session.predict([Clicks(np.array([point], np.float32), np.ones(1, bool))])
            masks.append(answer.mask)
            assert found.intersection[index] == (answer.mask & instance.target & counted).sum()
            assert found.union[index] == ((answer.mask | instance.target) & counted).sum()
        assert np.allclose(found.mean_mask, np.mean(masks, axis=0))
        assert found.mean_mask.dtype == np.float32


def test_points_are_copied_and_none_is_allowed():
    [instance] = instances(1)
    session = Disc().open(instance.image)
    points = np.array([[3.5, 2.5]])
    [prompt] = next(simulate_first_clicks(instance, points))
    assert prompt.points.tolist() == [[3.5, 2.5]]
    assert not np.shares_memory(prompt.points, points)
    nobody = drive(simulate_first_clicks(instance, np.empty((0, 2))), session.predict)
    assert nobody.union.shape == (0,)
    assert not nobody.mean_mask.any()


COURSES = (BASE, *make_clicking_groups(10))

SQUARE = np.pad(np.ones((5, 5), bool), ((1, 1), (1, 3)))


def slow_course(instance, course, click_model, rules, session):
    """One course over the whole frame, alone, by the words; rows of x, y, positive, intersection, union."""
    target, counted = instance.target, ~instance.ignore
    mask, state, rows = np.zeros(instance.shape, bool), None, []
    clicked = np.zeros(instance.shape, bool)
    for number in range(1, rules.rounds + 1):
        errors = [target & ~mask & counted, mask & ~target & counted]
        if not (errors[0] | errors[1]).any():
            rows.append((-1, -1, False, *rows[-1][3:]))
            continue
        depths = [np.rint(ndimage.distance_transform_edt(np.pad(e, 1))[1:-1, 1:-1] ** 2) * ~clicked for e in errors]
        positive = bool(depths[0].max() > depths[1].max())
        error, depth = errors[1 - positive], depths[1 - positive]
        place = int(depth.argmax())
        if course.low is not None:
            chances = (click_model.click_map(instance.image, target, error, positive) * error * ~clicked).ravel()
            uniform = generator(rules.seed, instance.dataset, instance.name, course.name, number).random()
            place = slow_draw(chances, course, uniform)
        y, x = divmod(place, instance.shape[1])
        clicked[y, x] = True
        points = np.array([(r[0], r[1]) for r in rows] + [(x, y)], np.float32)
        signs = np.array([r[2] for r in rows] + [positive])
        [answer] = session.predict([Clicks(points, signs, state)])
        mask, state = answer.mask, answer.state
        rows.append((x, y, positive, (mask & target & counted).sum(), ((mask | target) & counted).sum()))
    return rows


def slow_draw(chances, course, uniform):
    """A threshold group's draw from a map of the whole frame: places sorted by value, then by row and column."""
    order = np.argsort(chances, kind="stable")
    order = order[chances[order] > 0]
    mass = np.cumsum(chances[order])
    first = int(np.argmax(mass >= course.low * mass[-1]))
    above = mass > course.high * mass[-1]
    last = int(np.argmax(above)) if above.any() else len(mass) - 1
    ascending = chances[order]
    inside = (ascending >= ascending[first]) & (ascending <= ascending[last])
    before = mass[inside][0] - ascending[inside][0]
    wanted = before + uniform * (mass[inside][-1] - before)
    return int(order[inside][np.argmax(mass[inside] > wanted)])


@pytest.mark.parametrize(
    "click_model", [Uniform(), Distance(), PlantedClicks(edge=0.7)], ids=lambda m: type(m).__name__
)
def test_courses_are_the_words(click_model):
    rules = Rules(rounds=6, seed=5)
    for instance in instances(4):
        session = Disc(fragility=1.0, blunt=1.0).open(instance.image)
        found = drive(simulate_clicks(instance, COURSES, click_model, rules), session.predict)
        for index, course in enumerate(COURSES):
            slow = np.array(slow_course(instance, course, click_model, rules, session))
            ours = [part[index] for part in (found.x, found.y, found.positive, found.intersection, found.union)]
            assert np.array_equal(np.stack(ours, axis=1), slow), (instance.name, course.name)


def test_a_course_does_not_depend_on_its_company():
    instance = instances(1)[0]
    session = Disc(fragility=1.0).open(instance.image)
    together = drive(simulate_clicks(instance, COURSES, Distance(), Rules()), session.predict)
    for index in (0, 3, 10):
        alone = drive(simulate_clicks(instance, COURSES[index : index + 1], Distance(), Rules()), session.predict)
        assert np.array_equal(alone.x[0], together.x[index])
        assert np.array_equal(alone.intersection[0], together.intersection[index])
        assert alone.last[0].tobytes() == together.last[index].tobytes()


def test_seeds_names_and_datasets_key_the_draws():
    [instance] = instances(1)
    session = Disc().open(instance.image)

    def first(rules=Rules(rounds=1), **changes):  # noqa: B008
        other = Instance(**{**vars(instance), **changes})
        found = drive(simulate_clicks(other, make_clicking_groups(10), Uniform(), rules), session.predict)
        return found.x.tolist(), found.y.tolist()

    assert first() == first()
    assert len({str(one) for one in (first(), first(name="b"), first(dataset="b"), first(Rules(1, seed=1)))}) == 4


def test_perfect_courses_leave_the_batch_and_repeat():
    instance, sizes = plain(SQUARE), []

    def answer(prompts):
        sizes.append(len(prompts))
        # Only the base, whose click is the middle, is answered perfectly at once.
        return [Prompted(SQUARE if len(p.points) > 2 or p.points.tolist() == [[3, 3]] else ~SQUARE) for p in prompts]

    group = Course("edge", 0.0, 0.1)
    found = drive(simulate_clicks(instance, (BASE, group), Distance(), Rules(rounds=5)), answer)
    assert sizes == [2, 1, 1]
    assert (found.x >= 0).sum(1).tolist() == [1, 3]
    assert found.intersection.tolist() == [[25] * 5, [0, 0, 25, 25, 25]]
    assert found.union.tolist() == [[25] * 5, [63, 63, 25, 25, 25]]
    assert found.x[0].tolist() == [3, -1, -1, -1, -1]
    assert found.y[1, 3:].tolist() == [-1, -1]
    assert not found.positive[0, 1:].any()
    assert np.array_equal(found.first_mean, (~SQUARE).astype(np.float32))


def test_released_goes_on_clicking_in_the_corner():
    instance, asked = plain(SQUARE), []

    def answer(prompts):
        asked.append(prompts)
        return [Prompted(SQUARE) for _ in prompts]

    found = drive(simulate_clicks(instance, COURSES[:2], Uniform(), Rules(rounds=3, perfect="released")), answer)
    assert [len(prompts) for prompts in asked] == [2, 2, 2]
    assert (found.x >= 0).sum(1).tolist() == [3, 3]
    assert found.x[:, 1:].tolist() == found.y[:, 1:].tolist() == [[0, 0], [0, 0]]
    assert found.positive.tolist() == [[True, False, False]] * 2
    assert asked[2][0].positive.tolist() == [True, False, False]
    assert asked[2][0].points.tolist() == [[3, 3], [0, 0], [0, 0]]
    assert found.fallbacks == 0


@pytest.mark.parametrize(("perfect", "clicked"), [("ours", 1), ("released", 4)])
def test_an_error_clicked_all_over_is_the_end_too(perfect, clicked):
    instance = plain(np.pad(np.ones((1, 1), bool), 2))
    empty = np.zeros(instance.shape, bool)
    found = drive(
        simulate_clicks(instance, COURSES[:2], Uniform(), Rules(4, perfect=perfect)),
        lambda ps: [Prompted(empty) for _ in ps],
    )
    assert (found.x >= 0).sum(1).tolist() == [clicked] * 2
    assert found.intersection.tolist() == [[0] * 4] * 2
    assert found.union.tolist() == [[1] * 4] * 2
    assert found.positive[:, 0].all()


def test_prompts_hold_all_clicks_and_the_state_before():
    instance, states = instances(1)[0], []
    empty = np.zeros(instance.shape, bool)

    def answer(prompts):
        states.append([prompt.state for prompt in prompts])
        for prompt in prompts:
            assert prompt.points.dtype == np.float32
            assert prompt.points.shape == (len(states), 2)
            assert prompt.positive.all()
        return [Prompted(empty, (len(states), place)) for place, _ in enumerate(prompts)]

    found = drive(simulate_clicks(instance, COURSES, Uniform(), Rules(rounds=3)), answer)
    assert states == [[None] * 11, [(1, p) for p in range(11)], [(2, p) for p in range(11)]]
    for course in range(11):
        places = list(zip(found.x[course], found.y[course], strict=True))
        assert len(set(places)) == 3  # no pixel twice
        assert all(instance.target[y, x] for x, y in places)


def test_an_empty_map_falls_back_to_the_centre_and_is_counted():
    instance = plain(SQUARE)
    nowhere = SimpleNamespace(click_map=lambda image, target, error, positive: np.zeros(error.shape))
    found = drive(
        simulate_clicks(instance, COURSES, nowhere, Rules(rounds=2)), lambda ps: [Prompted(~SQUARE) for _ in ps]
    )
    assert found.fallbacks == 20
    assert (found.x == found.x[0]).all()
    # The centre model has no second choice: its first pixel is taken the second time.
    empty = np.zeros(SQUARE.shape, bool)
    found = drive(
        simulate_clicks(instance, COURSES, Center(), Rules(rounds=2)), lambda ps: [Prompted(empty) for _ in ps]
    )
    assert found.fallbacks == 10
    assert (found.y == found.y[0]).all()


BROKEN = {
    "map: expected shape (H, W) = (7, 9), got (3, 3)": lambda e: np.ones((3, 3)),
    "map: expected a numpy array, got list": lambda e: [],
    "at least 0, got nan": lambda e: np.where(e, np.nan, 0),
    "at least 0, got -1.0": lambda e: -1.0 * e,
    "at least 0, got inf": lambda e: np.where(e, np.inf, 0),
}


@pytest.mark.parametrize("words", BROKEN)
def test_a_click_model_that_breaks_its_word_is_named(words):
    class Broken:
        def click_map(self, image, target, error, positive):
            return BROKEN[words](error)

    with pytest.raises(ModelError, match="click model Broken") as caught:
        next(simulate_clicks(plain(SQUARE), COURSES, Broken(), Rules()))
    assert words in str(caught.value)
    assert caught.value.unit == "one"


def test_click_maps_are_asked_at_once_and_full_frames_where_not_local():
    asked = []

    class Batched:
        def click_map(self, image, target, error, positive):
            raise AssertionError("asked one by one")

        def click_maps(self, image, target, errors, positives):
            asked.append((image.shape, target.shape, [e.shape for e in errors], list(positives)))
            return [error.astype(float) for error in errors]

    for instance in instances(2):
        session = Disc(fragility=1.0).open(instance.image)
        asked.clear()
        batched = drive(simulate_clicks(instance, COURSES, Batched(), Rules(rounds=3)), session.predict)
        assert [len(call[2]) for call in asked] == [1, 10, 10]
        assert {shape for call in asked for shape in call[2]} == {instance.shape}
        assert same(batched, drive(simulate_clicks(instance, COURSES, Uniform(), Rules(rounds=3)), session.predict))
    short = SimpleNamespace(click_map=None, click_maps=lambda *asked: [])
    with pytest.raises(ModelError, match="expected 1 answers for 1 error regions, got 0"):
        next(simulate_clicks(instance, COURSES, short, Rules()))


@pytest.mark.parametrize("mask", [np.full((7, 9), 2, np.uint8), np.ones((7, 8), bool), None])
def test_a_segmenter_that_breaks_its_word_is_told(mask):
    instance = plain(SQUARE)
    model = SimpleNamespace(open=lambda image: SimpleNamespace(predict=lambda prompts: [Prompted(mask)] * len(prompts)))
    playing = simulate_clicks(instance, COURSES[:1], Uniform(), Rules())
    with pytest.raises(ModelError, match=r"types\.SimpleNamespace: mask: expected") as caught:
        run_simulations([(CheckedSession(model, instance.image), playing)])
    assert caught.value.unit == instance.name


def test_inputs_are_left_alone():
    for instance in instances(2):
        for part in (instance.image, instance.target, instance.ignore):
            part.setflags(write=False)
        session = Disc(fragility=1.0).open(instance.image)

        def answer(prompts, session=session):
            answers = session.predict(prompts)
            for one in answers:
                one.mask.setflags(write=False)
            return answers

        drawn = drive(
            simulate_clicks(instance, (*COURSES, *HALVES), Distance(), Rules(rounds=4, groups="exact")), answer
        )
        assert drawn.courses[-2:] == ("lower", "upper")
        assert (drawn.x[:, 0] >= 0).all()


def test_wrong_courses_rules_and_instances_are_refused():
    with pytest.raises(OptionError, match="courses"):
        next(simulate_clicks(plain(SQUARE), (BASE, BASE), Uniform(), Rules()))
    with pytest.raises(OptionError, match="courses"):
        next(simulate_clicks(plain(SQUARE), (), Uniform(), Rules()))
    with pytest.raises(OptionError, match="0 rounds"):
        Rules(rounds=0)
    with pytest.raises(OptionError, match="no rules"):
        Rules(groups="other")
    with pytest.raises(OptionError, match="cannot draw between"):
        Course("odd", 0.5, 0.2)
    with pytest.raises(OptionError, match="clicking groups"):
        make_clicking_groups(0)
    with pytest.raises(DataError, match="no pixel that counts"):
        plain(SQUARE, ignore=SQUARE)
    with pytest.raises(DataError, match="of one size"):
        plain(SQUARE, ignore=SQUARE[1:])
    with pytest.raises(DataError, match="bool masks"):
        plain(SQUARE, ignore=SQUARE.astype(np.uint8) * 0)


def test_groups_share_the_mass_from_end_to_end():
    for count in (1, 3, 7, 10):
        groups = make_clicking_groups(count)
        assert [group.low for group in groups] == [0.0, *(group.high for group in groups[:-1])]
        assert groups[-1].high == 1.0


def test_a_box_comes_first_and_stays():
    [instance] = instances(1)
    rows, columns = np.nonzero(instance.target & ~instance.ignore)
    asked = []

    def answer(prompts):
        asked.append(prompts)
        # A mask that grows with the clicks, so that courses differ.
        half = instance.target & (np.arange(instance.shape[1]) < columns.mean())
        answers = []
        for prompt in prompts:
            mask = half.copy()
            mask[prompt.pixels(instance.shape)] = True
            answers.append(Prompted(mask, state=len(asked)))
        return answers

    courses = (BASE, *make_clicking_groups(4))
    found = drive(simulate_clicks(instance, courses, Distance(), Rules(rounds=3, first_prompt="box")), answer)
    assert [len(prompts) for prompts in asked] == [1, 5, 5]
    [first] = asked[0]
    assert first.points.shape == (0, 2) and first.positive.shape == (0,) and first.state is None
    expected = [columns.min(), rows.min(), columns.max(), rows.max()]
    for prompts, clicks, state in zip(asked, (0, 1, 2), (None, 1, 2), strict=True):
        for prompt in prompts:
            assert prompt.box.tolist() == expected and prompt.box.dtype == np.float32
            assert (len(prompt.points), prompt.state) == (clicks, state)
    assert (found.x[:, 0] == -1).all() and (found.x[:, 1:] >= 0).all() and not found.positive[:, 0].any()
    assert len(set(found.intersection[:, 0].tolist())) == 1
    clicked = [(int(x), int(y)) for x, y in asked[2][0].points]
    assert clicked == list(zip(found.x[0, 1:].tolist(), found.y[0, 1:].tolist(), strict=True))


def test_a_perfect_answer_to_the_box_ends_the_course():
    [instance] = instances(1)
    found = drive(
        simulate_clicks(instance, (BASE,), Distance(), Rules(rounds=3, first_prompt="box")),
        lambda prompts: [Prompted(instance.target) for _ in prompts],
    )
    assert found.x.tolist() == [[-1, -1, -1]] and (found.intersection == found.union).all()


def test_boundaries_are_counted_after_every_round_and_repeated_after_the_last():
    instance = plain(SQUARE)
    masks = [SQUARE & (np.arange(9) < 3), SQUARE & (np.arange(9) < 5), SQUARE]
    answers = iter(masks)
    rules = Rules(rounds=5, boundary=True)
    found = drive(simulate_clicks(instance, (BASE,), Distance(), rules), lambda ps: [Prompted(next(answers))])
    truth = BoundaryTruth.of(instance.target, instance.ignore)
    expected = [astuple(truth.count(mask)) for mask in (*masks, SQUARE, SQUARE)]
    assert found.boundary.tolist() == [list(map(list, expected))]
    assert len({tuple(row) for row in found.boundary[0].tolist()}) == 3
    assert (found.x[0] >= 0).tolist() == [True, True, True, False, False]
    without = drive(simulate_clicks(instance, (BASE,), Distance(), Rules(2)), lambda ps: [Prompted(SQUARE)])
    assert without.boundary is None


@pytest.mark.parametrize("boundary", [True, False])
def test_draws_are_joined_course_by_course(boundary):
    [instance] = instances(1)
    session = Disc(fragility=1.0).open(instance.image)
    draws = [
        drive(simulate_clicks(instance, courses, Distance(), Rules(rounds=3, boundary=boundary)), session.predict)
        for courses in ((BASE,), make_clicking_groups(2))
    ]
    draws = [replace(draw, fallbacks=number) for number, draw in enumerate(draws, 3)]
    joined = join_draws(draws)
    assert joined.courses == (*draws[0].courses, *draws[1].courses) and joined.fallbacks == 7
    for name in ("x", "y", "positive", "intersection", "union"):
        assert getattr(joined, name).tolist() == [*getattr(draws[0], name).tolist(), *getattr(draws[1], name).tolist()]
    assert joined.last is draws[0].last and joined.first_mean is draws[0].first_mean
    assert joined.boundary.shape == (3, 3, 6) if boundary else joined.boundary is None


def test_the_mean_first_mask_is_that_of_the_groups_and_of_all_courses_where_there_is_none():
    instance, empty = plain(SQUARE), np.zeros(SQUARE.shape, bool)
    for courses, share in (((BASE, *HALVES), 1 / 3), ((BASE, *make_clicking_groups(2), *HALVES), 0.0), ((BASE,), 1.0)):
        # The base alone, which is first, finds all.
        found = drive(
            simulate_clicks(instance, courses, Distance(), Rules(rounds=1)),
            lambda ps: [Prompted(SQUARE if not n else empty) for n, _ in enumerate(ps)],
        )
        np.testing.assert_allclose(found.first_mean, SQUARE * np.float32(share))


def test_clicks_beside_a_region_leave_its_pixels_free_and_those_in_it_not():
    region = Region(Box(top=4, left=1, bottom=6, right=4), np.ones((2, 3), bool))
    outside = np.array([(3, 1), (6, 3), (4, 0), (5, 4)])
    assert _free_pixels(region, outside) is region.mask
    free = _free_pixels(region, np.array([(4, 1), (5, 3), (5, 4)]))
    assert free.tolist() == [[False, True, True], [True, True, False]] and region.mask.all()
