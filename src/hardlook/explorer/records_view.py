"""What the pages of a run and of a comparison share: the form of filters, the table, the pager, the spread."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hardlook.explorer.fields import Field
from hardlook.explorer.histogram import draw_histogram
from hardlook.explorer.query import LARGEST_PAGE, Query, described
from hardlook.explorer.record_table import RecordTable, Selection
from hardlook.explorer.refusals import Refused
from hardlook.report.numerals import NOTHING, counted, decimals_for, numeral

if TYPE_CHECKING:
    from markupsafe import Markup

WIDE, NARROW = 840.0, 360.0
MOST_TEXT = 80
MOST_GROUPS = 30
Address = Callable[[Sequence[tuple[str, str]]], str]


def records_view(table: RecordTable, query: Query, address: Address, unit_link: Callable[[str], str]) -> dict[str, Any]:
    """Everything the template `records.html` shows; `address` makes the page's own address from parameters."""
    selection = table.select(query)
    count = len(selection.rows)
    last = max(1, -(-count // query.size))
    if query.page > last:
        raise Refused(f"There is no page {query.page}: this list has {counted(last, 'page')}.", 404)
    rows = table.rows(selection.page(query.page, query.size))
    return {
        "count": count,
        "counted": counted(count, "record"),
        "total": numeral(len(table), 0),
        "query": query,
        "filters": described(query, table.by_key),
        "clear": address([]),
        "form": _form(table, query),
        "means": _means(table, selection, query),
        "histogram": _histogram(table, selection),
        "groups": _groups(table, selection, query, address),
        "columns": [_column(field, query, address) for field in table.shown],
        "rows": _rows(rows, table.shown, unit_link),
        "constants": [(f.title, _text(_first(table, f))) for f in table.fields if f not in table.shown],
        "pager": _pager(query, last, address),
    }


def cell_text(value: object, decimals: int = 3) -> str:
    """A value of a record as people read it.

    >>> cell_text(True), cell_text(12345), cell_text(0.25)
    ('yes', '12,345', '0.250')
    """
    if value is None or value == "":
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return numeral(value, 0)
    if isinstance(value, float):
        return numeral(value, decimals)
    return _text(value)


def _text(value: object) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}\N{HORIZONTAL ELLIPSIS}"


def _first(table: RecordTable, field: Field) -> object:
    return cell_text(table.frame[field.key][0]) if len(table) else ""


def _form(table: RecordTable, query: Query) -> dict[str, Any]:
    chosen, ranges = dict(query.values), {key: (low, high) for key, low, high in query.ranges}
    shown = table.shown
    slices = [
        {
            "field": field,
            "values": table.facts[field.key].values,
            "chosen": chosen.get(field.key, ()),
        }
        for field in shown
        if field.kind == "slice"
    ]
    numbers = [
        {
            "field": field,
            "facts": table.facts[field.key],
            "low": _bound(ranges, field, 0),
            "high": _bound(ranges, field, 1),
        }
        for field in shown
        if field.numeric and field.kind != "slice"
    ]
    main = [one for one in numbers if one["field"] == table.main]
    return {
        "slices": slices,
        "main": main,
        "ranges": [one for one in numbers if one not in main],
        "open": any(one["low"] or one["high"] for one in numbers if one not in main),
        "sizes": [size for size in (20, 50, 100, LARGEST_PAGE)],
    }


def _bound(ranges: Mapping[str, tuple[float | None, float | None]], field: Field, end: int) -> str:
    value = ranges.get(field.key, (None, None))[end]
    return "" if value is None else f"{value:g}" if float(f"{value:g}") == value else repr(value)


def _means(table: RecordTable, selection: Selection, query: Query) -> list[dict[str, str]]:
    everything = table.select(Query()).means if query.filtered else selection.means
    rows = []
    for field in table.fields:
        if field.kind == "quality":
            here, all_of_them = selection.means[field.key], everything[field.key]
            decimals = decimals_for([here, all_of_them])
            rows.append({"title": field.title, "here": numeral(here, decimals), "all": numeral(all_of_them, decimals)})
    return rows


def _histogram(table: RecordTable, selection: Selection) -> list[Markup]:
    from markupsafe import Markup

    if table.main is None or selection.spread is None:
        return []
    mean = selection.means[table.main.key]
    drawn = [
        draw_histogram(selection.spread, mean, table.main.title, key=key, width=width)
        for key, width in (("spread-wide", WIDE), ("spread-narrow", NARROW))
    ]
    return [Markup(one) for one in drawn if one]


def _groups(table: RecordTable, selection: Selection, query: Query, address: Address) -> list[dict[str, Any]]:
    found = []
    for key, groups in selection.groups.items():
        decimals = decimals_for([mean for _, _, mean in groups])
        others = tuple(pair for pair in query.values if pair[0] != key)
        rows = [
            {
                "value": value or "(empty)",
                "address": address(query.pairs(page=1, values=tuple(sorted((*others, (key, (value,))))))),
                "count": numeral(count, 0),
                "mean": numeral(mean, decimals),
            }
            for value, count, mean in groups[:MOST_GROUPS]
        ]
        found.append({"title": table.by_key[key].title, "rows": rows, "more": max(0, len(groups) - MOST_GROUPS)})
    return found


def _column(field: Field, query: Query, address: Address) -> dict[str, Any]:
    sorted_by = query.sort == field.key
    # Names from A; numbers largest first, unless that is how they are.
    down = not query.descending if sorted_by else field.numeric
    return {
        "title": field.title,
        "meaning": field.meaning,
        "number": field.numeric,
        "address": address(query.pairs(page=1, sort=field.key, descending=down)),
        "sorted": ("descending" if query.descending else "ascending") if sorted_by else "none",
    }


def _rows(
    rows: Sequence[Mapping[str, Any]], shown: Sequence[Field], unit_link: Callable[[str], str]
) -> list[dict[str, Any]]:
    decimals = {field.key: decimals_for([row[field.key] for row in rows]) for field in shown if field.type == "float"}
    return [
        {
            "unit": row["unit"],
            "address": unit_link(row["unit"]),
            "cells": [
                (cell_text(row[field.key], decimals.get(field.key, 0)), field.numeric)
                for field in shown
                if field.kind != "unit"
            ],
        }
        for row in rows
    ]


def _pager(query: Query, last: int, address: Address) -> dict[str, Any]:
    def to(page: int) -> str:
        return address(query.pairs(page=page))

    return {
        "page": query.page,
        "last": last,
        "first_page": to(1) if query.page > 1 else "",
        "before": to(query.page - 1) if query.page > 1 else "",
        "after": to(query.page + 1) if query.page < last else "",
        "last_page": to(last) if query.page < last else "",
    }
