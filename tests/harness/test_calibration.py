from dataclasses import replace

import pytest

from hardlook.harness.benchmark import Dial
from hardlook.harness.calibration import Calibration, DialCurve, build_calibration_section, calibrate
from hardlook.harness.scorecard import Score


def curve(name, values, moves, spearman):
    settings = [index / (len(values) - 1) for index in range(len(values))]
    scores = [Score("mIoU", value, 10) for value in values]
    return DialCurve(Dial(name, "m", lambda v: {}, "miou", moves), settings, scores, spearman)


MOVES = curve("fault", [1.0, 0.8, 0.5], True, -1.0)

FLAT = curve("control", [0.7, 0.72, 0.69], False, -0.5)


def test_a_steady_dial_and_a_flat_control_pass():
    assert Calibration("b", (MOVES, FLAT)).passed


@pytest.mark.parametrize(
    "wrong",
    [
        (replace(MOVES, spearman=-0.8), FLAT),
        (MOVES, curve("control", [0.7, 0.85, 0.7], False, 0.0)),
        (FLAT,),
    ],
    ids=["not steady", "control moves", "a control without anything to compare it with"],
)
def test_others_fail(wrong):
    assert not Calibration("b", wrong).passed


def test_the_section_says_what_each_dial_did():
    section = build_calibration_section(Calibration("b", (MOVES, FLAT), {MOVES.dial.score: "mIoU"}))
    chart, table = section.blocks
    assert chart.controls == ("control",)
    assert (chart.title, chart.score) == ("Dials against mIoU", "mIoU")
    assert chart.spearman == (-1.0, -0.5)
    assert [row[-1] for row in table.rows] == ["yes", "yes"]


def test_scores_have_the_titles_of_the_report():
    found = calibrate("closed-miou", {"scenes": 6}, (0.0, 1.0))
    assert found.titles["miou"] == "mIoU"
    chart, table = build_calibration_section(found).blocks
    assert chart.score == "mIoU" and {row[1] for row in table.rows} == {"mIoU"}
