from __future__ import annotations

import math

from hardlook.contract.sections import Table
from hardlook.report.tables import draw_table, html_table

from . import samples
from .drawn import Outline


def test_headers_are_buttons_in_scoped_cells():
    outline = Outline(draw_table(samples.table(3), "k"))
    headers = outline.all("th")
    assert [header["scope"] for header in headers] == ["col"] * 4
    assert {header["aria-sort"] for header in headers} == {"none"}
    assert all(button["type"] == "button" for button in outline.all("button")) and len(outline.all("button")) == 4


def test_numbers_are_aligned_with_one_count_of_decimals_and_keep_their_value():
    fragment = html_table(
        "k", ("name", "x", "count"), [("a", 0.25, 3), ("b", 1.0, 12), ("c", math.nan, None)], decimals=2
    )
    outline = Outline(fragment)
    assert {"0.25", "1.00", "3", "12"} <= set(outline.texts)
    cells = [cell for cell in outline.all("td") if cell.get("class") == "number"]
    assert [cell["data-value"] for cell in cells] == ["0.25", "3", "1.0", "12", "", ""]


def test_a_filter_comes_with_more_than_fifteen_rows():
    assert "data-filters" not in draw_table(samples.table(15), "k")
    long = Outline(draw_table(samples.table(16), "k"))
    (field,) = long.all("input")
    assert field["data-filters"] in {table["id"] for table in long.all("table")}
    # Shown by the script alone, since it does nothing without it.
    assert any(name == "p" and "hidden" in attributes for name, attributes in long.elements)


def test_a_column_with_a_text_among_numbers_is_not_numeric():
    assert "number" not in html_table("k", ("x",), [(1.0,), ("many",)])


def test_no_rows_are_said():
    assert "There is nothing in this table." in draw_table(Table("t", "c", ("a",), ()), "k")
