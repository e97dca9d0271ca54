"""The page of a unit: its pictures at full size, its record, its place in the list, and the other models on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hardlook.contract.benchmark import JudgesUnits
from hardlook.contract.records import Record
from hardlook.explorer.addresses import Pairs, compare_address, only, run_address, take, unit_address
from hardlook.explorer.again import command_for
from hardlook.explorer.library import Library
from hardlook.explorer.query import Query, shortened
from hardlook.explorer.record_table import RecordTable
from hardlook.explorer.records_view import cell_text
from hardlook.explorer.refusals import Refused
from hardlook.explorer.run_index import ListedRun
from hardlook.explorer.run_view import query_for, rivals
from hardlook.explorer.shots import shots_of
from hardlook.report.numerals import NOTHING, decimals_for, numeral

MOST_BESIDE = 4
MOST_RIVALS = 24
MOST_ITEMS, MOST_TEXT = 40, 4000


def unit_view(library: Library, key: str, pairs: Pairs) -> dict[str, Any]:
    """What the template `unit.html` shows."""
    named, rest = take(pairs, ("id", "overlay", "with"))
    run = library.run(key)
    table = library.table(run)
    unit, overlay = only(named["id"], "id"), overlay_of(named["overlay"])
    row = row_of(table, unit)
    query = query_for(table, rest)
    beside = _beside(library, run, named["with"])
    own: list[tuple[str, str]] = [*query.pairs(page=1, size=50), *(("with", other.key) for other in beside)]
    shown = [_answer(library, one, unit, overlay) for one in (run, *beside)]
    return {
        "title": unit,
        "run": run,
        "back": run_address(key, query.address()),
        "overlay": overlay,
        "switch": unit_address(key, unit, [*own, ("overlay", "off" if overlay else "on")]),
        "answers": shown,
        "place": _place(table, query, row, key, [("with", other.key) for other in beside]),
        "command": command_for(run.manifest, unit),
        "rivals": _rivals(library, run, table, unit, row, beside, query),
        "qualities": [field.title for field in table.fields if field.kind == "quality"],
    }


def overlay_of(values: list[str]) -> bool:
    """Whether masks are painted over pictures; they are unless switched off."""
    chosen = only(values, "overlay", "on")
    if chosen not in ("on", "off"):
        raise Refused(f"The overlay is on or off, not {shortened(chosen)}.")
    return chosen == "on"


def row_of(table: RecordTable, unit: str) -> int:
    """The row of a unit, looked up among the records."""
    row = table.row_of(unit)
    if row is None:
        raise Refused(f"There is no record of a unit {shortened(unit)} in this run.", 404)
    return row


def _answer(library: Library, run: ListedRun, unit: str, overlay: bool) -> dict[str, Any]:
    """One run's answer to the unit: caption, pictures or the reason for none, qualities, record."""
    table = library.table(run)
    row = table.frame.row(row_of(table, unit), named=True)
    record, problem = _record(library, run, row)
    benchmark = library.benchmark(run)
    return {
        "run": run,
        "address": unit_address(run.key, unit),
        "caption": benchmark.caption(record) if isinstance(benchmark, JudgesUnits) and not problem else "",
        "shots": shots_of(library, run, row, overlay),
        "problem": problem,
        "qualities": [(f.title, cell_text(row[f.key])) for f in table.fields if f.kind == "quality"],
        "record": _fields(record, {column.name: column.meaning for column in benchmark.schema.columns}),
    }


def _record(library: Library, run: ListedRun, row: Mapping[str, Any]) -> tuple[Record, str]:
    """The whole record without pictures; what the table holds, and why, where the run's files are gone."""
    from hardlook.errors import HardlookError
    from hardlook.explorer.refusals import in_words

    light = library.benchmark(run).schema.light
    try:
        record = library.record(run, row)
    except HardlookError as error:
        return {name: row[name] for name in light if name in row}, in_words(error, library.root)
    return {name: record[name] for name in light}, ""


def _fields(record: Record, meanings: Mapping[str, str]) -> list[tuple[str, str, str]]:
    return [(name, _shown(value), meanings.get(name, "")) for name, value in record.items() if name != "unit"]


def _shown(value: object) -> str:
    if isinstance(value, list):
        decimals = decimals_for(item for item in value if isinstance(item, float))
        items = [cell_text(item, decimals) for item in value[:MOST_ITEMS]]
        more = f" and {len(value) - MOST_ITEMS} more" if len(value) > MOST_ITEMS else ""
        return (", ".join(items) + more) or NOTHING
    if isinstance(value, str) and value:
        text = ", ".join(value.splitlines())
        return text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}\N{HORIZONTAL ELLIPSIS}"
    return cell_text(value)


def _place(
    table: RecordTable, query: Query, row: int, key: str, more: Sequence[tuple[str, str]]
) -> dict[str, str] | None:
    """Where the unit stands in the list it was opened from, and its neighbours there."""
    rows = table.select(query).rows
    found = np.flatnonzero(rows == row)
    if not len(found):
        return None
    place = int(found[0])
    units = table.frame["unit"]
    kept = [*query.pairs(page=1, size=50), *more]
    return {
        "place": numeral(place + 1, 0),
        "of": numeral(len(rows), 0),
        "before": unit_address(key, units[int(rows[place - 1])], kept) if place else "",
        "after": unit_address(key, units[int(rows[place + 1])], kept) if place + 1 < len(rows) else "",
    }


def _beside(library: Library, run: ListedRun, keys: list[str]) -> list[ListedRun]:
    if len(keys) > MOST_BESIDE:
        raise Refused(f"At most {MOST_BESIDE} runs are shown beside another.")
    others = [library.run(key) for key in dict.fromkeys(keys) if key != run.key]
    if any(other.benchmark != run.benchmark for other in others):
        raise Refused("Runs of different benchmarks cannot be shown side by side.")
    return others


def _rivals(
    library: Library,
    run: ListedRun,
    table: RecordTable,
    unit: str,
    row: int,
    beside: Sequence[ListedRun],
    query: Query,
) -> list[dict[str, Any]]:
    """The same unit in other runs: qualities, the difference of the main one, and links."""
    rows = []
    for other in rivals(library, run)[:MOST_RIVALS]:
        line: dict[str, Any] = {
            "run": other,
            "address": unit_address(other.key, unit),
            "compare": compare_address(run.key, other.key),
            "beside": unit_address(key=run.key, unit=unit, more=[*query.pairs(), ("with", other.key)]),
            "shown": other in beside,
            "qualities": [],
            "difference": "",
            "note": "",
        }
        if not library.at_hand(other):
            line["note"] = "large: open it to read it"
        else:
            theirs = library.table(other)
            place = theirs.row_of(unit)
            if place is None:
                line["note"] = "has no record of this unit"
            else:
                line.update(_against(table, row, theirs, place))
        rows.append(line)
    return rows


def _against(table: RecordTable, row: int, theirs: RecordTable, place: int) -> dict[str, Any]:
    judged = [field for field in table.fields if field.kind == "quality" and field.key in theirs.by_key]
    values = [theirs.frame[field.key][place] for field in judged]
    difference = ""
    if table.main is not None and values and values[0] is not None and table.frame[table.main.key][row] is not None:
        gap = table.frame[table.main.key][row] - values[0]
        difference = numeral(gap, decimals_for([gap, *values[:1]]))
    return {"qualities": [cell_text(value) for value in values], "difference": difference}
