"""Charts whose values are all equal: a sentence in place of the drawing, with the numbers behind it."""

import math

import pytest
import report_samples
from drawn_charts import Outline, svgs

from hardlook.harness.sections import (
    CurveChart,
    DialChart,
    DistributionChart,
    Dot,
    DotChart,
    HeatMap,
    Line,
    ScatterChart,
    Slope,
    SlopeChart,
    Spot,
)
from hardlook.report.charts import draw, draw_svg
from hardlook.report.charts.flat import describe_flat

ONES = [Dot(name, 1.0, low, 1.0) for name, low in (("cat", 0.9), ("dog", 0.735), ("cow", 1.0))]

FLAT = {
    "dots": (
        DotChart("t", "c", ONES, "IoU"),
        "All 3 values are 1.000 (IoU). The widest interval is 0.735 to 1.000, that of dog.",
    ),
    "dots with one interval": (
        DotChart("t", "c", [Dot(name, 1.0, 0.91, 1.0) for name in "ab"]),
        "Both values are 1.000. The interval of each is 0.910 to 1.000.",
    ),
    "dots in groups": (
        DotChart("t", "c", [Dot("vanilla", 1.0, 0.96, 1.0, "AP"), Dot("vanilla", 1.0, 0.91, 1.0, "AR")]),
        "Both values are 1.000. The widest interval is 0.910 to 1.000, that of AR, vanilla.",
    ),
    "dots with a reference": (
        DotChart("t", "c", [Dot("a", 0.0), Dot("b", 0.0)], references=(("none", 0.0), ("chance", 0.2))),
        "Both values are 0.000. For comparison: chance 0.200.",
    ),
    "dots and a gap": (
        DotChart("t", "c", [Dot("a", 12), Dot("b", 12), Dot("c", math.nan)]),
        "Both values are 12; 1 is undefined.",
    ),
    "values that are shown alike": (
        DotChart("t", "c", [Dot("a", 1.0), Dot("b", 1 - 1e-12), Dot("c", 0.99999)]),
        "All 3 values are 1.000.",
    ),
    "curves": (
        CurveChart("t", "c", [Line("a", [1, 2], [1, 1]), Line("b", [1, 2], [1, 1])], "clicks", "IoU"),
        "Both curves stay at 1.000 (IoU).",
    ),
    "cells": (
        HeatMap("t", "c", ("a", "b"), ("x", "y"), [[1, 1], [math.nan, 1]]),
        "All 3 cells are 1.00; 1 is empty.",
    ),
    "spots": (
        ScatterChart("t", "c", [Spot(1, 0.5, "a"), Spot(1, 0.5, "b")], "vanilla", "open"),
        "Both points lie at 1.000 (vanilla) and 0.500 (open).",
    ),
    "slopes": (SlopeChart("t", "c", [Slope("a", 3.5, 3.5)], "x", "y", "IoU"), "Both values are 3.500 (IoU)."),
    "groups": (
        DistributionChart("t", "c", [("a", [1.0] * 9), ("b", [1.0])], "mIoU"),
        "All 10 values are 1.000 (mIoU).",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FLAT)
def test_a_flat_chart_is_one_sentence_with_its_numbers(name):
    chart, sentence = FLAT[name]
    assert describe_flat(chart) == sentence
    drawn = draw(chart, key="k", name="iou-of-each-class")
    assert svgs(drawn) == [] and f"<p>{sentence}</p>" in drawn
    texts = Outline(drawn).texts
    assert "t" in texts and "the numbers" in texts and "iou-of-each-class" in texts
    # `hardlook figure` and exports draw it all the same.
    assert draw_svg(chart).startswith("<svg")


@pytest.mark.parametrize("block", [block for block in report_samples.blocks() if hasattr(block, "caption")])
def test_other_charts_are_drawn(block):
    if not hasattr(block, "columns") or hasattr(block, "values"):
        assert describe_flat(block) == "" and svgs(draw(block))


def test_one_value_and_a_dial_are_drawn():
    assert describe_flat(DotChart("t", "c", [Dot("a", 0.5, 0.4, 0.6)])) == ""
    assert describe_flat(DotChart("t", "c", [Dot("a", 1.0), Dot("b", 0.998)])) == ""
    assert describe_flat(DialChart("t", "c", [Line("a", [0, 1], [1, 1])], "s", [0.0])) == ""
    assert describe_flat(ScatterChart("t", "c", [Spot(1, 0.5, "a"), Spot(1, 0.6, "b")], "x", "y")) == ""
    assert describe_flat(DotChart("t", "c", ())) == "" == describe_flat(HeatMap("t", "c", (), (), ()))


def test_hostile_labels_stay_text():
    rows = [Dot(report_samples.HOSTILE, 1.0, 0.5, 1.0), Dot("b", 1.0)]
    assert "<script>alert" not in draw(DotChart("t", "c", rows, report_samples.HOSTILE))
