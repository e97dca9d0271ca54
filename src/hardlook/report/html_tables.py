"""Sortable HTML tables: a button in every header, numbers aligned on their decimals.

`table.js` makes the buttons work; without it the table is a plain one.

>>> draw_html_table("t", ("class", "IoU"), [("cat", 0.5)]).count("<th scope=")
2
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hardlook.harness.sections import Table
from hardlook.report.formatting import (
    MISSING,
    choose_column_decimals,
    format_count,
    format_exact,
    format_number,
    is_number,
)
from hardlook.report.markup import element, escape, render_inline, strip_backticks

Cell = str | float | int | None
FILTER_FROM = 15
_SHORT = 28


@dataclass(frozen=True)
class TableData:
    """Columns and rows; `decimals` are those of all columns that are not whole, None lets each column choose."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    decimals: int | None = None


def draw_table(table: Table, key: str, name: str = "") -> str:
    """A table as a block of a section: heading, caption, name and the table; a sentence where there are no rows."""
    heading = element("h3", render_inline(table.title), id=f"{key}-heading")
    caption = element("p", render_inline(table.caption), class_="caption") if table.caption else ""
    body = draw_html_table(key, table.columns, table.rows, decimals=table.decimals, title=table.title)
    caption += draw_block_name("table", name)
    return element("figure", element("figcaption", heading, caption), body, class_="block", id=key)


def draw_block_name(kind: str, name: str) -> str:
    """The name of a figure or table for commands; empty where it has none.

    >>> draw_block_name("figure", "iou-of-each-class")
    '<p class="export">figure <code>iou-of-each-class</code></p>'
    """
    return element("p", f"{kind} {element('code', escape(name))}", class_="export") if name else ""


def draw_html_table(
    key: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]], *, decimals: int | None = 3, title: str = ""
) -> str:
    """The table in a box that scrolls by itself; a filter above it when it has more than fifteen rows.

    Columns that hold only numbers are right-aligned. Columns of ints show no decimals; the others show `decimals`,
    or as many as suit the column where that is None.
    """
    if not rows:
        return element("p", "There is nothing in this table.", class_="nothing")
    padded = pad_rows(rows, len(columns))
    kinds = [(is_numeric_column(cells), choose_cell_decimals(cells, decimals)) for cells in zip(*padded, strict=True)]
    head = "".join(_draw_header(name, right) for name, (right, _) in zip(columns, kinds, strict=True))
    drawn = ([_draw_cell(cell, *kind) for cell, kind in zip(row, kinds, strict=True)] for row in padded)
    body = "".join(element("tr", *row) for row in drawn)
    name, parts = strip_backticks(title), (element("thead", element("tr", head)), element("tbody", body))
    table = element("table", *parts, id=f"{key}-table", class_="sortable", aria_label=name or None)
    # A scrolling box must be reachable by keyboard.
    words = f"{name or 'table'}, scrollable"
    box = element("div", table, class_="scroll", tabindex=0, role="region", aria_label=words)
    return (_draw_filter(key, len(rows)) if len(rows) > FILTER_FROM else "") + box


def _draw_filter(key: str, count: int) -> str:
    """Hidden until the script shows it, since it does nothing without the script."""
    field = f'<input type="search" autocomplete="off" data-filters="{escape(key)}-table"/>'
    output = element("output", escape(format_count(count, "row")), aria_live="polite")
    return element("p", element("label", "Filter ", field), output, class_="filter", hidden=True)


def _draw_header(name: str, right: bool) -> str:
    button = element("button", escape(strip_backticks(name)), type="button")
    return element("th", button, scope="col", aria_sort="none", class_="number" if right else None)


def pad_rows(rows: Sequence[Sequence[Cell]], width: int) -> list[list[Cell]]:
    """The rows with empty cells at their end, so that each has `width` cells."""
    return [[*row, *[None] * (width - len(row))][:width] for row in rows]


def _draw_cell(value: Cell, right: bool, decimals: int) -> str:
    alignment = "number" if right else None
    if value is None or value == "" or (isinstance(value, float) and not is_number(value)):
        return element("td", MISSING, class_=alignment, data_value="")
    if isinstance(value, str):
        # Short texts stay on one line, so that names are easy to scan.
        return element("td", render_inline(value), class_="short" if len(value) <= _SHORT else "long")
    return element("td", escape(format_number(value, decimals)), class_=alignment, data_value=format_exact(value))


def is_numeric_column(cells: Sequence[Cell]) -> bool:
    """Whether the column has numbers, and nothing else but empty cells."""
    filled = [cell for cell in cells if cell is not None and cell != ""]
    return bool(filled) and all(isinstance(cell, int | float) for cell in filled)


def choose_cell_decimals(cells: Sequence[Cell], decimals: int | None) -> int:
    """The decimals of a column's numbers; see `choose_column_decimals`."""
    return choose_column_decimals([cell for cell in cells if isinstance(cell, int | float)], decimals)
