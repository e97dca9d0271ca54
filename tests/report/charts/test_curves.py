from __future__ import annotations

import math
from itertools import pairwise

import pytest
import report_samples
from drawn_charts import Axis, path_points, svgs, words

from hardlook.harness.sections import CurveChart, Line
from hardlook.report.charts.curves import draw_curves, draw_dial, tabulate_dial


def strokes(svg):
    traces = svg.findall(".//g[@class='trace']")
    return [[path_points(path.get("d")) for path in trace.iter("path")] for trace in traces]


@pytest.mark.parametrize("width", [840.0, 360.0])
def test_vertices_sit_where_the_axes_say(width):
    line = Line("a", [1, 4, 9], [0.25, -0.5, 0.75])
    (svg,) = svgs(draw_curves(CurveChart("t", "c", (line,), "x", "y"), "k", width))
    x, y = Axis(svg, "x-axis"), Axis(svg, "y-axis")
    ((points,),) = strokes(svg)
    assert [x.value(px) for px, _ in points] == pytest.approx([1, 4, 9], abs=0.02)
    assert [y.value(py) for _, py in points] == pytest.approx([0.25, -0.5, 0.75], abs=2e-3)


def test_a_band_runs_along_low_and_back_along_high():
    line = Line("a", [0, 1], [0.5, 0.6], [0.4, 0.5], [0.6, 0.8])
    (svg,) = svgs(draw_curves(CurveChart("t", "c", (line,), "x", "y"), "k", 840))
    y = Axis(svg, "y-axis")
    band = next(path for path in svg.iter("path") if path.get("d").endswith("Z"))
    assert [y.value(py) for _, py in path_points(band.get("d")[:-1])] == pytest.approx([0.4, 0.5, 0.8, 0.6], abs=2e-3)


def test_an_undefined_point_breaks_the_line_and_the_band():
    y = [0.1, 0.2, math.nan, 0.4, 0.5]
    line = Line("a", [0, 1, 2, 3, 4], y, [v - 0.1 for v in y], [v + 0.1 for v in y])
    (svg,) = svgs(draw_curves(CurveChart("t", "c", (line,), "x", "y"), "k", 840))
    assert [len(run) for run in strokes(svg)[0]] == [2, 2]
    assert sum(path.get("d").endswith("Z") for path in svg.iter("path")) == 2


@pytest.mark.parametrize("width", [840.0, 360.0])
def test_end_labels_never_overlap(width):
    lines = [Line(f"line {k}", [0, 1], [0.5, 0.5 + k * 1e-4]) for k in range(30)]
    (svg,) = svgs(draw_curves(CurveChart("t", "c", lines, "x", "y"), "k", width))
    ys = sorted(float(text.get("y")) for text in svg.find(".//g[@class='ends']").iter("text"))
    assert len(ys) == 30
    assert min(b - a for a, b in pairwise(ys)) >= 14.9
    assert ys[-1] < float(svg.get("viewBox").split()[3])


def test_words_give_start_end_and_peak():
    chart = CurveChart("t", "c", (Line("a", [1, 2, 3], [0.1, 0.9, 0.5]),), "clicks", "IoU")
    assert words(svgs(draw_curves(chart, "k", 840))[0]) == (
        "1 curve of IoU over clicks. a: from 0.100 at 1 to 0.500 at 3, highest 0.900 at 2."
    )


def test_more_than_six_lines_differ_by_their_dashes():
    lines = [Line(str(k), [0, 1], [k, k]) for k in range(8)]
    (svg,) = svgs(draw_curves(CurveChart("t", "c", lines, "x", "y"), "k", 840))
    looks = [
        (path.get("stroke"), path.get("stroke-dasharray"))
        for g in svg.findall(".//g[@class='trace']")
        for path in g.iter("path")
    ]
    assert len(set(looks)) == 8


def test_whole_numbers_on_the_axis_for_whole_values():
    (svg,) = svgs(draw_curves(report_samples.curves(), "k", 840))
    assert all(value == int(value) for _, value in Axis(svg, "x-axis").ticks)


def test_controls_are_dashed_and_the_others_are_not():
    (svg,) = svgs(draw_dial(report_samples.dial(), "k", 840))
    dashes = [trace.find("path").get("stroke-dasharray") for trace in svg.findall(".//g[@class='trace']")]
    assert dashes == [None, "6 4"]


def test_each_line_ends_in_its_name_and_its_rank_correlation():
    (svg,) = svgs(draw_dial(report_samples.dial(), "k", 360))
    texts = [text.text for text in svg.find(".//g[@class='ends']").iter("text")]
    assert texts == ["label swaps", "ρ = \N{MINUS SIGN}1.00", "brightness", "control"]  # noqa: RUF001


def test_words_say_which_line_is_a_control():
    (svg,) = svgs(draw_dial(report_samples.dial(), "k", 840))
    assert "brightness (control, meant to stay flat): from 0.900 to 0.900, Spearman's rho 0.05." in words(svg)


def test_the_table_has_the_correlation_of_every_line():
    numbers = tabulate_dial(report_samples.dial())
    assert numbers.columns[-1] == "Spearman's rho"
    assert {(row[0], row[-1]) for row in numbers.rows} == {("label swaps", -1.0), ("brightness", 0.05)}
