"""Checkpoints beside each other by cost: which are on the front, what is published, times of two machines."""

import copy
import math

import pytest

from hardlook.harness.costs import MeasuredRun
from hardlook.harness.scorecard import Score, Scorecard
from hardlook.models.named_model import build_named
from hardlook.rclicks import cost_comparison
from hardlook.rclicks.cost_comparison import PUBLISHED, build_cost_section, measure_checkpoint, read_costs
from hardlook.rclicks.published import LATENCY, find_checkpoint


def milliseconds(mean):
    return {"mean": mean, "std": 0.1, "count": 3}


def make_cost(latency, machine="CPU of here", **changes):
    cost = {
        "device": "cpu", "machine": machine, "threads": 1, "width": 640, "height": 480, "images": 3, "clicks": 5,
        "opening": milliseconds(1.0), "click": milliseconds(latency - 1), "first_mask": milliseconds(latency),
        "peak_memory": 2_500_000_000, "parameters": 4_000_000, "opening_flops": 1_000_000_000,
        "click_flops": 7_000_000_000,
    }  # fmt: skip
    return {"schema": "hardlook.clicks-cost/1", "model": {"name": "ritm"}, "cost": cost | changes}


def make_run(name, latency, dgr, noc=5.0, dataset="", **more):
    scores = [Score("noc90", noc, 9), Score("dgr", dgr, 9), Score("nsr", 2.0, 9)]
    if dataset:
        scores += [Score(score.name, score.value, 9, slice={"dataset": dataset}) for score in scores]
    return MeasuredRun(name, Scorecard("rclicks", "1", "ritm", tuple(scores)), make_cost(latency, **more))


def test_costs_by_column_in_the_units_of_table_5():
    assert read_costs(make_cost(40.0)) == {
        "first mask, ms": 40.0, "click, ms": 39.0, "opening, ms": 1.0, "GB": 2.5, "M parameters": 4.0, "GFLOPs": 8.0,
    }  # fmt: skip
    unknown = read_costs(make_cost(40.0, parameters=None, opening_flops=None, click_flops=None))
    assert "M parameters" not in unknown and "GFLOPs" not in unknown


@pytest.mark.parametrize("key", ["first_mask", "peak_memory", "images", "clicks", "machine", "threads", "width"])
def test_a_cost_that_lacks_something_is_none(key):
    content = make_cost(40.0)
    del content["cost"][key]
    with pytest.raises(KeyError):
        read_costs(content)


def test_costs_that_are_no_numbers_are_refused():
    for content in (make_cost(math.nan), make_cost(-3.0), make_cost(40.0, peak_memory=-1)):
        with pytest.raises(ValueError, match="not all at least 0"):
            read_costs(content)
    with pytest.raises(ValueError, match=r"expected hardlook\.clicks-cost/1"):
        read_costs({**make_cost(40.0), "schema": "hardlook.clicks-cost/2"})


def test_the_front_is_of_what_nothing_beats_in_robustness_and_in_clicks():
    runs = [
        make_run("slow", 90.0, 10.0, noc=2.0),
        make_run("fast", 10.0, 50.0, noc=6.0),
        make_run("beaten", 95.0, 40.0, noc=7.0),
        make_run("undefined", 5.0, math.nan, noc=8.0),
    ]
    robust, clicks, table = build_cost_section(runs).blocks
    assert [robust.spots[place].label for place in robust.front] == ["fast", "slow"]
    assert [clicks.spots[place].label for place in clicks.front] == ["undefined", "fast", "slow"]
    assert robust.log_x and robust.title == "Robustness against latency" and robust.y_axis == "dGR, %"
    cells = {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}
    fronts = {name: cells[name]["front"] for name in ("slow", "fast", "beaten", "undefined")}
    assert fronts == {"slow": "dGR, %; NoC@90", "fast": "dGR, %; NoC@90", "beaten": "", "undefined": "NoC@90"}
    assert cells["slow"]["dGR, %"] == 10.0 and cells["slow"]["first mask, ms"] == 90.0
    assert cells["undefined"]["dGR, %"] is None


def test_where_nothing_reaches_the_target_robustness_is_the_spread():
    spread, clicks, _ = build_cost_section([make_run("a", 9.0, math.nan), make_run("b", 8.0, math.nan)]).blocks
    assert (spread.title, spread.y_axis) == ("Robustness against latency", "NSR@20, %")
    assert clicks.y_axis == "NoC@90" and "dGR is undefined here" in spread.caption


def test_published_rows_have_the_time_of_table_5_and_the_scores_of_the_shared_datasets():
    robust, _, table = build_cost_section([make_run("mine", 90.0, 10.0, dataset="davis")]).blocks
    printed = {spot.label: spot for spot in robust.spots if spot.group == PUBLISHED}
    assert len(printed) == 4
    sam = find_checkpoint("sam_vit_h_4b8939")
    assert (printed[sam.label].x, printed[sam.label].y) == (150.0, sam.scores["davis"]["dgr"])
    assert "scores on DAVIS" in robust.caption
    assert all(place == 0 for place in robust.front), "times of another machine are in no front"
    assert sum(row[-1] == PUBLISHED for row in table.rows) == 4
    planted, *_ = build_cost_section([make_run("mine", 90.0, 10.0)]).blocks
    assert "other images than here" in planted.caption
    assert next(spot for spot in planted.spots if spot.label == sam.label).y == pytest.approx(sam.mean()["dgr"])


def test_times_of_two_machines_are_told_apart_and_only_those_of_most_runs_are_in_the_front():
    runs = [
        make_run("a", 90.0, 10.0),
        make_run("b", 40.0, 30.0),
        make_run("other", 5.0, 1.0, machine="a faster one"),
        make_run("larger", 5.0, 1.0, width=1024),
    ]
    section = build_cost_section(runs)
    robust = section.blocks[0]
    assert [robust.spots[place].label for place in robust.front] == ["b", "a"]
    groups = {spot.label: spot.group for spot in robust.spots}
    assert groups["a"] == "cpu (CPU of here, 1 thread)" and groups["other"] == "cpu (a faster one, 1 thread)"
    assert groups["larger"].endswith("1 thread, 1024 x 480 pixels)")
    assert "2 checkpoints measured elsewhere cannot be compared by time" in section.text


def test_runs_without_a_cost_are_named_and_without_any_there_is_no_section():
    without = MeasuredRun("stopped", make_run("x", 1.0, 1.0).scorecard, None, "not valid JSON")
    assert build_cost_section([without]) is None and build_cost_section([]) is None
    assert "Without a cost: stopped (not valid JSON)." in build_cost_section([make_run("a", 9.0, 1.0), without]).text


def test_what_is_measured_can_be_read(monkeypatch):
    monkeypatch.setattr(cost_comparison, "IMAGES", 1)
    content = measure_checkpoint(build_named("disc", "promptable-segmenter", {}), threads=1)
    assert read_costs(copy.deepcopy(content))[LATENCY] > 0
    assert (content["cost"]["images"], content["cost"]["clicks"], content["model"]["name"]) == (1, 5, "disc")
