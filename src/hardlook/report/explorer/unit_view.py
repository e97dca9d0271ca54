"""The page of a unit: its pictures at full size, its record, its neighbours in the list, and the unit in other runs."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hardlook.errors import HardlookError
from hardlook.harness.records import Record
from hardlook.harness.runs.rerun_command import build_unit_command
from hardlook.harness.sections import Picture
from hardlook.report.explorer.query import Query, truncate
from hardlook.report.explorer.record_table import RecordTable
from hardlook.report.explorer.records_view import format_cell
from hardlook.report.explorer.run_data import RunData
from hardlook.report.explorer.run_index import ListedRun
from hardlook.report.explorer.urls import (
    PageError,
    Parameters,
    compare_url,
    describe_error,
    get_single_value,
    picture_url,
    run_url,
    split_parameters,
    unit_url,
)
from hardlook.report.explorer.views import list_comparable_runs, parse_run_query
from hardlook.report.formatting import MISSING, choose_decimals, format_number
from hardlook.report.markup import strip_backticks
from hardlook.report.pictures import describe_picture, list_legend

MOST_LABELS, MOST_BESIDE, MOST_OTHER_RUNS = 24, 4, 24

MOST_ITEMS, MOST_TEXT = 40, 4000


def build_pictures(data: RunData, run: ListedRun, row: Mapping[str, Any], overlay: bool) -> dict[str, Any]:
    """The pictures, or the reason why there are none: the data may have moved since the run."""
    try:
        pictures = data.pictures(run, row)
    except Exception as error:
        # A benchmark reads files of any kind; whatever fails, the record can still be shown.
        if not isinstance(error, HardlookError | OSError):
            logging.getLogger(__name__).exception("no pictures of %r", row["unit"])
        return {"pictures": [], "reason": describe_error(error, data.root)}
    shown = [_build_picture(run, str(row["unit"]), number, picture, overlay) for number, picture in enumerate(pictures)]
    return {"pictures": shown, "reason": "" if shown else "the unit has none"}


def _build_picture(run: ListedRun, unit: str, number: int, picture: Picture, overlay: bool) -> dict[str, Any]:
    height, width = picture.image.shape[:2]
    radius = max(width, height) / 40
    return {
        "address": picture_url(run.key, unit, number, overlay=overlay),
        "label": strip_backticks(picture.label) or "picture",
        "words": describe_picture(picture, unit, most_labels=MOST_LABELS, overlay=overlay),
        "width": width,
        "height": height,
        "labels": list_legend(picture, MOST_LABELS) if overlay else [],
        "radius": radius if picture.ordered else radius / 3,
        "points": [(x + 0.5, y + 0.5, positive) for x, y, positive in picture.points] if overlay else [],
        "ordered": picture.ordered,
    }


def build_unit_view(data: RunData, key: str, parameters: Parameters) -> dict[str, Any]:
    """The values of the template `unit.html`."""
    named, rest = split_parameters(parameters, ("id", "overlay", "with"))
    run = data.run(key)
    table = data.table(run)
    unit, overlay = get_single_value(named["id"], "id"), parse_overlay(named["overlay"])
    row = find_row(table, unit)
    query = parse_run_query(table, rest)
    beside = _find_runs_beside(data, run, named["with"])
    own: list[tuple[str, str]] = [*query.parameters(page=1, size=50), *(("with", other.key) for other in beside)]
    shown = [_build_answer(data, one, unit, overlay) for one in (run, *beside)]
    return {
        "title": unit,
        "run": run,
        "back": run_url(key, query.query_string()),
        "overlay": overlay,
        "switch": unit_url(key, unit, [*own, ("overlay", "off" if overlay else "on")]),
        "answers": shown,
        "place": _find_neighbours(table, query, row, key, [("with", other.key) for other in beside]),
        "command": build_unit_command(run.manifest, unit),
        "other_runs": _list_other_runs(data, run, table, unit, row, beside, query),
        "qualities": [field.title for field in table.fields if field.kind == "quality"],
    }


def parse_overlay(values: list[str]) -> bool:
    """Whether masks are painted over pictures: yes by default."""
    chosen = get_single_value(values, "overlay", "on")
    if chosen not in ("on", "off"):
        raise PageError(f"The overlay is on or off, not {truncate(chosen)}.")
    return chosen == "on"


def find_row(table: RecordTable, unit: str) -> int:
    """The row number of a unit; an error page where the run has no record of it."""
    row = table.row_of(unit)
    if row is None:
        raise PageError(f"There is no record of a unit {truncate(unit)} in this run.", 404)
    return row


def _build_answer(data: RunData, run: ListedRun, unit: str, overlay: bool) -> dict[str, Any]:
    """One run's answer to the unit: caption, pictures or the reason for none, qualities, record."""
    table = data.table(run)
    row = table.frame.row(find_row(table, unit), named=True)
    record, problem = _read_record(data, run, row)
    benchmark = data.benchmark(run)
    return {
        "run": run,
        "address": unit_url(run.key, unit),
        "caption": benchmark.caption(record) if benchmark.caption and not problem else "",
        "shots": build_pictures(data, run, row, overlay),
        "problem": problem,
        "qualities": [(f.title, format_cell(row[f.key])) for f in table.fields if f.kind == "quality"],
        "record": _format_record(record, {column.name: column.meaning for column in benchmark.schema.columns}),
    }


def _read_record(data: RunData, run: ListedRun, row: Mapping[str, Any]) -> tuple[Record, str]:
    """The whole record without pictures; where it cannot be read, what the table holds, and the reason."""
    light = data.benchmark(run).schema.light
    try:
        record = data.record(run, row)
    except HardlookError as error:
        return {name: row[name] for name in light if name in row}, describe_error(error, data.root)
    return {name: record[name] for name in light}, ""


def _format_record(record: Record, meanings: Mapping[str, str]) -> list[tuple[str, str, str]]:
    return [(name, _format_value(value), meanings.get(name, "")) for name, value in record.items() if name != "unit"]


def _format_value(value: object) -> str:
    if isinstance(value, list):
        decimals = choose_decimals(item for item in value if isinstance(item, float))
        items = [format_cell(item, decimals) for item in value[:MOST_ITEMS]]
        more = f" and {len(value) - MOST_ITEMS} more" if len(value) > MOST_ITEMS else ""
        return (", ".join(items) + more) or MISSING
    if isinstance(value, str) and value:
        text = ", ".join(value.splitlines())
        return text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}\N{HORIZONTAL ELLIPSIS}"
    return format_cell(value)


def _find_neighbours(
    table: RecordTable, query: Query, row: int, key: str, more: Sequence[tuple[str, str]]
) -> dict[str, str] | None:
    """The place of the unit in the list it was opened from, and its neighbours there."""
    rows = table.select(query).rows
    found = np.flatnonzero(rows == row)
    if not len(found):
        return None
    place = int(found[0])
    units = table.frame["unit"]
    kept = [*query.parameters(page=1, size=50), *more]
    return {
        "place": format_number(place + 1, 0),
        "of": format_number(len(rows), 0),
        "before": unit_url(key, units[int(rows[place - 1])], kept) if place else "",
        "after": unit_url(key, units[int(rows[place + 1])], kept) if place + 1 < len(rows) else "",
    }


def _find_runs_beside(data: RunData, run: ListedRun, keys: list[str]) -> list[ListedRun]:
    if len(keys) > MOST_BESIDE:
        raise PageError(f"At most {MOST_BESIDE} runs are shown beside another.")
    others = [data.run(key) for key in dict.fromkeys(keys) if key != run.key]
    if any(other.benchmark != run.benchmark for other in others):
        raise PageError("Runs of different benchmarks cannot be shown side by side.")
    return others


def _list_other_runs(
    data: RunData,
    run: ListedRun,
    table: RecordTable,
    unit: str,
    row: int,
    beside: Sequence[ListedRun],
    query: Query,
) -> list[dict[str, Any]]:
    """The same unit in other runs: qualities, the difference of the main one, and links."""
    rows = []
    for other in list_comparable_runs(data, run)[:MOST_OTHER_RUNS]:
        line: dict[str, Any] = {
            "run": other,
            "address": unit_url(other.key, unit),
            "compare": compare_url(run.key, other.key),
            "beside": unit_url(key=run.key, unit=unit, more=[*query.parameters(), ("with", other.key)]),
            "shown": other in beside,
            "qualities": [],
            "difference": "",
            "note": "",
        }
        if not data.is_quick(other):
            line["note"] = "large: open it to see its units"
        else:
            theirs = data.table(other)
            place = theirs.row_of(unit)
            if place is None:
                line["note"] = "has no record of this unit"
            else:
                line.update(_compare_with(table, row, theirs, place))
        rows.append(line)
    return rows


def _compare_with(table: RecordTable, row: int, theirs: RecordTable, place: int) -> dict[str, Any]:
    qualities = [field for field in table.fields if field.kind == "quality" and field.key in theirs.by_key]
    values = [theirs.frame[field.key][place] for field in qualities]
    difference = ""
    if table.main is not None and values and values[0] is not None and table.frame[table.main.key][row] is not None:
        gap = table.frame[table.main.key][row] - values[0]
        difference = format_number(gap, choose_decimals([gap, *values[:1]]))
    return {"qualities": [format_cell(value) for value in values], "difference": difference}
