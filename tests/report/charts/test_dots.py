from __future__ import annotations

from itertools import pairwise

import pytest
import report_samples
from drawn_charts import Axis, dots, svgs, words
from hypothesis import given
from hypothesis import strategies as st

from hardlook.harness.sections import Dot, DotChart
from hardlook.report.charts.dots import draw_dots, place_references, tabulate_dots
from hardlook.report.charts.drawing import LinearScale


@pytest.mark.parametrize("width", [840.0, 360.0])
def test_dots_and_whiskers_sit_where_the_axis_says(width):
    rows = (Dot("a", 0.31, 0.22, 0.4), Dot("b", -0.125, -0.2, 0.05), Dot("c", 0.875))
    (svg,) = svgs(draw_dots(DotChart("t", "c", rows, "score"), "k", width))
    axis = Axis(svg, "x-axis")
    assert [axis.value(x) for x, _, _ in dots(svg)] == pytest.approx([0.31, -0.125, 0.875], abs=1e-3)
    whiskers = [line for line in svg.iter("line") if line.get("stroke-width") == "2.4"]
    ends = [(axis.value(float(line.get("x1"))), axis.value(float(line.get("x2")))) for line in whiskers]
    assert ends == [pytest.approx((0.22, 0.4), abs=1e-3), pytest.approx((-0.2, 0.05), abs=1e-3)]


def test_references_are_drawn_at_their_values_and_named():
    (svg,) = svgs(draw_dots(report_samples.dots(), "k", 840))
    axis = Axis(svg, "x-axis")
    group = svg.find(".//g[@class='references']")
    assert sorted(axis.value(float(line.get("x1"))) for line in group.iter("line")) == pytest.approx(
        [0.1, 0.61, 0.64], abs=1e-3
    )
    assert {text.text for text in group.iter("text")} == {"chance 0.100", "paper 0.610", "DeepLab 0.640"}


def test_rows_of_a_group_stand_together_under_its_name():
    rows = (Dot("a", 1, group="one"), Dot("b", 2, group="two"), Dot("c", 3, group="one"))
    (svg,) = svgs(draw_dots(DotChart("t", "c", rows), "k", 840))
    texts = [text.text for text in svg.iter("text")]
    named = [text for text in texts if text in {"one", "two", "a", "b", "c"}]
    assert named == ["one", "a", "c", "two", "b"]


def test_words_name_the_highest_and_the_lowest():
    rows = (Dot("cat", 0.8, 0.7, 0.9), Dot("dog", 0.2), Dot("cow", float("nan")))
    (svg,) = svgs(draw_dots(DotChart("IoU", "c", rows, "IoU", (("chance", 0.1),)), "k", 840))
    assert words(svg) == (
        "3 values of IoU. Highest: cat 0.800 (0.700 to 0.900). Lowest: dog 0.200. 1 row without a value. "
        "Reference: chance 0.100."
    )


def test_a_long_label_is_cut_and_kept_whole_in_its_title():
    long = "a very long label " * 10
    (svg,) = svgs(draw_dots(DotChart("t", "c", (Dot(long, 0.5),)), "k", 360))
    cut = next(text for text in svg.iter("text") if text.text.endswith("…"))
    assert cut.findtext("title") == long and len(cut.text) < 30


def test_two_hundred_rows_make_two_hundred_dots_and_axes_at_both_ends():
    (svg,) = svgs(draw_dots(report_samples.dots(200), "k", 840))
    assert len(dots(svg)) == 200
    ys = [y for _, y, _ in dots(svg)]
    assert min(b - a for a, b in pairwise(ys)) > 15


def test_the_table_leaves_out_columns_without_content():
    assert tabulate_dots(DotChart("t", "c", (Dot("a", 1),))).columns == ("name", "value")
    assert tabulate_dots(DotChart("t", "c", (Dot("a", 1, 0, 2, "g"),), "IoU")).columns == (
        "group",
        "name",
        "IoU",
        "low",
        "high",
    )


@given(st.lists(st.floats(0, 1), max_size=6), st.sampled_from([360.0, 840.0]))
def test_names_in_one_lane_never_meet_and_stay_on_the_page(values, width):
    scale = LinearScale(0, 1, width * 0.2, width * 0.9)
    placed = place_references([(f"reference {i}", value) for i, value in enumerate(values)], scale, 2, width)
    assert len(placed) == len(values)
    for index, one in enumerate(placed):
        assert 0 <= one.start and one.stop <= width
        for other in placed[index + 1 :]:
            assert one.lane != other.lane or one.stop <= other.start or other.stop <= one.start
