"""Time to a mask: from a file of costs or from two times, and as scores of a run."""

import json

import pytest
from click_records import frame, reaching, record

from hardlook.errors import DataError, HardlookError, OptionError
from hardlook.rclicks.benchmark import RCLICKS
from hardlook.rclicks.options import RClicksOptions
from hardlook.rclicks.time_to_mask import parse_click_times, read_click_times

COST = {
    "schema": "hardlook.clicks-cost/1",
    "model": {"name": "sam"},
    "cost": {"opening": {"mean": 400.0}, "click": {"mean": 50.0}, "device": "cuda", "machine": "H200, 141 GB"},
}


def test_time_is_the_opening_and_every_click(tmp_path):
    (tmp_path / "cost.json").write_text(json.dumps(COST))
    records = frame([record("a", reaching(3), [reaching(noc) for noc in (10, 8, 6, 4)])])
    options = RClicksOptions(resamples=0, cost=str(tmp_path / "cost.json"))
    (tmp_path / "cost.json").unlink()  # the options hold the times themselves
    card = RCLICKS.score(records, RClicksOptions(**options.model_dump()))
    assert card.get("time90").value == pytest.approx(0.4 + 7 * 0.05)
    assert card.get("time90-base").value == pytest.approx(0.4 + 3 * 0.05)
    (section,) = [one for one in RCLICKS.report(records, card) if one.title == "Time to a mask"]
    assert "0.75 s" in section.text and "sam on cuda (H200, 141 GB)" in options.cost
    without = RCLICKS.score(records, RClicksOptions(resamples=0))
    assert not [score for score in without.scores if score.name.startswith("time90")]


@pytest.mark.parametrize(
    "text", ["opening=1", "opening=1,click=-2", "opening=nan,click=1", "opening=1,click=2,sizes=3"]
)
def test_texts_that_are_no_times(text):
    with pytest.raises(OptionError, match="expected two times"):
        parse_click_times(text)
    with pytest.raises(HardlookError):
        RClicksOptions(cost=text)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("{", "not a cost"),
        ('{"schema": "hardlook.scores/1"}', "expected hardlook.clicks-cost/1"),
        ('{"schema": "hardlook.clicks-cost/1", "cost": {"opening": 3}}', "not a cost"),
        (json.dumps(COST).replace("400.0", "-1"), "times of -1"),
    ],
)
def test_a_damaged_cost_is_an_error_that_names_the_file(tmp_path, content, why):
    (tmp_path / "cost.json").write_text(content)
    with pytest.raises(DataError, match=why) as caught:
        read_click_times(tmp_path / "cost.json")
    assert "cost.json" in str(caught.value.file)
