from __future__ import annotations

import math
from itertools import pairwise

import pytest
import report_samples
from drawn_charts import svgs, words

from hardlook.harness.sections import Slope, SlopeChart
from hardlook.report.charts import describe, draw_svg, tabulate

CHART = SlopeChart(
    "t", "c", (Slope("a", 0.2, 0.8), Slope("b", 0.5, 0.4, "p = .2"), Slope("c", 0.3, 0.3), Slope("d", math.nan, 0.6)),
    "left", "right", "IoU",
)  # fmt: skip


def lines(svg):
    """Each row's (title, y at the left, y at the right)."""
    found = []
    for group in svg.findall(".//g[@class='slope']"):
        line = group.find("line")
        if line is not None:
            found.append((group.findtext("title"), float(line.get("y1")), float(line.get("y2")), line))
    return found


@pytest.mark.parametrize("width", [840, 360])
def test_heights_follow_the_values_on_one_scale(width):
    (svg,) = svgs(draw_svg(CHART, width=width))
    drawn = {title.split(":")[0]: (left, right) for title, left, right, _ in lines(svg)}
    assert set(drawn) == {"a", "b", "c"}
    # One linear scale: two known heights fix it, and all others must lie on it.
    (low, high) = drawn["a"]
    per_unit = (low - high) / 0.6
    for name, left, right in (("b", 0.5, 0.4), ("c", 0.3, 0.3)):
        assert drawn[name][0] == pytest.approx(low - (left - 0.2) * per_unit, abs=0.05)
        assert drawn[name][1] == pytest.approx(low - (right - 0.2) * per_unit, abs=0.05)


def test_what_falls_differs_from_what_rises_without_colour():
    (svg,) = svgs(draw_svg(CHART, width=840))
    dashes = {title.split(":")[0]: line.get("stroke-dasharray") for title, _, _, line in lines(svg)}
    assert dashes["a"] is None and dashes["c"] is None and dashes["b"] is not None


def test_a_row_with_one_value_is_a_dot_with_its_label():
    (svg,) = svgs(draw_svg(CHART, width=840))
    texts = [text.text for text in svg.iter("text")]
    assert "0.600  d" in texts and not any(text.startswith("d  ") for text in texts)
    assert "0.400  b (p = .2)" in texts and "b  0.500" in texts


def test_words_and_numbers_say_the_same():
    assert describe(CHART) == (
        "4 rows of IoU from left to right: 1 rise, 1 fall, 1 stay. Largest rise: a, 0.200 to 0.800. "
        "Largest fall: b, 0.500 to 0.400. 1 row without both values."
    )
    (svg,) = svgs(draw_svg(CHART, width=840))
    assert words(svg) == describe(CHART)
    table = tabulate(CHART)
    assert table.columns == ("name", "left", "right", "difference", "note")
    assert [row[3] for row in table.rows] == [pytest.approx(0.6), pytest.approx(-0.1), 0, None]


def test_labels_of_one_side_keep_apart():
    (svg,) = svgs(draw_svg(report_samples.degenerate()["many equal slopes"], width=840))
    for group in svg.findall(".//g[@class='ends']"):
        heights = sorted(float(text.get("y")) for text in group.iter("text"))
        assert len(heights) == 40
        assert min(b - a for a, b in pairwise(heights)) >= 15.9
