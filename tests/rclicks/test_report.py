"""What the report shows of a run: that pictures, galleries and words are of the numbers in the records."""

import click_records
import numpy as np
import pytest
from click_records import record

from hardlook.harness.runs.in_memory import InMemoryRun
from hardlook.harness.sections import CurveChart, Gallery, ScatterChart
from hardlook.models.planted.disc import Disc
from hardlook.rclicks.benchmark import RCLICKS
from hardlook.rclicks.evaluation import decode_shares, encode_shares
from hardlook.rclicks.options import RClicksOptions
from hardlook.rclicks.scores import measure_difficulty, read_results


@pytest.fixture(scope="module")
def ran():
    rehearsal = InMemoryRun("rclicks", {"scenes": 5, "rounds": 5, "resamples": 20})
    units = [unit for batch in rehearsal.prepared for unit in batch.units]
    rows = RCLICKS.evaluate(units, Disc(fragility=0.8))
    whole = RCLICKS.schema.frame(rows).sort("unit")
    light = whole.select(RCLICKS.schema.light)
    return units, whole, light, RCLICKS.score(light, rehearsal.options)


def blocks(ran, kind):
    _, _, light, card = ran
    return [block for section in RCLICKS.report(light, card) for block in section.blocks if isinstance(block, kind)]


def test_curves_are_the_mean_ious_of_the_courses(ran):
    _, _, light, _ = ran
    (chart,) = blocks(ran, CurveChart)
    lines = {line.name: line for line in chart.lines}
    table = read_results(light)
    assert list(lines) == ["centre", "G1", "all groups", "G10"]
    assert lines["G1"].y == pytest.approx(table.iou[:, 1].mean(0))
    assert lines["all groups"].y == pytest.approx(table.iou[:, 1:].mean((0, 1)))
    assert all(low <= y <= high for low, y, high in zip(lines["G1"].low, lines["G1"].y, lines["G1"].high, strict=True))


def test_the_scatter_has_every_instance_at_its_mean_and_spread(ran):
    _, _, light, _ = ran
    chart, *_ = blocks(ran, ScatterChart)
    for spot, row in zip(chart.spots, light.to_dicts(), strict=True):
        ious = np.divide(row["user_intersection"], row["user_union"])
        assert (spot.label, spot.x, spot.y) == (row["unit"], pytest.approx(ious.mean()), pytest.approx(ious.std()))


def test_galleries_are_ordered_by_what_they_say(ran):
    _, _, light, _ = ran
    decided, cost = blocks(ran, Gallery)
    table = read_results(light)
    ratio = measure_difficulty(table).ratio
    units = light["unit"].to_list()
    shown = [example.unit for example in decided.examples]
    spread = measure_difficulty(table).deviation
    assert shown == [units[row] for row in np.argsort(-ratio, kind="stable") if spread[row] > 0]
    lost = dict(zip(units, table.iou[:, 0].mean(1) - table.iou[:, 1:].mean((1, 2)), strict=True))
    losses = [lost[example.unit] for example in cost.examples]
    assert losses == sorted((loss for loss in lost.values() if loss > 0), reverse=True)


def test_the_instances_that_hang_most_on_the_click_come_first():
    rows = [record(str(n), [50] * 2, [[50 - n] * 2, [50 + n] * 2]) for n in range(8)]
    light = click_records.frame(rows)
    card = RCLICKS.score(light, RClicksOptions(resamples=0))
    shown = [block for section in RCLICKS.report(light, card) for block in section.blocks]
    # The groups do as well as the centre in the mean, so that no instance costs anything.
    [decided] = [block for block in shown if isinstance(block, Gallery)]
    assert [example.unit for example in decided.examples] == [f"grabcut/{n}" for n in (7, 6, 5, 4, 3, 2)]


def test_an_instance_without_spread_does_not_matter_most():
    """Where no click finds anything, the ratio is infinite and nothing depends on the click."""
    rows = [record("lost", [0] * 2, [[0] * 2] * 2), record("even", [50] * 2, [[50] * 2] * 2)]
    rows.append(record("decided", [50] * 2, [[20] * 2, [80] * 2]))
    light = click_records.frame(rows)
    sections = RCLICKS.report(light, RCLICKS.score(light, RClicksOptions(resamples=0)))
    [decided] = [block for section in sections for block in section.blocks if isinstance(block, Gallery)]
    assert [example.unit for example in decided.examples] == ["grabcut/decided"]


def test_the_mean_of_ratios_is_not_passed_off_as_the_ratio_of_means():
    quick = [record(str(n), [50, 95, 95], [[95] * 3] * 2) for n in range(10)]
    slow = [record(str(n + 10), [95] * 3, [[50, 95, 95]] * 2) for n in range(10)]
    light = click_records.frame([*quick, *slow])
    first, *_ = RCLICKS.report(light, RCLICKS.score(light, RClicksOptions(resamples=200)))
    # Half of the instances go from 2 clicks to 1 (-50 %), half from 1 to 2 (+100 %).
    assert "the centre rule takes 1.50 clicks" in first.text and "take 1.50. Instance by instance that is" in first.text
    assert "25.0 % more clicks (" in first.text
    assert "the mean of the ratios of single instances, which is not the ratio of those two means" in first.text
    assert "These data cannot tell: the interval includes 0" in first.text


def test_a_model_that_never_gets_there_has_no_cost_in_words():
    light = click_records.frame([record(str(n), [50] * 3, [[50] * 3] * 2) for n in range(12)])
    first, *_ = RCLICKS.report(light, RCLICKS.score(light, RClicksOptions(resamples=0)))
    assert first.text.startswith("What clicks off the centre cost is undefined: no course reaches 90 % IoU")


def test_courses_that_never_reach_the_goal_are_told_of():
    light = click_records.frame([record("a", [50] * 3, [[50] * 3, [95] * 3, [50] * 3])])
    first, *_ = RCLICKS.report(light, RCLICKS.score(light, RClicksOptions(resamples=0)))
    assert "75 % of all courses never reach 90 % and count as 3 clicks" in first.text


def test_pictures_show_the_clicks_of_two_courses_and_all_people(ran):
    units, whole, _, _ = ran
    row = whole.to_dicts()[0]
    unit = next(unit for unit in units if unit.id == row["unit"])
    truth, base, worst, people = RCLICKS.pictures(unit, row)
    assert truth.mask.any()
    assert len(base.points) == sum(x >= 0 for x in row["x"][:5])
    assert 1 <= len(worst.points) <= 5
    assert (len(people.points), people.ordered) == (24, False)
    for picture in (base, worst):
        height, width = picture.image.shape[:2]
        assert all(0 <= x < width and 0 <= y < height for x, y, _ in picture.points)
        assert picture.mask.shape == (height, width)
    # The first click of the centre rule lies on the object, in the part that is shown, too.
    x, y, positive = base.points[0]
    assert positive
    assert truth.image.shape == base.image.shape
    assert truth.mask[round(y), round(x)]


def test_shares_come_back_as_they_were_kept():
    shares = np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4)
    assert np.abs(decode_shares(encode_shares(shares)) - shares).max() <= 0.5 / 255 + 1e-6
    assert decode_shares(encode_shares(np.ones((640, 1000), np.float32))).shape == (205, 320)


def test_the_words_tell_how_often_images_were_opened(ran):
    _, _, light, card = ran
    (section,) = [one for one in RCLICKS.report(light, card) if one.title == "How it was driven"]
    assert "5 instances of 5 images; the model opened images 5 times" in section.text


def test_the_centre_rule_has_one_name_in_all_charts_of_groups(ran):
    _, _, light, card = ran
    section = next(part for part in RCLICKS.report(light, card) if part.title == "Who needs more clicks")
    curves, dots, heat = section.blocks
    assert "centre" in [line.name for line in curves.lines]
    assert dots.rows[0].label == heat.rows[0] == "centre" and "base" not in heat.rows


def test_draws_have_their_scores_and_their_spread_beside_that_of_groups():
    options = {"scenes": 4, "rounds": 4, "draws": 3, "groups": 4, "resamples": 0, "user_clicks": "none"}
    rehearsal = InMemoryRun("rclicks", options)
    records = rehearsal.records("disc", {"fragility": 0.8})
    card = RCLICKS.score(records, rehearsal.options)
    (section,) = [one for one in RCLICKS.report(records, card) if one.title == "What is chance"]
    by_draw, spreads = section.blocks
    assert [row[0] for row in by_draw.rows] == ["1", "2", "3", "spread"]
    noc = [row[1] for row in by_draw.rows]
    assert noc[3] == pytest.approx(np.std(noc[:3], ddof=1))
    assert np.mean(noc[:3]) == pytest.approx(card.get("noc90").value)
    row = next(row for row in spreads.rows if row[1] == "IoU-AuC")
    assert row[2:] == (card.get("auc-std").value, card.get("auc-draw-std").value)
    assert RCLICKS.caption(records.to_dicts()[0]).endswith("in the first of 3 draws.")
