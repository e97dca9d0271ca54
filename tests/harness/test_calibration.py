import math
from dataclasses import replace

import numpy as np
import pytest

import hardlook as hl
from hardlook.harness.benchmark import Dial
from hardlook.harness.calibration import Calibration, DialCurve, build_calibration_section, calibrate
from hardlook.harness.registry import add
from hardlook.harness.scorecard import Score
from hardlook.models.registry import register


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
        (MOVES, curve("control", [0.7, math.nan, 0.7], False, 0.0)),
        (MOVES, curve("control", [math.nan, 0.7, 0.7], False, 0.0)),
    ],
    ids=[
        "not steady",
        "control moves",
        "a control without anything to compare it with",
        "a control that is undefined",
        "a control that is undefined at first",
    ],
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


@register("planted-quality", role="saliency", summary="maps as bright as its quality, less its fault", licence="MIT")
class PlantedQuality:
    def __init__(self, quality: float = 1.0, fault: float = 0.0):
        self.value = quality - 0.5 * fault

    def saliency(self, images):
        return [np.full(image.shape[:2], self.value, np.float32) for image in images]


def test_no_fault_of_one_dial_is_not_the_worst_of_another():
    """A quality of 0 is an argument like any other, although no fault of another dial is 0, too."""

    def evaluate(number, model):
        return {"mean": float(model.saliency([np.zeros((2, 2, 3), np.uint8)])[0].mean())}

    own = hl.benchmark("own-dials", role="saliency", units=range(3), scores=("mean",), evaluate=evaluate)
    dials = (
        Dial("worse quality", "planted-quality", lambda v: {"quality": 1 - v}, "mean"),
        Dial("a fault", "planted-quality", lambda v: {"fault": v}, "mean"),
    )
    add(replace(own, card=replace(own.card, dials=dials)))
    found = calibrate("own-dials", {"resamples": 0}, (0.0, 0.5, 1.0))
    assert [[score.value for score in one.scores] for one in found.curves] == [[1.0, 0.5, 0.0], [1.0, 0.75, 0.5]]


def test_scores_have_the_titles_of_the_report():
    found = calibrate("closed-miou", {"scenes": 6}, (0.0, 1.0))
    assert found.titles["miou"] == "mIoU"
    chart, table = build_calibration_section(found).blocks
    assert chart.score == "mIoU" and {row[1] for row in table.rows} == {"mIoU"}
