"""What is kept for pictures and shown of a run is what it is said to be: masks, galleries, the map of groups."""

import json

import click_records
import numpy as np
import pytest
from click_records import record

from hardlook.data.rle import decode
from hardlook.harness.sections import Gallery, HeatMap
from hardlook.models.planted.disc import Disc
from hardlook.models.roles import Clicks
from hardlook.rclicks.benchmark import RCLICKS
from hardlook.rclicks.evaluation import decode_shares
from hardlook.rclicks.options import RClicksOptions
from hardlook.rclicks.units import list_units, prepare_unit

MODEL = Disc(fragility=0.9, blunt=0.6)

ROUNDS, COURSES = 3, 11

# A grey level of the stored picture, rounded.
KEPT = 0.5 / 255 + 1e-6


def answered(**given):
    """Units of the planted world and their records, pictures' columns and all."""
    units = [prepare_unit(unit) for unit in list_units(RClicksOptions(scenes=6, rounds=ROUNDS, resamples=0, **given))]
    return list(zip(units, RCLICKS.evaluate(units, MODEL), strict=True))


@pytest.fixture(scope="module")
def crowd():
    return answered()


def masks_of(unit, prompts):
    """What the model answers to lists of (x, y, positive), asked anew; it keeps no state."""
    session = MODEL.open(unit.payload.instance.image)
    asked = [
        Clicks(np.array([point[:2] for point in points], np.float32), np.array([point[2] for point in points], bool))
        for points in prompts
    ]
    return [answer.mask for answer in session.predict(asked)]


def course(row, place):
    """The clicks of a course."""
    at = slice(place * ROUNDS, (place + 1) * ROUNDS)
    clicks = zip(row["x"][at], row["y"][at], row["positive"][at], strict=True)
    return [(x, y, bool(positive)) for x, y, positive in clicks if x >= 0]


def first_masks(unit, row):
    """The mean masks after one click: of people, and of groups."""
    people = [[(x, y, True)] for x, y in zip(row["user_x"], row["user_y"], strict=True)]
    groups = [course(row, place)[:1] for place in range(1, COURSES)]
    return [np.mean(masks_of(unit, prompts), axis=0) if prompts else None for prompts in (people, groups)]


def test_the_mean_mask_is_of_people_where_they_clicked(crowd):
    apart = 0.0
    for unit, row in crowd:
        people, groups = first_masks(unit, row)
        assert np.abs(decode_shares(row["mean_mask"]) - people).max() <= KEPT
        apart = max(apart, np.abs(people - groups).max())
    assert apart > 10 * KEPT  # else either would do


def test_the_mean_mask_is_of_the_groups_where_nobody_clicked():
    for unit, row in answered(user_clicks="none"):
        people, groups = first_masks(unit, row)
        assert people is None
        assert np.abs(decode_shares(row["mean_mask"]) - groups).max() <= KEPT


def last_masks(unit, row):
    """The last masks of the centre rule and of the group with the lowest mean IoU."""
    ious = np.reshape(row["intersection"], (COURSES, ROUNDS)) / np.reshape(row["union"], (COURSES, ROUNDS))
    worst = 1 + int(ious[1:].mean(1).argmin())
    return masks_of(unit, [course(row, 0), course(row, worst)])


def test_the_last_masks_are_the_centre_rules_and_then_the_worst_groups(crowd):
    differ = 0
    for unit, row in crowd:
        kept = [decode(mask) for mask in json.loads(row["last_masks"])]
        expected = last_masks(unit, row)
        assert [mask.tolist() for mask in kept] == [mask.tolist() for mask in expected]
        differ += bool((expected[0] != expected[1]).any())
    assert differ > 3


def test_each_picture_has_the_mask_and_the_clicks_of_one_course(crowd):
    """All clicks lie on the object, so that all pictures show the same part, as large."""
    for unit, row in crowd:
        truth, *courses = RCLICKS.pictures(unit, row)[:3]
        enlarged = truth.mask.sum() / unit.payload.instance.target.sum()
        for picture, mask in zip(courses, last_masks(unit, row), strict=True):
            assert picture.image.shape == truth.image.shape
            assert picture.mask.sum() == enlarged * mask.sum()
            assert all(picture.mask[round(y), round(x)] for x, y, positive in picture.points if positive)
        assert len(courses[0].points) == len(course(row, 0))


def blocks(rows, kind):
    """The blocks of that kind, in the order of the report."""
    frame = click_records.frame(rows)
    card = RCLICKS.score(frame, RClicksOptions(resamples=0))
    return [block for section in RCLICKS.report(frame, card) for block in section.blocks if isinstance(block, kind)]


def test_galleries_are_of_what_hangs_on_the_click_and_of_what_groups_lose():
    # Per cent: what courses end with, what groups lose before they catch up, how far first clicks differ.
    ends = {"a": 70, "b": 90, "c": 60, "d": 80}
    losses = {"a": 10, "b": 20, "c": 30, "d": 40}
    spreads = {"a": 4, "b": 1, "c": 8, "d": 2}
    rows = []
    for unit, end in ends.items():
        before = end - losses[unit]
        groups = [[before + sign * spreads[unit], before, before, end] for sign in (1, -1, 1, -1)]
        if unit == "c":
            groups[0][-1] = 95  # one group finds what the others miss
        rows.append(record(unit, [end] * 4, groups))
    shown = [[one.unit.split("/")[1] for one in gallery.examples] for gallery in blocks(rows, Gallery)]
    # Spread over mean of the first click: 8/30, 4/60, 2/40, 1/70.
    assert shown == [["c", "a", "d", "b"], ["d", "c", "b", "a"]]


@pytest.mark.parametrize("rounds", [3, 20])
def test_each_column_of_the_map_is_of_the_clicks_that_stand_above_it(rounds):
    """IoUs tell by their value who clicked and how often: 4 per cent a click and 1 a course."""
    courses = [[4 * click + place for click in range(1, rounds + 1)] for place in range(3)]
    # A dataset with twice the instances weighs no more than the other, which has 10 per cent more everywhere.
    rows = [record(unit, courses[0], courses[1:]) for unit in "ab"]
    higher = [[iou + 10 for iou in one] for one in courses]
    rows.append(record("c", higher[0], higher[1:], dataset="davis"))
    (chart,) = [one for one in blocks(rows, HeatMap) if list(one.rows) == ["centre", "G1", "G2"]]
    clicks = [int(column) for column in chart.columns]
    assert (clicks[0], clicks[-1]) == (1, rounds)
    for place, values in enumerate(chart.values):
        assert values == pytest.approx([(4 * click + place + 5) / 100 for click in clicks])
