"""Clicking groups: the worked checks, the words of the specification done slowly, and laws."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hardlook.rclicks.clicks.groups import compute_pixel_probabilities, draw_pixel, sort_values

# Small whole numbers tie often; zeros have no chance.
VALUES = st.lists(st.integers(0, 6), min_size=1, max_size=30).filter(any).map(lambda v: np.array(v, float))

BOUNDS = st.tuples(st.integers(0, 9), st.integers(1, 10)).filter(lambda b: b[0] < b[1])


def members(values, group, rule="threshold"):
    chosen = compute_pixel_probabilities(sort_values(np.array(values)), group / 10, (group + 1) / 10, rule) > 0
    return set(np.array(values)[chosen].tolist())


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.0, 2.0, 3.0, 4.0], [{1, 2}] * 2 + [{2, 3}] * 2 + [{3}] + [{3, 4}] * 2 + [{4}] * 3),
        ([0.2, 0.3, 0.5], [{0.2}] + [{0.2, 0.3}] * 2 + [{0.3}] + [{0.3, 0.5}] * 2 + [{0.5}] * 4),
    ],
)
def test_worked_checks(values, expected):
    assert [members(values, group) for group in range(10)] == expected


def slow_threshold(values, low, high):
    """The specification's words, in whole numbers; bounds are tenths."""
    ascending = sorted(int(value) for value in values)
    total = sum(ascending)
    mass = [sum(ascending[: place + 1]) for place in range(len(ascending))]
    first = next(place for place, c in enumerate(mass) if 10 * c >= low * total)
    last = next((place for place, c in enumerate(mass) if 10 * c > high * total), len(mass) - 1)
    kept = [v if ascending[first] <= v <= ascending[last] else 0 for v in values]
    return np.array(kept, float) / sum(kept)


def slow_exact(values, low, high):
    """Overlaps of each pixel's stretch of mass with the group's, in fractions."""
    total = Fraction(int(sum(values)))
    before, result = Fraction(0), [0.0] * len(values)
    for place in sorted(range(len(values)), key=lambda place: (values[place], place)):
        end = before + int(values[place])
        overlap = min(end, total * high / 10) - max(before, total * low / 10)
        result[place] = float(max(overlap, 0) / (total * (high - low) / 10))
        before = end
    return np.array(result)


@given(VALUES, BOUNDS)
def test_threshold_groups_are_the_words(values, bounds):
    low, high = bounds
    # Where a bound falls on a sum, tenths in binary may miss it by a hair on either side, for the paper's code too.
    sums = np.cumsum(np.sort(values))
    if any(10 * total == bound * sums[-1] and bound / 10 * sums[-1] != total for total in sums for bound in bounds):
        return
    ours = compute_pixel_probabilities(sort_values(values), low / 10, high / 10, "threshold")
    assert ours == pytest.approx(slow_threshold(values, low, high))


@given(VALUES, BOUNDS)
def test_exact_groups_are_overlaps_of_mass(values, bounds):
    low, high = bounds
    ours = compute_pixel_probabilities(sort_values(values), low / 10, high / 10, "exact")
    assert ours == pytest.approx(slow_exact(values, low, high), abs=1e-12)


@given(VALUES, st.integers(1, 12))
def test_exact_groups_partition_the_mass(values, count):
    ordered = sort_values(values)
    parts = sum(compute_pixel_probabilities(ordered, g / count, (g + 1) / count, "exact") for g in range(count))
    assert parts / count == pytest.approx(values / values.sum())


@given(VALUES, st.sampled_from(["threshold", "exact"]))
def test_no_group_is_empty_and_groups_ascend(values, rule):
    found = [members(values, group, rule) for group in range(10)]
    assert all(found)
    assert all(0.0 not in group for group in found)
    for lower, upper in pairwise(found):
        assert min(lower) <= min(upper)
        assert max(lower) <= max(upper)


@given(VALUES)
def test_threshold_groups_keep_ties_together(values):
    for group in range(10):
        chance = compute_pixel_probabilities(sort_values(values), group / 10, (group + 1) / 10, "threshold")
        for value in set(values.tolist()):
            assert len(set(chance[values == value].tolist())) == 1


@given(VALUES, st.integers(1, 1000))
def test_only_proportions_count(values, factor):
    for rule in ("threshold", "exact"):
        once, scaled = sort_values(values), sort_values(values * 2.0**factor / 2.0**500)
        assert np.array_equal(
            compute_pixel_probabilities(once, 0.25, 0.5, rule), compute_pixel_probabilities(scaled, 0.25, 0.5, rule)
        )


@given(VALUES, BOUNDS, st.sampled_from(["threshold", "exact"]), st.floats(0, 1, exclude_max=True))
def test_a_draw_is_the_inverse_of_the_cumulative_weights(values, bounds, rule, uniform):
    ordered = sort_values(values)
    low, high = bounds[0] / 10, bounds[1] / 10
    chance = compute_pixel_probabilities(ordered, low, high, rule)
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(chance[order])
    place = draw_pixel(ordered, low, high, rule, uniform)
    assert chance[place] > 1e-12
    spot = int(np.flatnonzero(order == place)[0])
    assert reached[spot] > uniform - 1e-9
    assert reached[spot] - chance[place] <= uniform + 1e-9


@settings(max_examples=25)
@given(VALUES, BOUNDS, st.sampled_from(["threshold", "exact"]))
def test_even_numbers_give_every_pixel_its_share(values, bounds, rule):
    ordered = sort_values(values)
    low, high = bounds[0] / 10, bounds[1] / 10
    count = 500
    drawn = [draw_pixel(ordered, low, high, rule, (step + 0.5) / count) for step in range(count)]
    shares = np.bincount(drawn, minlength=len(values)) / count
    assert np.abs(shares - compute_pixel_probabilities(ordered, low, high, rule)).max() <= 1.01 / count


def test_the_last_number_before_one_stays_in_its_group():
    ordered = sort_values(np.ones(1000))
    almost = np.nextafter(1.0, 0.0)
    assert [draw_pixel(ordered, g / 10, (g + 1) / 10, "exact", almost) for g in range(10)] == list(range(99, 1000, 100))
    assert draw_pixel(ordered, 0.3, 0.4, "threshold", almost) == 999


def test_nothing_to_draw_is_said():
    assert sort_values(np.empty(0)).is_empty
    assert sort_values(np.zeros(4)).is_empty
    assert not sort_values(np.array([0.0, 1e-300])).is_empty


def test_large_maps_keep_their_most_probable_pixels():
    """Summed up in single precision the mass overshoots its total, so the last group ends before the best pixels."""
    y, x = np.mgrid[:1365, :2048]
    values = np.exp(-((y - 682) ** 2 + (x - 1024) ** 2) / (2 * 200.0**2)).ravel()
    values /= values.sum()
    single = values.astype(np.float32)
    ascending = np.sort(single)
    last = np.searchsorted(np.cumsum(ascending, dtype=np.float32), single.sum(), side="right")
    assert ascending[last] < single.max()
    ordered = sort_values(values)
    for rule in ("threshold", "exact"):
        group = compute_pixel_probabilities(ordered, 0.9, 1.0, rule)
        assert group[values == values.max()].all()
        assert values[group > 0].sum() == pytest.approx(0.1, rel=1e-3)
        assert draw_pixel(ordered, 0.9, 1.0, rule, np.nextafter(1.0, 0.0)) == int(values.argmax())
