from __future__ import annotations

import math

import pytest
import report_samples
from drawn_charts import Outline

from hardlook.harness.scorecard import Score, Scorecard
from hardlook.harness.sections import Table
from hardlook.harness.stats import Interval
from hardlook.report.html_tables import draw_html_table, draw_table
from hardlook.report.page import explain_interval
from hardlook.report.score_display import build_card
from hardlook.report.scorecard_tables import (
    build_all_scores_table,
    build_left_out_table,
    build_readings_table,
    build_scores_table,
    factor_out_constant_columns,
)
from hardlook.report.terminal import build_score_table, fit_range

CARD = report_samples.scorecard()


def test_headline_scores_are_chosen_and_titled():
    table = build_scores_table(CARD, ("miou", "gap"), {"miou": "mIoU"})
    assert [row[0] for row in table.rows] == ["mIoU", "gap"]
    assert table.rows[0][1:] == (0.538, 0.538 - 0.02, 0.538 + 0.02, 40)
    assert table.rows[1][2:4] == (None, None)
    assert table.caption == "95% intervals (percentile, over images)."
    assert len(build_scores_table(CARD).rows) == 3


@pytest.mark.parametrize(("level", "text"), [(0.9, "90%"), (0.975, "97.5%"), (0.995, "99.5%")])
def test_the_level_of_an_interval_is_told_as_it_is(level, text):
    score = Score("miou", 0.5, 40, Interval(0.4, 0.6, level, "jackknife", 40, "query image"))
    assert build_card(score)["interval"].startswith(f"{text} interval 0.400 to 0.600 (jackknife, 40 query images)")
    table = build_scores_table(Scorecard("b", "1", "m", (score,)))
    assert table.caption == f"{text} intervals (jackknife, over query images)."
    assert explain_interval([score]).startswith(f"{text} interval: ")
    table = build_score_table([score], ["mIoU"], "score", {"miou": fit_range([0.5])}, 100)
    assert table.columns[2].header == f"{text} interval"


def test_all_scores_have_a_row_and_empty_columns_are_left_out():
    table = build_all_scores_table(CARD)
    assert len(table.rows) == len(CARD.scores)
    assert "comparable" in table.columns and "reading" not in table.columns
    assert table.rows[3][:2] == ("miou", "class: class 0")
    assert list(build_all_scores_table(Scorecard("b", "1", "m")).rows) == []


def test_left_out_and_readings_say_what_the_scorecard_says():
    assert build_left_out_table(CARD).rows == [("images without a label", 3, "their IoU is undefined", "img_1")]
    assert build_readings_table(CARD).rows == [
        ("similarity", "released", "Path length over `WordNet`.", "released", "paper, released")
    ]


def test_what_is_said_of_every_row_is_said_once():
    columns, rows = (
        ("score", "n", "comparable"),
        [["miou", 3, "not comparable: so."], ["iou", 3, "not comparable: so."]],
    )
    said, kept, shown = factor_out_constant_columns(columns, rows, ("reading", "comparable"))
    assert (said, kept, shown) == ("All of these: not comparable: so.", ["score", "n"], [["miou", 3], ["iou", 3]])
    # Columns that are not named, single rows and empty cells stay as they are.
    for other in ([rows[0]], [rows[0], ["iou", 3, ""]], [["miou", 3, ""], ["iou", 3, ""]]):
        assert factor_out_constant_columns(columns, other, ("reading", "comparable")) == ("", list(columns), other)


def test_headers_are_buttons_in_scoped_cells():
    outline = Outline(draw_table(report_samples.table(3), "k"))
    headers = outline.all("th")
    assert [header["scope"] for header in headers] == ["col"] * 4
    assert {header["aria-sort"] for header in headers} == {"none"}
    assert all(button["type"] == "button" for button in outline.all("button")) and len(outline.all("button")) == 4


def test_numbers_are_aligned_with_one_count_of_decimals_and_keep_their_value():
    fragment = draw_html_table(
        "k", ("name", "x", "count"), [("a", 0.25, 3), ("b", 1.0, 12), ("c", math.nan, None)], decimals=2
    )
    outline = Outline(fragment)
    assert {"0.25", "1.00", "3", "12"} <= set(outline.texts)
    cells = [cell for cell in outline.all("td") if cell.get("class") == "number"]
    assert [cell["data-value"] for cell in cells] == ["0.25", "3", "1.0", "12", "", ""]


def test_a_filter_comes_with_more_than_fifteen_rows():
    assert "data-filters" not in draw_table(report_samples.table(15), "k")
    long = Outline(draw_table(report_samples.table(16), "k"))
    (field,) = long.all("input")
    assert field["data-filters"] in {table["id"] for table in long.all("table")}
    # Shown by the script alone, since it does nothing without it.
    assert any(name == "p" and "hidden" in attributes for name, attributes in long.elements)


def test_a_column_with_a_text_among_numbers_is_not_numeric():
    assert "number" not in draw_html_table("k", ("x",), [(1.0,), ("many",)])


def test_no_rows_are_said():
    assert "There is nothing in this table." in draw_table(Table("t", "c", ("a",), ()), "k")
