from __future__ import annotations

import math
import re

import pytest
import report_samples
from drawn_charts import svgs, words

from hardlook.harness.sections import HeatMap
from hardlook.report.charts.heat_map import draw_heat, tabulate_heat


def cells(svg):
    return svg.find(".//g[@class='cells']")


def test_values_are_written_in_the_cell_of_their_row_and_column():
    chart = HeatMap("t", "c", ("r0", "r1"), ("c0", "c1"), ((0.11, 0.12), (0.21, 0.22)))
    (svg,) = svgs(draw_heat(chart, "k", 840))
    names = {text.text: (float(text.get("x")), float(text.get("y"))) for text in svg.iter("text")}
    written = {text.text: (float(text.get("x")), float(text.get("y"))) for text in cells(svg).iter("text")}
    for row, column in ((0, 0), (0, 1), (1, 0), (1, 1)):
        x, y = written[f"0.{row + 1}{column + 1}"]
        assert x == pytest.approx(names[f"c{column}"][0], abs=2)
        assert y == pytest.approx(names[f"r{row}"][1], abs=2)


def test_undefined_cells_stay_empty():
    chart = HeatMap("t", "c", ("a",), ("b", "c"), ((math.nan, 0.5),))
    group = cells(svgs(draw_heat(chart, "k", 840))[0])
    empty, full = group.findall("rect")
    assert empty.get("fill") == "none" and full.get("fill").startswith("var(--s")
    assert [text.text for text in group.iter("text")] == ["0.50"]


def test_higher_values_take_higher_steps_of_one_ramp():
    chart = HeatMap("t", "c", ("a",), tuple("bcdef"), ((0.0, 0.25, 0.5, 0.75, 1.0),))
    fills = [rect.get("fill") for rect in cells(svgs(draw_heat(chart, "k", 840))[0]).findall("rect")]
    assert fills == [f"var(--s{step})" for step in (0, 3, 6, 9, 12)]


def test_values_of_both_signs_take_a_ramp_with_zero_in_its_middle():
    chart = HeatMap("t", "c", ("a",), tuple("bcd"), ((-0.5, 0.0, 0.25),))
    fills = [rect.get("fill") for rect in cells(svgs(draw_heat(chart, "k", 840))[0]).findall("rect")]
    assert fills == ["var(--d0)", "var(--d6)", "var(--d9)"]


def test_sixty_by_sixty_drops_the_texts_and_draws_every_cell():
    (svg,) = svgs(draw_heat(report_samples.heat(60), "k", 840))
    assert not list(cells(svg).iter("text"))
    drawn = sum(len(re.findall("M", path.get("d"))) for path in cells(svg).iter("path"))
    assert drawn == 60 * 60 - 1
    assert float(svg.get("width")) <= 860


def test_words_name_the_extremes_and_count_the_empty():
    assert words(svgs(draw_heat(report_samples.heat(3), "k", 840))[0]) == (
        "A matrix of truth by prediction, 3 rows by 3 columns. Highest: class 0 by class 0, 0.72. "
        "Lowest: class 0 by class 2, 0.02. 1 empty."
    )


def test_the_table_is_the_matrix():
    numbers = tabulate_heat(report_samples.heat(2))
    assert numbers.columns == ("truth", "class 0", "class 1")
    assert numbers.rows[1] == ["class 1", 0.02, 0.72]
