"""Scores of RClicks against the specification's worked example and a literal reading of its formulas."""

import statistics
from types import SimpleNamespace

import click_records
import numpy as np
import pytest
from click_records import reaching, record
from compared_runs import planted_run
from hypothesis import given
from hypothesis import strategies as st

from hardlook.errors import OptionError
from hardlook.harness.scorecard import Scorecard
from hardlook.rclicks.benchmark import RCLICKS
from hardlook.rclicks.options import RClicksOptions
from hardlook.rclicks.scores import measure_difficulty, name_ranges, read_results
from hardlook.report.compare.comparison import compare_runs
from hardlook.report.compare.differences import describe_difference

FIRST, SECOND = [10, 8, 6, 5, 5, 4, 4, 4, 3, 2], [4, 4, 3, 3, 3, 3, 2, 2, 2, 2]

WORKED = [
    record("a", reaching(3), [reaching(noc) for noc in FIRST]),
    record("b", reaching(2), [reaching(noc) for noc in SECOND]),
]


def card_of(records, **given):
    return RCLICKS.score(click_records.frame(records), RClicksOptions(resamples=0, **given))


@pytest.mark.parametrize(
    ("name", "value"),
    [("noc90", 3.95), ("noc90-std", 1.502217), ("noc90-base", 2.5), ("dsb", 55), ("dgr", 250), ("dhh", 80)],
)
def test_the_worked_example(name, value):
    assert card_of(WORKED).get(name).value == pytest.approx(value, abs=1e-6)
    assert card_of(WORKED).get(name, dataset="grabcut").value == pytest.approx(value, abs=1e-6)


def test_the_area_under_the_worked_trajectory():
    ious = [50, 70, 85, 90, *[95] * 16]
    card = card_of([record("a", ious, [ious] * 10)])
    assert card.get("auc-base").value == pytest.approx(91.7105, abs=1e-4)
    assert card.get("noc90-base").value == 4
    assert card.get("nsr").value == 0


def test_every_dataset_weighs_alike():
    """One instance of one dataset counts as much as two of another: the paper's main table."""
    others = [record("c", reaching(7), [reaching(9)] * 10, dataset="davis")]
    card = card_of(WORKED + others)
    assert card.get("noc90").value == pytest.approx((3.95 + 9) / 2)
    assert card.get("noc90-base").value == pytest.approx((2.5 + 7) / 2)
    assert card.get("noc90", dataset="davis").value == 9
    assert card.get("noc90", size="medium").value == pytest.approx((5.1 + 2.8 + 9) / 3)


def test_failures_of_several_datasets_are_the_mean_of_their_counts():
    """NoF counts the instances of a dataset: neither those of all datasets together nor a share of them."""
    never, soon = [50] * 20, reaching(3)
    many = [record(name, never, [never] * 10, dataset="davis") for name in "abcd"]
    few = [record("e", never, [never] * 5 + [soon] * 5), record("f", soon, [soon] * 10)]
    card = card_of(many + few)
    for name, davis, grabcut in (("nof", 4, 0.5), ("nof-base", 4, 1)):
        assert card.get(name, dataset="davis").value == pytest.approx(davis)
        assert card.get(name, dataset="grabcut").value == pytest.approx(grabcut)
        assert card.get(name).value == pytest.approx((davis + grabcut) / 2)
    # In davis no course gets there, and all are cut off alike: by itself it has no difference of failures.
    for name, grabcut in (("dsb-nof", -0.5), ("dgr-nof", 1)):
        assert np.isnan(card.get(name, dataset="davis").value)
        assert card.get(name, dataset="grabcut").value == pytest.approx(grabcut)
        assert card.get(name).value == pytest.approx(grabcut / 2)
    # All sizes are alike here: a size pools the datasets, so that its number is of all instances.
    assert card.get("nof", size="medium").value == pytest.approx(4.5)
    assert card.get("nof-base", size="medium").value == pytest.approx(5)


def test_failures_are_counted_and_both_readings_exist():
    """Reached at the last click: a failure as released, none as ours."""
    late = record("a", reaching(20), [reaching(20)] * 5 + [reaching(3)] * 5)
    never = record("b", [50] * 20, [[50] * 20] * 10)
    released, ours = card_of([late, never]), card_of([late, never], reading={"nof": "ours"})
    assert (released.get("nof-base").value, ours.get("nof-base").value) == (2, 1)
    assert (released.get("nof").value, ours.get("nof").value) == (1.5, 1)
    assert released.get("dsb-nof").value == pytest.approx(-0.5)
    assert released.get("dgr-nof").value == 1
    assert released.get("dhh-nof").value == 1
    assert released.get("nof-std").value == pytest.approx(0.5)
    assert released.get("nof").reading == "nof=released"
    assert ours.get("dhh-nof").reading == "dhh=released, nof=ours"


def test_the_papers_halves_need_their_clicks():
    with pytest.raises(OptionError, match="--halves"):
        card_of(WORKED, reading={"dhh": "paper"})
    courses = ("base", *click_records.GROUPS, "lower", "upper")
    groups = [reaching(noc) for noc in FIRST]
    halves = record("a", reaching(3), [*groups, reaching(6), reaching(4)], courses=courses)
    card = card_of([halves], halves=True, reading={"dhh": "paper"})
    assert card.get("dhh").value == pytest.approx(50)
    assert card.get("noc90").value == pytest.approx(np.mean(FIRST))


def test_people_and_one_click():
    clicked = record("a", [80] * 3, [[60] * 3, [70] * 3], people=[50, 70, 90])
    silent = record("b", [80] * 3, [[60] * 3, [70] * 3])
    card = card_of([clicked, silent])
    assert card.get("user-iou1").value == pytest.approx(70)
    assert card.get("user-iou1").n == 1
    assert card.get("user-iou1-std").value == pytest.approx(np.std([50, 70, 90]))
    assert card.get("nsr1").value == pytest.approx(100 * np.std([50, 70, 90]) / 70)
    assert card.get("sample-iou1").value == pytest.approx(65)
    assert card.get("base-iou1").value == pytest.approx(80)
    assert any("without people" in note.what and note.count == 1 for note in card.left_out)


def test_an_instance_that_is_never_met_has_no_noise_and_is_named():
    card = card_of([record("a", [0] * 4, [[0] * 4] * 2), record("b", [50] * 4, [[50] * 4, [70] * 4])])
    assert card.get("nsr").n == 1
    assert card.get("nsr").value == pytest.approx(100 * 10 / 60)
    assert [note.examples for note in card.left_out if "NSR" in note.what] == [("grabcut/a",)]


def test_of_many_instances_without_noise_five_are_named():
    met = record("z", [50] * 4, [[50] * 4, [70] * 4])
    card = card_of([*(record(name, [0] * 4, [[0] * 4] * 2) for name in "abcdefg"), met])
    (note,) = [note for note in card.left_out if "NSR" in note.what]
    assert (note.count, note.examples) == (7, tuple(f"grabcut/{name}" for name in "abcde"))


def test_intervals_draw_images_within_datasets():
    rows = [
        record(f"{image}{number}", reaching(1 + number), [reaching(2 + image)] * 10, image=f"image {image}")
        for image in range(6)
        for number in range(2)
    ]
    options = RClicksOptions(resamples=200)
    score = RCLICKS.score(click_records.frame(rows), options).get("noc90")
    assert (score.n, score.interval.n, score.interval.resampled) == (12, 6, "image")
    assert score.interval.low < score.value < score.interval.high
    again = RCLICKS.score(click_records.frame(rows[::-1]), options)
    assert again.get("noc90") == score


@given(st.lists(st.lists(st.integers(1, 20), min_size=11, max_size=11), min_size=1, max_size=6))
def test_scores_are_the_formulas_of_the_specification(clicks):
    """Spec 6, written out: dSB, dGR and dHH of single instances, then plain means."""
    rows = [record(str(n), reaching(base), [reaching(g) for g in groups]) for n, (base, *groups) in enumerate(clicks)]
    card = card_of(rows)
    sb, gr, hh, spread = [], [], [], []
    for base, *groups in clicks:
        mean = sum(groups) / 10
        sb.append((mean - base) / base)
        gr.append((groups[0] - groups[9]) / groups[9])
        hh += [(groups[j] - groups[j + 5]) / groups[j + 5] for j in range(5)]
        spread.append((sum((g - mean) ** 2 for g in groups) / 10) ** 0.5)
    assert card.get("dsb").value == pytest.approx(100 * sum(sb) / len(sb))
    assert card.get("dgr").value == pytest.approx(100 * sum(gr) / len(gr))
    assert card.get("dhh").value == pytest.approx(100 * sum(hh) / len(hh))
    assert card.get("noc90-std").value == pytest.approx(sum(spread) / len(spread), abs=1e-9)


def test_one_persons_click_has_no_spread_and_is_named():
    card = card_of([record("a", [80] * 3, [[60] * 3, [70] * 3], people=[50]),
                    record("b", [80] * 3, [[60] * 3, [70] * 3], people=[40, 80])])  # fmt: skip
    assert (card.get("user-iou1").n, card.get("nsr1").n, card.get("user-iou1-std").n) == (2, 1, 1)
    assert card.get("nsr1").value == pytest.approx(100 * 20 / 60)
    assert [note.examples for note in card.left_out if "NSR@1" in note.what] == [("grabcut/a",)]


@pytest.mark.parametrize("few", [(), (10,)])
def test_without_two_clicks_of_people_on_each_instance_the_first_clicks_of_the_groups_say_how_hard_it_is(few):
    groups = {"a": [[40, 70, 90], [60, 80, 90]], "b": [[30, 10, 0], [30, 50, 80]]}
    rows = [record(name, [99] * 3, groups[name], people=people) for name, people in (("a", (20, 40)), ("b", few))]
    difficulty = measure_difficulty(read_results(click_records.frame(rows)))
    assert difficulty.clicks == "the groups' clicks"
    assert difficulty.mean == pytest.approx([0.5, 0.3])
    assert difficulty.deviation == pytest.approx([0.1, 0])
    assert difficulty.ratio == pytest.approx([0.2, 0])


def test_two_clicks_of_people_on_each_instance_say_how_hard_it_is():
    rows = [record(name, [99] * 3, [[50] * 3] * 2, people=people) for name, people in (("a", (20, 40)), ("b", (6, 6)))]
    difficulty = measure_difficulty(read_results(click_records.frame(rows)))
    assert difficulty.clicks == "the clicks of people"
    assert difficulty.mean == pytest.approx([0.3, 0.06])
    assert difficulty.deviation == pytest.approx([0.1, 0])


def test_an_odd_number_of_groups_has_no_halves_and_says_so():
    card = card_of([record("a", [80] * 3, [[60] * 3, [70] * 3, [75] * 3])])
    assert not [score for score in card.scores if score.name.startswith("dhh")]
    assert ("dhh", "dhh-nof", "dhh-iou") in [note.examples for note in card.left_out]


@pytest.mark.parametrize(("reading", "noted"), [("released", True), ("paper", False)])
def test_clicks_of_the_halves_stand_in_for_an_even_number_of_groups_by_one_reading_alone(reading, noted):
    courses = ("base", "G1", "G2", "G3", "lower", "upper")
    row = record("a", reaching(3), [reaching(noc) for noc in (6, 5, 4, 6, 4)], courses=courses)
    card = card_of([row], halves=True, reading={"dhh": reading})
    assert ("scores of dHH" in [note.what for note in card.left_out]) is noted
    assert ("dhh" in [score.name for score in card.headline]) is not noted


def test_courses_that_never_get_there_are_counted():
    card = card_of([record("a", reaching(3), [reaching(4), [50] * 20]), record("b", [50] * 20, [[50] * 20] * 2)])
    (note,) = card.noted
    assert (note.what, note.count, "as 20 clicks" in note.why) == ("courses that never reach 90 % IoU", 4, True)
    assert not card.left_out


def test_of_several_draws_the_centre_rule_is_counted_once():
    courses = ("base", "G1", "G2", "G1#2", "G2#2", "G1#3", "G2#3")
    never = [50] * 20
    card = card_of([record("a", never, [reaching(4), never, *[reaching(4)] * 4], courses=courses)], draws=3)
    assert [(note.what, note.count) for note in card.noted] == [("courses that never reach 90 % IoU", 2)]


def test_costs_of_a_model_that_never_gets_there_are_undefined_with_the_reason():
    never = [50] * 20
    card = card_of([record(name, never, [never] * 10) for name in "abcd"])
    assert card.get("noc90").value == 20
    for name in ("dsb", "dgr", "dhh", "noc90-std", "nof-std"):
        found = card.get(name)
        assert np.isnan(found.value) and found.interval is None and found.n == 0, name
        assert found.reason == "no course reaches 90 % IoU, so that differences in clicks do not show"
    assert Scorecard.from_json(card.to_json()).get("dsb").reason == card.get("dsb").reason
    # One instance that one group gets right is enough: as published, the others count as 20 clicks.
    reached = card_of([record("a", reaching(4), [reaching(2)] * 10), *(record(n, never, [never] * 10) for n in "bcd")])
    assert reached.get("dsb").value == pytest.approx(-50 / 4) and reached.get("dsb").n == 4


def test_a_comparison_says_why_costs_of_a_model_that_never_gets_there_are_undefined():
    never = [50] * 20
    stuck = [record(str(n), never, [never] * 10) for n in range(6)]
    worse = [record(str(n), [40] * 20, [[40] * 20] * 10) for n in range(6)]
    quick = [record(str(n), reaching(2 + n % 2), [reaching(3 + n % 3)] * 10) for n in range(6)]
    benchmark = SimpleNamespace(benchmark=RCLICKS, options=RClicksOptions(resamples=0))
    rows = {"stuck": stuck, "worse": worse, "quick": quick}
    runs = [planted_run(benchmark, click_records.frame(records), name) for name, records in rows.items()]
    found = compare_runs(runs, names=list(rows), swaps=99)
    why = "no course reaches 90 % IoU, so that differences in clicks do not show"
    pairs = {(one.first, one.second): one for one in found.headline if one.name == "dsb"}
    for pair, whose in ((("stuck", "worse"), "both"), (("stuck", "quick"), "stuck"), (("worse", "quick"), "worse")):
        one = pairs[pair]
        assert np.isnan(one.value) and np.isnan(one.p_value) and one.interval is None
        assert (one.verdict, one.reason) == ("undefined", why)
        assert f"it is undefined for {whose} ({why})." in describe_difference(one, found.find_meaning("dsb"))
    (undefined,) = [one for one in found.scores["stuck"] if one.name == "dsb" and not one.slice]
    assert np.isnan(undefined.value) and undefined.reason == why
    # What does not count clicks is compared all the same.
    against = [one for one in found.headline if one.name == "noc90" and one.second == "quick"]
    assert len(against) == 2 and all(one.value > 10 and one.p_value <= 0.05 for one in against)
    assert not [one for one in found.differences if one.name in ("dgr", "dgr-nof") and one.verdict != "undefined"]


def test_scores_of_a_few_peoples_instances_are_not_called_comparable():
    rows = [record(str(n), [80] * 20, [[60] * 20] * 10, people=[50, 60] if n < 3 else ()) for n in range(50)]
    given = {"data": {"grabcut": "x"}, "user_clicks": "clicks.csv", "clicks": "clickability", "clicks_args": "path=x"}
    card = card_of(rows, **given)
    assert card.get("user-iou1").comparable.startswith("not comparable: 3 instances")
    assert card.get("base-iou1").comparable.startswith("comparable")
    assert card.get("nof-std").reading == "nof=released"
    assert card.get("nof-std").comparable.startswith("comparable")


def several_draws(count, instances=5, groups=4, rounds=6):
    """Random records of so many draws, and for each draw the records that it would have alone."""
    rng = np.random.default_rng(count)
    names = [f"G{number}" for number in range(1, groups + 1)]
    joined, alone = [], [[] for _ in range(count)]
    for number in range(instances):
        base, *courses = np.sort(rng.integers(30, 101, (1 + count * groups, rounds)), axis=1).tolist()
        given = {"dataset": ("grabcut", "davis")[number % 2], "size": ("small", "large")[number % 2]}
        later = [f"{name}#{draw}" for draw in range(2, count + 1) for name in names]
        joined.append(record(f"{number}", base, courses, courses=("base", *names, *later), **given))
        for draw, records in enumerate(alone):
            records.append(record(f"{number}", base, courses[draw * groups : (draw + 1) * groups], **given))
    return joined, alone


def test_scores_of_several_draws_are_the_means_of_their_scores():
    joined, alone = several_draws(3)
    card, cards = card_of(joined, draws=3), [card_of(records) for records in alone]
    for score in cards[0].scores:
        if score.name == "nsr1" or score.slice.get("group"):
            continue
        values = [other.get(score.name, **score.slice).value for other in cards]
        assert card.get(score.name, **score.slice).value == pytest.approx(np.mean(values), abs=1e-9), score
    for group in ("G1", "G4"):
        values = [other.get("auc", group=group).value for other in cards]
        assert card.get("auc", group=group).value == pytest.approx(np.mean(values), abs=1e-9)
    for number, other in enumerate(cards, 1):
        for name in ("noc90", "dsb", "dgr", "nsr", "nof", "auc"):
            assert card.get(name, draw=str(number)).value == pytest.approx(other.get(name).value, abs=1e-9)


def test_the_spread_between_draws_by_hand():
    joined, _ = several_draws(3)
    card = card_of(joined, draws=3)
    one = [row for row in joined if row["dataset"] == "davis"]
    spread, first, failed = [], [], []
    for row in one:
        ious = np.reshape(row["intersection"], (13, 6))[1:].reshape(3, 4, 6)
        clicks = [[next((n for n, iou in enumerate(course, 1) if iou >= 90), 6) for course in draw] for draw in ious]
        spread += [statistics.stdev(draw[group] for draw in clicks) for group in range(4)]
        first += [statistics.stdev(draw[group][0] for draw in ious.tolist()) for group in range(4)]
        failed.append([[n == 6 for n in draw] for draw in clicks])
    counts = np.sum(failed, axis=0)  # draws by groups
    between = statistics.mean(statistics.stdev(counts[:, group].tolist()) for group in range(4))
    assert card.get("noc90-draw-std", dataset="davis").value == pytest.approx(statistics.mean(spread))
    assert card.get("sample-iou1-draw-std", dataset="davis").value == pytest.approx(statistics.mean(first))
    assert card.get("nof-draw-std", dataset="davis").value == pytest.approx(between)
    assert card.get("auc-draw-std", dataset="davis").value > 0


def test_a_run_of_one_draw_has_no_scores_of_draws():
    card = card_of(WORKED)
    assert not [score for score in card.scores if "draw" in score.name or "draw" in score.slice]


def test_clicks_failures_spread_and_time_are_better_when_low():
    meanings = {one.name: one for one in RCLICKS.card.scores}
    high = {"auc", "auc-base", "boundary-auc", "boundary-auc-base", "boundary-f", "boundary-f-base", "sample-iou1",
            "base-iou1", "user-iou1", "dsb-iou", "dgr-iou", "dhh-iou"}  # fmt: skip
    assert {name for name, one in meanings.items() if one.higher_is_better} == high
    assert all(one.ranked for one in meanings.values())
    assert [name for name, one in meanings.items() if one.headline] == ["noc90", "noc90-base", "dsb", "dgr", "nsr"]
    assert {one.name: one.higher_is_better for one in RCLICKS.card.qualities} == {
        "noc90": False,
        "auc": True,
        "dgr": False,
    }


def test_of_many_instances_without_peoples_clicks_five_are_named():
    courses = [80] * 3, [[60] * 3, [70] * 3]
    clicked = record("z", *courses, people=[50, 70])
    card = card_of([*(record(name, *courses) for name in "abcdefg"), clicked])
    (note,) = [note for note in card.left_out if "without people" in note.what]
    assert (note.count, note.examples) == (7, tuple(f"grabcut/{name}" for name in "abcde"))
    alone = card_of([*(record(name, *courses, people=[50]) for name in "abcdefg"), clicked])
    (note,) = [note for note in alone.left_out if "User@1" in note.what]
    assert (note.count, note.examples) == (7, tuple(f"grabcut/{name}" for name in "abcde"))


def test_of_many_instances_without_people_or_with_one_click_five_are_named():
    silent = [record(name, [80] * 3, [[60] * 3, [70] * 3]) for name in "abcdef"]
    alone = [record(name, [80] * 3, [[60] * 3, [70] * 3], people=[50]) for name in "ghijklm"]
    several = [record("z", [80] * 3, [[60] * 3, [70] * 3], people=[50, 60])]
    card = card_of([*silent, *alone, *several])
    found = {one.what: (one.count, one.examples) for one in card.left_out}
    assert found["instances without people's clicks"] == (6, tuple(f"grabcut/{name}" for name in "abcde"))
    assert found["instances in NSR@1 and the spread of User@1"] == (7, tuple(f"grabcut/{name}" for name in "ghijk"))
    # Where nobody clicked at all, there are no such scores and nothing is left out of them.
    assert not [one for one in card_of(silent).left_out if "people" in one.what]


def test_the_base_and_every_group_count_as_courses_that_never_get_there():
    never, last = [50] * 20, reaching(20)
    card = card_of([record("a", never, [never, last]), record("b", last, [never, never])])
    [note] = [one for one in card.noted if "never reach" in one.what]
    assert (note.count, note.kept) == (4, True)
    assert note.why.startswith("they count as 20 clicks each")
    assert not [one for one in card_of(WORKED).noted if "never reach" in one.what]


def with_boundaries(made, counts):
    """The record with these six counts of boundary pixels in every round of each of its courses."""
    return {**made, "boundary": [number for course in counts for round_ in course for number in round_]}


def test_boundaries_are_scored_by_area_in_per_cent():
    # Base, then two groups; two rounds each. Bands: intersection, union; contours: mask, matched, target, matched.
    full, half, none = (8, 8, 4, 4, 4, 4), (4, 8, 4, 2, 4, 2), (0, 8, 4, 0, 4, 0)
    first = with_boundaries(record("a", [50] * 2, [[50] * 2] * 2), [[half, full], [none, half], [full, full]])
    second = with_boundaries(record("b", [50] * 2, [[50] * 2] * 2), [[full, full], [none, none], [full, full]])
    table = read_results(click_records.frame([first, second]))
    assert table.boundary.shape == (2, 3, 2, 6) and table.boundary[0, 1, 1].tolist() == list(half)
    assert table.select(np.array([False, True])).boundary.tolist() == table.boundary[1:].tolist()
    card = card_of([first, second])
    for name in ("boundary-auc", "boundary-f"):
        # Means over two groups and two instances: (25 + 100) / 2 and (0 + 100) / 2.
        assert card.get(name).value == pytest.approx((62.5 + 50) / 2)
        assert card.get(f"{name}-base").value == pytest.approx((75 + 100) / 2)
    without = record("c", [50] * 2, [[50] * 2] * 2)
    assert read_results(click_records.frame([without])).boundary is None
    assert not [score for score in card_of([without]).scores if score.name.startswith("boundary")]


def test_every_score_has_the_range_of_its_unit():
    ranges = name_ranges(20, 50.0)
    clicks, percent, above = (1.0, 20.0), (0.0, 100.0), (0.0, np.inf)
    expected = {
        **{f"noc{percent_}{end}": clicks for percent_ in (85, 90, 95) for end in ("", "-base")},
        **{name: (-100.0, np.inf) for name in ("dsb", "dgr", "dhh")},
        **{f"{name}-nof": (-50.0, 50.0) for name in ("dsb", "dgr", "dhh")},
        **{f"{name}-iou": (-100.0, 100.0) for name in ("dsb", "dgr", "dhh")},
        **{
            f"{name}{end}": percent for name in ("auc", "sample-iou1", "user-iou1") for end in ("", "-std", "-draw-std")
        },
        **dict.fromkeys(("auc-base", "base-iou1"), percent),
        **{f"boundary-{name}{end}": percent for name in ("auc", "f") for end in ("", "-base")},
        **dict.fromkeys(("noc90-std", "noc90-draw-std", "nsr", "nsr1", "time90", "time90-base"), above),
        **dict.fromkeys(("nof", "nof-base"), (0.0, 50.0)),
    }
    assert ranges == expected


def test_of_many_instances_without_people_five_are_named():
    clicked = record("z", [80] * 3, [[60] * 3, [70] * 3], people=[50, 70])
    silent = [record(str(number), [80] * 3, [[60] * 3, [70] * 3]) for number in range(7)]
    (note,) = [note for note in card_of([clicked, *silent]).left_out if "without people" in note.what]
    assert (note.count, note.examples) == (7, tuple(f"grabcut/{number}" for number in range(5)))
