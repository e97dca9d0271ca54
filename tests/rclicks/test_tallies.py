"""What RClicks's scores are made from: it gives the scorecard's values, and takes images from another run."""

import math

import click_records
import numpy as np
import polars as pl
import pytest
from click_records import reaching, record
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import trapezoid

from hardlook.errors import OptionError
from hardlook.harness.runs.scoring import check_readings
from hardlook.rclicks.benchmark import RCLICKS
from hardlook.rclicks.options import RClicksOptions
from hardlook.rclicks.scores import SCORES

OPTIONS = RClicksOptions(resamples=0)

IMAGES = {"berkeley": 3, "davis": 2, "grabcut": 4}

PEOPLE = (0, 1, 3)


def frame(seed, hopeless=()):
    """Two instances an image in three datasets, of which one has no people; on `hopeless` datasets no mask is met."""
    rng = np.random.default_rng(seed)
    rows = []
    for dataset, images in IMAGES.items():
        for place in range(2 * images):
            top = 1 if dataset in hopeless else 101
            courses = [np.sort(rng.integers(0, top, 6)).tolist() for _ in range(5)]
            clicked = 0 if dataset == "davis" else PEOPLE[place % 3]
            rows.append(
                record(
                    str(place),
                    courses[0],
                    courses[1:],
                    dataset=dataset,
                    image=f"image {place // 2}",
                    size=("small", "medium", "large")[place % 3],
                    people=rng.integers(0, top, clicked).tolist(),
                )
            )
    return click_records.frame(rows)


def values(tallies):
    return {
        (entry.name, *sorted(entry.slice.items())): (entry, value)
        for tally in tallies
        for entry, value in zip(tally.entries, tally.values()[0], strict=True)
    }


@pytest.mark.parametrize("records", [frame(0), frame(1, ["davis"]), frame(2).filter(dataset="grabcut")], ids=range(3))
def test_every_entry_is_a_score_and_every_score_but_one_an_entry(records):
    found = {(score.name, *sorted(score.slice.items())): score for score in RCLICKS.score(records, OPTIONS).scores}
    entries = {
        key: pair for key, pair in values(RCLICKS.tallies(records, OPTIONS)).items() if pair[0].n or pair[0].reason
    }
    assert set(entries) == {key for key in found if key[0] != "nof-std"}
    for key, (entry, value) in entries.items():
        score = found[key]
        if score.reason:  # no course of davis gets there: its differences of clicks are not earned
            assert np.isnan(score.value) and score.n == 0 and key[1:] == (("dataset", "davis"),)
            continue
        assert value == pytest.approx(score.value, abs=1e-12), key
        assert (entry.n, entry.reading, entry.comparable) == (score.n, score.reading, score.comparable)


def test_a_model_that_meets_no_object_keeps_the_places_of_its_scores():
    good, hopeless = (RCLICKS.tallies(some, OPTIONS) for some in (frame(0), frame(0, IMAGES)))
    assert list(values(good)) == list(values(hopeless))
    assert [tally.sums.shape for tally in good] == [tally.sums.shape for tally in hopeless]
    entry, value = values(hopeless)["nsr",]
    assert (entry.n, math.isnan(value)) == (0, True)
    names = {score.name for score in RCLICKS.score(frame(0, IMAGES), OPTIONS).scores}
    assert {"nsr", "nsr1"}.isdisjoint(names)
    assert "noc90" in names


@pytest.mark.parametrize("hopeless", [(), ("davis",), tuple(IMAGES)], ids=str)
def test_taking_no_image_from_another_run_changes_nothing_and_taking_all_gives_it(hopeless):
    for own, other in zip(*(RCLICKS.tallies(some, OPTIONS) for some in (frame(0), frame(5, hopeless))), strict=True):
        none, every = np.zeros((1, own.clusters.n)), np.ones((1, own.clusters.n))
        np.testing.assert_allclose(own.mixed(other, none), own.values(), atol=1e-9)
        np.testing.assert_allclose(own.mixed(other, every), other.values(), atol=1e-9)


@settings(max_examples=15)
@given(st.lists(st.booleans(), min_size=9, max_size=9), st.integers(0, 9), st.sampled_from([(), ("davis",)]))
def test_images_taken_from_another_run_score_as_the_run_made_of_both(taken, seed, hopeless):
    first, second = frame(seed), frame(seed + 1, hopeless)
    images = [(dataset, f"image {place}") for dataset, count in IMAGES.items() for place in range(count)]
    key = pl.concat_str("dataset", "image", separator="/")
    moved = [f"{dataset}/{image}" for (dataset, image), swap in zip(images, taken, strict=True) if swap]
    joined = pl.concat([first.filter(~key.is_in(moved)), second.filter(key.is_in(moved))])
    own, other, both = (RCLICKS.tallies(some, OPTIONS)[0] for some in (first, second, joined))
    found = own.mixed(other, np.array([taken], float))
    np.testing.assert_allclose(found, both.values(), atol=1e-9)


def test_images_are_drawn_within_datasets():
    tally = RCLICKS.tallies(frame(0), OPTIONS)[0]
    assert tally.clusters.sizes.tolist() == list(IMAGES.values())
    assert tally.resampled == "image"


def test_the_order_of_records_changes_no_row():
    records = frame(3)
    shuffled = records.sample(fraction=1.0, shuffle=True, seed=1)
    for one, other in zip(*(RCLICKS.tallies(some, OPTIONS) for some in (records, shuffled)), strict=True):
        assert one.entries == other.entries
        assert np.array_equal(one.sums, other.sums)
        assert np.array_equal(one.clusters.codes, other.clusters.codes)


def test_qualities_by_hand_in_the_order_of_the_records():
    records = click_records.frame(
        [
            record("b", reaching(3), [reaching(8), reaching(4)]),
            record("a", reaching(1), [[50, *[90] * 19], [100] * 20]),
        ]
    )
    found = RCLICKS.qualities(records, OPTIONS)
    assert found.columns == ["unit", *(quality.name for quality in RCLICKS.card.qualities)]
    assert found["unit"].to_list() == ["grabcut/b", "grabcut/a"]
    assert found["noc90"].to_list() == [6, 1.5]
    assert found["dgr"].to_list() == [100, 100]
    ious = [[reaching(8), reaching(4)], [[50, *[90] * 19], [100] * 20]]
    assert found["auc"].to_list() == pytest.approx([np.mean([trapezoid(i) / 19 for i in some]) for some in ious])


def test_the_mean_of_a_quality_is_the_score_of_that_name():
    records = frame(4).filter(dataset="grabcut")
    found, card = RCLICKS.qualities(records, OPTIONS), RCLICKS.score(records, OPTIONS)
    for quality in RCLICKS.card.qualities:
        assert found[quality.name].mean() == pytest.approx(card.get(quality.name).value)
        assert quality.higher_is_better == next(one for one in SCORES if one.name == quality.name).higher_is_better


def caption(base, groups, courses=None):
    return RCLICKS.caption(click_records.frame([record("a", base, groups, courses=courses)]).row(0, named=True))


def test_captions_by_hand():
    start = "A medium object of 100 pixels (grabcut): the centre rule "
    never = [50] * 20
    assert (
        caption(reaching(1), [reaching(8), reaching(4)])
        == f"{start}needs 1 click to 90 % IoU, all 2 groups need 4 to 8."
    )
    assert caption(reaching(3), [reaching(8), never, never]) == (
        f"{start}needs 3 clicks to 90 % IoU, 1 of 3 groups needs 8, and 2 do not get there in 20."
    )
    assert caption(never, [never, never]) == (
        f"{start}does not reach 90 % IoU, and none of 2 groups does in 20 clicks."
    )
    # Reached at the last click: late, and not never. Halves are no groups.
    halves = ("base", "G1", "G2", "lower", "upper")
    assert caption(reaching(20), [reaching(20), reaching(20), never, never], halves) == (
        f"{start}needs 20 clicks to 90 % IoU, all 2 groups need 20."
    )


def test_scores_of_sampled_and_of_centre_clicks_differ_in_words():
    words = {meaning.name: meaning.meaning for meaning in SCORES}
    for name in words:
        if f"{name}-base" in words:
            assert words[name] != words[f"{name}-base"]
    assert len({meaning.title for meaning in SCORES}) == len(SCORES)


@pytest.mark.parametrize(
    ("name", "choices"), [("group-rule", ("threshold", "exact")), ("perfect", ("ours", "released"))]
)
def test_readings_that_were_chosen_with_the_clicks_name_their_alternatives(name, choices):
    [reading] = [one for one in RCLICKS.readings(OPTIONS) if one.name == name]
    assert (reading.value, reading.choices) == (choices[0], choices)
    with pytest.raises(OptionError, match=f"sets it by --{name}"):
        check_readings(RCLICKS, RClicksOptions(reading={name: choices[1]}))


def test_the_benchmark_can_be_compared_and_judged():
    assert RCLICKS.tallies is not None
    assert RCLICKS.qualities is not None
