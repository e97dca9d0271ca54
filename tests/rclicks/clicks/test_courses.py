"""Courses of clicks and the instances they are played on: which bounds and masks are allowed."""

import math
import re

import numpy as np
import pytest

from hardlook.errors import DataError, OptionError
from hardlook.rclicks.clicks.courses import (
    BASE,
    HALVES,
    Course,
    Instance,
    Rules,
    find_groups,
    make_clicking_groups,
    repeat_courses,
    split_draws,
)


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 0.1), (0.9, 1.0), (0.25, 0.5)])
def test_a_course_draws_from_a_share_of_the_mass(low, high):
    course = Course("mine", low, high)
    assert (course.low, course.high, course.draws) == (low, high, True)


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (-0.01, 1),
        (-1, 1),
        (0, 1.01),
        (0, 2),
        (0.5, 0.5),
        (0.6, 0.4),
        (None, 1),
        (0, None),
        (math.nan, 1),
        (0, math.nan),
    ],
)
def test_bounds_that_are_no_share_of_the_mass_are_refused(low, high):
    with pytest.raises(OptionError, match=re.escape(f"the course 'mine' cannot draw between {low} and {high}")):
        Course("mine", low, high)


def test_the_centre_rule_has_no_bounds():
    assert not BASE.draws and (BASE.low, BASE.high) == (None, None)


@pytest.mark.parametrize("count", [1, 2, 7, 10])
def test_groups_cut_the_mass_into_equal_shares_the_least_probable_first(count):
    groups = make_clicking_groups(count)
    assert [group.name for group in groups] == [f"G{number}" for number in range(1, count + 1)]
    assert (groups[0].low, groups[-1].high) == (0, 1)
    assert [group.high - group.low for group in groups] == pytest.approx([1 / count] * count)
    # Each begins where the one before ends, to the last bit.
    assert [group.low for group in groups[1:]] == [group.high for group in groups[:-1]]


@pytest.mark.parametrize("count", [0, -1])
def test_there_is_at_least_one_group(count):
    with pytest.raises(OptionError, match=f"{count} clicking groups"):
        make_clicking_groups(count)


def test_halves_meet_in_the_middle():
    assert [(half.name, half.low, half.high) for half in HALVES] == [("lower", 0.0, 0.5), ("upper", 0.5, 1.0)]


def test_further_draws_have_names_of_their_own_and_the_centre_rule_belongs_to_each():
    courses = (BASE, *make_clicking_groups(2), *HALVES)
    repeated = [repeat_courses(courses, draw) for draw in (2, 3)]
    assert [(one.low, one.high) for one in repeated[0]] == [(one.low, one.high) for one in courses[1:]]
    names = [course.name for part in (courses, *repeated) for course in part]
    assert len(set(names)) == len(names) == 5 + 4 + 4
    drawn = ["G1", "G2", "lower", "upper"]
    assert split_draws(names) == [
        {"base": 0, **dict(zip(drawn, (1, 2, 3, 4), strict=True))},
        {"base": 0, **dict(zip(drawn, (5, 6, 7, 8), strict=True))},
        {"base": 0, **dict(zip(drawn, (9, 10, 11, 12), strict=True))},
    ]
    assert find_groups(names) == [1, 2]
    assert split_draws(["G1", "G1#2"]) == [{"G1": 0}, {"G1": 1}]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rounds": 0}, "0 rounds"),
        ({"groups": "none"}, "groups='none'"),
        ({"perfect": "none"}, "perfect='none'"),
    ],
)
def test_rules_that_do_not_exist_are_refused(given, message):
    with pytest.raises(OptionError, match=message):
        Rules(**given)
    assert Rules(rounds=1, groups="exact", perfect="released").rounds == 1


def instance(target, ignore=None, size=(3, 4)):
    ignore = np.zeros(target.shape, bool) if ignore is None else ignore
    return Instance("mine", "cat_1", np.zeros((*size, 3), np.uint8), target, ignore)


def test_an_instance_has_masks_of_its_images_size_and_a_pixel_that_counts():
    target = np.zeros((3, 4), bool)
    target[1, 2] = True
    assert instance(target).shape == (3, 4)
    with pytest.raises(DataError, match=r"expected image, target and ignore of one size, got image \(4, 3\)"):
        instance(target, size=(4, 3))
    with pytest.raises(DataError, match=r"got image \(3, 4\), target \(3, 4\), ignore \(1, 4\)"):
        instance(target, target[:1])
    with pytest.raises(DataError, match="expected bool masks, got target uint8 and ignore bool"):
        instance(target.astype(np.uint8))
    with pytest.raises(DataError, match="got target bool and ignore uint8"):
        instance(target, target.astype(np.uint8))
    for ignore in (target, np.ones((3, 4), bool)):
        with pytest.raises(DataError, match="the target has no pixel that counts"):
            instance(target, ignore)
    assert instance(np.ones((3, 4), bool), target).target.sum() == 12


def test_twenty_rounds_of_ten_groups_unless_it_is_said():
    assert len(make_clicking_groups()) == 10
    rules = Rules()
    assert (rules.rounds, rules.seed, rules.boundary) == (20, 0, False)
    assert [(half.name, half.low, half.high) for half in HALVES] == [("lower", 0.0, 0.5), ("upper", 0.5, 1.0)]
