"""Records as values of the template `records.html`: filters, grid, table, pager, and a histogram drawn from counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hardlook.report.charts.drawing import LinearScale, fit_scale, histogram_path, segment, svg_drawing, x_axis
from hardlook.report.charts.palette import ACCENT, INK, RULE
from hardlook.report.explorer.query import LARGEST_PAGE, Field, Query, describe_filters
from hardlook.report.explorer.record_table import Histogram, RecordTable, Selection
from hardlook.report.explorer.thumbnails import Overlay
from hardlook.report.explorer.urls import PageError
from hardlook.report.formatting import MISSING, choose_decimals, format_count, format_interval, format_number
from hardlook.report.markup import element

if TYPE_CHECKING:
    from markupsafe import Markup

_TALL = 110.0


def draw_histogram(histogram: Histogram, mean: float | None, title: str, *, key: str, width: float) -> str:
    """The histogram as SVG, with a line at the mean and a text alternative; empty where there is no value."""
    if not histogram.counts.sum():
        return ""
    low, high = float(histogram.edges[0]), float(histogram.edges[-1])
    # The middle keeps whole ends, as 0 and 1, from being taken for counts.
    round_scale = fit_scale([low, (low + high) / 2, high], start=16, stop=width - 16, ticks=8 if width > 500 else 4)
    ticks = tuple(tick for tick in round_scale.ticks if low <= tick <= high)
    scale = LinearScale(low, high, 16, width - 16, ticks)
    base = _TALL + 12
    bars = histogram_path(histogram.counts.tolist(), scale, base, _TALL, least=1)
    parts = [
        x_axis(scale, 6, base, title),
        element("path", d=bars, fill=ACCENT, fill_opacity=0.55),
        segment(scale.start, base, scale.stop, base, RULE),
    ]
    if mean is not None:
        parts.append(segment(scale.at(mean), base + 4, scale.at(mean), 6, INK, 1.6))
    return svg_drawing(key, width, base + 46, f"Spread of {title}", describe_histogram(histogram, mean, title), *parts)


def describe_histogram(histogram: Histogram, mean: float | None, title: str) -> str:
    """The text alternative: how many values, their mean, and the fullest bin.

    >>> import numpy as np
    >>> describe_histogram(Histogram(np.array([0.0, 0.5, 1.0]), np.array([1, 3]), 2), 0.6, "IoU")
    'IoU of 4 records, mean 0.600; the fullest of 2 bins, 0.500 to 1.000, holds 3. 2 records have no value.'
    """
    edges, decimals = histogram.edges.tolist(), choose_decimals(histogram.edges.tolist())
    fullest = int(histogram.counts.argmax())
    mean_text = f", mean {format_number(mean, decimals)}" if mean is not None else ""
    missing = f" {format_count(histogram.missing, 'record has', 'records have')} no value." if histogram.missing else ""
    count = format_count(int(histogram.counts.sum()), "record")
    bin_text = format_interval(edges[fullest], edges[fullest + 1], decimals)
    return (
        f"{title} of {count}{mean_text}; the fullest of {len(histogram.counts)} bins, {bin_text}, holds "
        f"{format_number(int(histogram.counts[fullest]), 0)}.{missing}"
    )


WIDE, NARROW = 840.0, 360.0
MAX_TEXT = 80
MAX_GROUPS = 30
EARLY = 12
ALTERNATIVES: dict[Overlay, str] = {
    "on": "Image with truth and prediction",
    "truth": "Image with the truth",
    "prediction": "Image with the prediction",
    "off": "Image",
}
MakeURL = Callable[[Sequence[tuple[str, str]]], str]


@dataclass(frozen=True)
class Shot:
    """A thumbnail in every tile of a grid: whose it is, the column of its quality, and the URL for a unit."""

    name: str
    quality: str | None
    address: Callable[[str], str]


def build_records_view(
    table: RecordTable, query: Query, make_url: MakeURL, unit_link: Callable[[str], str]
) -> dict[str, Any]:
    """The values of the template `records.html`; `make_url` makes the page's URL from parameters.

    `page` holds the records of the page, for `build_grid`.
    """
    selection = table.select(query)
    count = len(selection.rows)
    last = max(1, -(-count // query.size))
    if query.page > last:
        raise PageError(f"There is no page {query.page}: this list has {format_count(last, 'page')}.", 404)
    rows = table.rows(selection.page(query.page, query.size))
    return {
        "count": count,
        "counted": format_count(count, "record"),
        "total": format_number(len(table), 0),
        "query": query,
        "page": rows,
        "filters": describe_filters(query, table.by_key),
        "clear": make_url([]),
        "form": _build_form(table, query),
        "means": _build_means(table, selection, query),
        "histogram": _draw_histograms(table, selection),
        "groups": _build_groups(table, selection, query, make_url),
        "columns": [_build_column(field, query, make_url) for field in table.shown],
        "rows": _build_rows(rows, table.shown, unit_link),
        "constants": [
            (field.title, _shorten(format_cell(table.row(0)[field.key])) if len(table) else "")
            for field in table.fields
            if field not in table.shown
        ],
        "pager": _build_pager(query, last, make_url),
    }


def build_grid(
    table: RecordTable,
    rows: Sequence[Mapping[str, Any]],
    shots: Sequence[Shot],
    overlay: Overlay,
    unit_link: Callable[[str], str],
) -> list[dict[str, Any]]:
    """The tiles of a grid: of each record a link, one thumbnail per shot with a text alternative, and qualities."""
    keys = [shot.quality for shot in shots if shot.quality is not None]
    decimals = choose_decimals([row[key] for row in rows for key in keys])
    return [
        {
            "unit": row["unit"],
            "address": unit_link(row["unit"]),
            # Those that a screen shows at first are not left until the browser knows the layout.
            "early": place < EARLY,
            "shots": [_build_shot(table, row, shot, overlay, decimals) for shot in shots],
        }
        for place, row in enumerate(rows)
    ]


def _build_shot(
    table: RecordTable, row: Mapping[str, Any], shot: Shot, overlay: Overlay, decimals: int
) -> dict[str, str]:
    value = "" if shot.quality is None else format_cell(row[shot.quality], decimals)
    said = f", {table.by_key[shot.quality].title} {value}" if shot.quality is not None else ""
    return {
        "address": shot.address(row["unit"]),
        "name": shot.name,
        "value": value,
        "words": f"{ALTERNATIVES[overlay]} of {row['unit']}{f' by {shot.name}' if shot.name else ''}{said}",
    }


def format_cell(value: object, decimals: int = 3) -> str:
    """A value of a record as a text.

    >>> format_cell(True), format_cell(12345), format_cell(0.25)
    ('yes', '12,345', '0.250')
    """
    if value is None or value == "":
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return format_number(value, 0)
    if isinstance(value, float):
        return format_number(value, decimals)
    return _shorten(value)


def _shorten(value: object) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}\N{HORIZONTAL ELLIPSIS}"


def _build_form(table: RecordTable, query: Query) -> dict[str, Any]:
    chosen, ranges = dict(query.values), {key: (low, high) for key, low, high in query.ranges}
    shown = table.shown
    slices = [
        {"field": field, "values": table.summaries[field.key].values, "chosen": chosen.get(field.key, ())}
        for field in shown
        if field.kind == "slice"
    ]
    numbers = [
        {
            "field": field,
            "summary": table.summaries[field.key],
            "low": _format_bound(ranges, field, 0),
            "high": _format_bound(ranges, field, 1),
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
        "sizes": [20, 50, 100, LARGEST_PAGE],
        "sorts": [(field.key, field.title) for field in shown],
    }


def _format_bound(ranges: Mapping[str, tuple[float | None, float | None]], field: Field, end: int) -> str:
    value = ranges.get(field.key, (None, None))[end]
    return "" if value is None else f"{value:g}" if float(f"{value:g}") == value else repr(value)


def _build_means(table: RecordTable, selection: Selection, query: Query) -> list[dict[str, str]]:
    everything = table.select(Query()).means if query.filtered else selection.means
    rows = []
    for field in table.fields:
        if field.kind == "quality":
            means = {"here": selection.means[field.key], "all": everything[field.key]}
            decimals = choose_decimals(means.values())
            rows.append({"title": field.title} | {key: format_number(mean, decimals) for key, mean in means.items()})
    return rows


def _draw_histograms(table: RecordTable, selection: Selection) -> list[Markup]:
    from markupsafe import Markup

    if table.main is None or selection.histogram is None:
        return []
    mean = selection.means[table.main.key]
    drawn = [
        draw_histogram(selection.histogram, mean, table.main.title, key=key, width=width)
        for key, width in (("spread-wide", WIDE), ("spread-narrow", NARROW))
    ]
    return [Markup(one) for one in drawn if one]


def _build_groups(table: RecordTable, selection: Selection, query: Query, make_url: MakeURL) -> list[dict[str, Any]]:
    found = []
    for key, groups in selection.groups.items():
        decimals = choose_decimals([mean for _, _, mean in groups])
        others = tuple(pair for pair in query.values if pair[0] != key)
        rows = [
            {
                "value": value or "(empty)",
                "address": make_url(query.parameters(page=1, values=tuple(sorted((*others, (key, (value,))))))),
                "count": format_number(count, 0),
                "mean": format_number(mean, decimals),
            }
            for value, count, mean in groups[:MAX_GROUPS]
        ]
        found.append({"title": table.by_key[key].title, "rows": rows, "more": max(0, len(groups) - MAX_GROUPS)})
    return found


def _build_column(field: Field, query: Query, make_url: MakeURL) -> dict[str, Any]:
    sorted_by = query.sort == field.key
    # The first click sorts texts ascending and numbers descending; the next one turns the order round.
    down = not query.descending if sorted_by else field.numeric
    return {
        "title": field.title,
        "meaning": field.meaning,
        "number": field.numeric,
        "address": make_url(query.parameters(page=1, sort=field.key, descending=down)),
        "sorted": ("descending" if query.descending else "ascending") if sorted_by else "none",
    }


def _build_rows(
    rows: Sequence[Mapping[str, Any]], shown: Sequence[Field], unit_link: Callable[[str], str]
) -> list[dict[str, Any]]:
    decimals = {
        field.key: choose_decimals([row[field.key] for row in rows]) for field in shown if field.type == "float"
    }
    return [
        {
            "unit": row["unit"],
            "address": unit_link(row["unit"]),
            "cells": [
                (format_cell(row[field.key], decimals.get(field.key, 0)), field.numeric)
                for field in shown
                if field.kind != "unit"
            ],
        }
        for row in rows
    ]


def _build_pager(query: Query, last: int, make_url: MakeURL) -> dict[str, Any]:
    def to(page: int) -> str:
        return make_url(query.parameters(page=page))

    return {
        "page": format_number(query.page, 0),
        "last": format_number(last, 0),
        "first_page": to(1) if query.page > 1 else "",
        "before": to(query.page - 1) if query.page > 1 else "",
        "after": to(query.page + 1) if query.page < last else "",
        "last_page": to(last) if query.page < last else "",
    }
