"""Tables that sort: real table markup, a button in every header, numbers aligned on their decimals.

`table.js` makes the buttons work; without it the table is still a table.

>>> html_table("t", ("class", "IoU"), [("cat", 0.5)]).count("<th scope=")
2
"""

from __future__ import annotations

from collections.abc import Sequence

from hardlook.contract.sections import Table
from hardlook.report.markup import element, escape, inline, plain
from hardlook.report.numerals import NOTHING, column_decimals, counted, is_number, numeral

Cell = str | float | int | None
FILTER_FROM = 15
_SHORT = 28


def draw_table(table: Table, key: str, name: str = "") -> str:
    """The block of a section: heading, caption, name and the table; a sentence where there are no rows."""
    heading = element("h3", inline(table.title), id=f"{key}-heading")
    caption = element("p", inline(table.caption), class_="caption") if table.caption else ""
    body = html_table(key, table.columns, table.rows, decimals=table.decimals, title=table.title)
    caption += small_print("table", name)
    return element("figure", element("figcaption", heading, caption), body, class_="block", id=key)


def small_print(kind: str, name: str) -> str:
    """What commands call a figure or table; nothing where it has no name.

    >>> small_print("figure", "iou-of-each-class")
    '<p class="export">figure <code>iou-of-each-class</code></p>'
    """
    return element("p", f"{kind} {element('code', escape(name))}", class_="export") if name else ""


def html_table(
    key: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    *,
    decimals: int | None = 3,
    title: str = "",
) -> str:
    """The table in a box that scrolls by itself; a filter above it when it has more than fifteen rows.

    Columns that hold only numbers are right-aligned. Columns of ints show no decimals; the others show `decimals`,
    or as many as suit the column where that is None.
    """
    if not rows:
        return element("p", "There is nothing in this table.", class_="nothing")
    cells = [[row[index] if index < len(row) else None for row in rows] for index in range(len(columns))]
    numeric = [_is_numeric(column) for column in cells]
    shown = [_decimals(column, decimals) for column in cells]
    head = "".join(_header(name, right) for name, right in zip(columns, numeric, strict=True))
    body = "".join(_row(row, len(columns), numeric, shown) for row in rows)
    table = element(
        "table",
        element("thead", element("tr", head)),
        element("tbody", body),
        id=f"{key}-table",
        class_="sortable",
        aria_label=plain(title) or None,
    )
    # A box that scrolls has to be reachable by the keyboard.
    name = plain(title) or "table"
    box = element("div", table, class_="scroll", tabindex=0, role="region", aria_label=f"{name}, scrollable")
    return (_filter(key, len(rows)) if len(rows) > FILTER_FROM else "") + box


def _filter(key: str, count: int) -> str:
    """Hidden until the script shows it, for without the script it would do nothing."""
    field = f'<input type="search" autocomplete="off" data-filters="{escape(key)}-table"/>'
    output = element("output", escape(counted(count, "row")), aria_live="polite")
    return element("p", element("label", "Filter ", field), output, class_="filter", hidden=True)


def _header(name: str, right: bool) -> str:
    button = element("button", escape(plain(name)), type="button")
    return element("th", button, scope="col", aria_sort="none", class_="number" if right else None)


def _row(row: Sequence[Cell], width: int, numeric: Sequence[bool], decimals: Sequence[int]) -> str:
    cells = [*row, *[None] * (width - len(row))]
    return element("tr", *(_cell(cells[index], numeric[index], decimals[index]) for index in range(width)))


def _cell(value: Cell, right: bool, decimals: int) -> str:
    alignment = "number" if right else None
    if value is None or value == "" or (isinstance(value, float) and not is_number(value)):
        return element("td", NOTHING, class_=alignment, data_value="")
    if isinstance(value, str):
        # Short texts stay on one line: a table of names with breaks in them is hard to scan.
        return element("td", inline(value), class_="short" if len(value) <= _SHORT else "long")
    return element("td", escape(numeral(value, decimals)), class_=alignment, data_value=_exact(value))


def _exact(value: float | int) -> str:
    """The number as the script reads it; numpy's own numbers would write their type beside it."""
    return repr(float(value)) if isinstance(value, float) else repr(value)


def _is_numeric(cells: Sequence[Cell]) -> bool:
    said = [cell for cell in cells if cell is not None and cell != ""]
    return bool(said) and all(isinstance(cell, int | float) for cell in said)


def _decimals(cells: Sequence[Cell], decimals: int | None) -> int:
    return column_decimals([cell for cell in cells if isinstance(cell, int | float)], decimals)
