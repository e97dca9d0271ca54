"""The table of a preset: its runs in the places of the paper's rows, beside the published ones.

A row is one method's value of a quantity (mIoU, PQ, AP50) in one slice: vanilla, where it is printed also dagger, and
open. Rows have no rank: whether a run can be compared with the paper is said in its note, and `hardlook leaderboard`
ranks.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook.harness.benchmark import Benchmark
from hardlook.harness.presets import Preset, format_part
from hardlook.harness.published import PublishedResult
from hardlook.harness.runs.folder import write_atomically
from hardlook.harness.runs.scoring import name_stored_method
from hardlook.harness.sections import Section, Table
from hardlook.report.formatting import format_number, format_slice
from hardlook.report.json_values import to_json_value
from hardlook.report.leaderboard.board import Kind, find_published_slice, name_runs
from hardlook.report.leaderboard.runs import LeaderboardRun, collect_runs

if TYPE_CHECKING:
    import polars as pl

PAGE, DOCUMENT = "report.html", "table.json"
SCHEMA = "hardlook.preset-table/1"
VANILLA = "vanilla"
PREFIXES = {"dagger": "dagger-", "open": "open-"}
_NAMES = {"miou": "mIoU", "aps": "APs", "apm": "APm", "apl": "APl"}
_KEY = tuple[tuple[tuple[str, str], ...], str]


@dataclass(frozen=True)
class TableRow:
    """A method's values by column (`vanilla`, `dagger`, `open`); `gain` is open less dagger, or less vanilla."""

    where: Mapping[str, str]
    quantity: str
    method: str
    kind: Kind
    values: Mapping[str, float]
    note: str = ""
    source: str = ""
    folder: str = ""

    @property
    def gain(self) -> float:
        """What similarity gives; NaN where one of the two values is missing."""
        before = self.values.get("dagger", self.values.get(VANILLA, math.nan))
        return self.values.get("open", math.nan) - before


@dataclass(frozen=True)
class AbsentPart:
    """A dataset of the preset that has no finished run here: why, and the data that it needs."""

    dataset: str
    data: str
    why: str


@dataclass(frozen=True)
class PresetTable:
    """The rows of a preset in the order of the paper, its own runs first in each group, and what is absent."""

    preset: Preset
    columns: tuple[str, ...]
    rows: tuple[TableRow, ...] = field(repr=False)
    absent: tuple[AbsentPart, ...] = ()

    @property
    def runs(self) -> tuple[TableRow, ...]:
        """The rows that are runs."""
        return tuple(row for row in self.rows if row.kind == "run")

    @property
    def frame(self) -> pl.DataFrame:
        """One row per line of the table; values are null where there are none."""
        import polars as pl

        columns = (*self.columns, "gain")
        rows = [
            (format_slice(row.where), row.quantity, row.method, row.kind, *(_value(row, name) for name in columns),
             row.note, row.source or row.folder)
            for row in self.rows
        ]  # fmt: skip
        texts = ("slice", "quantity", "method", "kind")
        schema: dict[str, Any] = dict.fromkeys(texts, pl.String) | dict.fromkeys(columns, pl.Float64)
        return pl.DataFrame(rows, schema=schema | {"note": pl.String, "from": pl.String}, orient="row")

    def describe_absent(self) -> list[str]:
        """A sentence for each dataset without a run.

        >>> absent = (AbsentPart("A-150", "ade20k", "no data given"),)
        >>> PresetTable(Preset("t", "b", "", "", (), ()), (), (), absent).describe_absent()
        ['A-150: no data given (--data ade20k=PATH)']
        """
        return [f"{one.dataset}: {one.why} (--data {one.data}=PATH)" for one in self.absent]


def build_preset_table(benchmark: Benchmark, preset: Preset, out: Path) -> PresetTable:
    """The table of the runs that lie in the folders of the preset's parts below `out`."""
    card = benchmark.card
    published = [row for row in card.published() if row.source.startswith(preset.published)]
    groups: dict[_KEY, list[TableRow]] = {}
    for result in published:
        for row in _split_result(result):
            groups.setdefault(_key(row.where, row.quantity), []).append(row)
    found: list[tuple[LeaderboardRun, str]] = []
    absent = []
    for part in preset.parts:
        folder = out / part.data
        collected = collect_runs(folder, card.name) if folder.is_dir() else None
        usable = collected.runs.get(card.name, ()) if collected else ()
        found += [(run, part.data) for run in usable]
        if not usable:
            skipped = collected.left_out if collected else ()
            absent.append(AbsentPart(part.dataset, part.data, skipped[0].describe() if skipped else "no data given"))
    named = [
        (name_stored_method(run.manifest, benchmark), (run.manifest["model"] or {}).get("args", {}), data)
        for run, data in found
    ]
    # One method has one name on all datasets; two runs of one dataset need two.
    names = [""] * len(found)
    for part in preset.parts:
        places = [place for place, (_, _, data) in enumerate(named) if data == part.data]
        own = name_runs([(*named[place][:2], found[place][0].folder) for place in places])
        for place, name in zip(places, own, strict=True):
            names[place] = name
    for (run, data), name in zip(found, names, strict=True):
        for row in _split_run(benchmark, run, name, data, preset):
            if beside := groups.get(_key(row.where, row.quantity)):
                beside.append(replace(row, where=beside[0].where))
    ordered = [row for rows in groups.values() for row in sorted(rows, key=lambda row: row.kind == "published")]
    columns = tuple(name for name in (VANILLA, *PREFIXES) if any(name in row.values for row in ordered))
    return PresetTable(preset, columns, tuple(ordered), tuple(absent))


def _key(where: Mapping[str, str], quantity: str) -> _KEY:
    return tuple(sorted(where.items())), quantity


def _split_score(score: str) -> tuple[str, str]:
    """The column and the quantity of a score.

    >>> _split_score("open-miou"), _split_score("dagger-ap50"), _split_score("pq")
    (('open', 'mIoU'), ('dagger', 'AP50'), ('vanilla', 'PQ'))
    """
    for column, prefix in PREFIXES.items():
        if score.startswith(prefix):
            name = score.removeprefix(prefix)
            return column, _NAMES.get(name, name.upper())
    return VANILLA, _NAMES.get(score, score.upper())


def _split_result(result: PublishedResult) -> Iterator[TableRow]:
    values: dict[str, dict[str, float]] = {}
    for score, value in result.values.items():
        column, quantity = _split_score(score)
        values.setdefault(quantity, {})[column] = value
    for quantity, own in values.items():
        yield TableRow(result.where, quantity, result.method, "published", own, result.comparable, result.source)


def _split_run(benchmark: Benchmark, run: LeaderboardRun, name: str, data: str, preset: Preset) -> Iterator[TableRow]:
    """The scores of a run by slice and quantity; the dataset is the part's, also where its labels are others."""
    overall = {**find_published_slice(benchmark, run), "dataset": preset.find_part(data).dataset}
    values: dict[_KEY, dict[str, float]] = {}
    notes: dict[_KEY, str] = {}
    for score in run.scorecard.scores:
        column, quantity = _split_score(score.name)
        key = _key({**overall, **score.slice}, quantity)
        values.setdefault(key, {})[column] = score.value
        notes.setdefault(key, score.comparable)
    failed, planned = run.scorecard.units.failed, run.scorecard.units.planned
    trouble = f"{failed} of {planned} units failed" if failed else ""
    general = next((score.comparable for score in run.scorecard.scores if score.comparable), "")
    for (where, quantity), own in values.items():
        note = "; ".join(filter(None, (trouble, notes[where, quantity] or general)))
        folder = data if run.folder == data else f"{data}/{run.folder}"
        yield TableRow(dict(where), quantity, name, "run", own, note, folder=folder)


def _value(row: TableRow, column: str) -> float | None:
    value = row.gain if column == "gain" else row.values.get(column, math.nan)
    return None if math.isnan(value) else value


def list_cells(table: PresetTable) -> tuple[tuple[str, ...], list[tuple[str | float | None, ...]]]:
    """The columns and rows as a page shows them."""
    columns = (*table.columns, "gain")
    rows: list[tuple[str | float | None, ...]] = [
        (format_slice(row.where), row.quantity, row.method, row.kind, *(_value(row, name) for name in columns),
         row.folder or row.source)
        for row in table.rows
    ]  # fmt: skip
    return ("slice", "quantity", "method", "kind", *columns, "from"), rows


def build_document(table: PresetTable) -> dict[str, Any]:
    """The table as JSON: the preset with the options of each part, the rows, and what is absent."""
    preset = table.preset
    return {
        "schema": SCHEMA,
        "preset": preset.name,
        "benchmark": preset.benchmark,
        "table": preset.table,
        "note": preset.note,
        "parts": [{"data": part.data, "dataset": part.dataset, "options": dict(part.options)} for part in preset.parts],
        "rows": [
            {
                "slice": dict(row.where),
                "quantity": row.quantity,
                "method": row.method,
                "kind": row.kind,
                **{name: to_json_value(row.values.get(name)) for name in table.columns},
                "gain": to_json_value(row.gain),
                "note": row.note,
                "source": row.source,
                "folder": row.folder,
            }
            for row in table.rows
        ],
        "absent": [{"dataset": one.dataset, "data": one.data, "why": one.why} for one in table.absent],
    }


def build_sections(table: PresetTable) -> list[Section]:
    """The table, what is absent, what the paper says of comparing, and the commands that the preset stands for."""
    preset = table.preset
    columns, rows = list_cells(table)
    caption = (
        "Scores are fractions of 1. Rows marked published are printed in the paper; gain is open less dagger, or less "
        "vanilla where there is no dagger."
    )
    tables: list[Any] = [Table(f"{preset.table}: {preset.title}", caption, columns, tuple(rows))]
    if notes := dict.fromkeys((row.folder, row.note) for row in table.runs if row.note):
        tables.append(Table("Beside the paper", "", ("run", "what it says of comparing"), tuple(notes)))
    if table.absent:
        lines = tuple((one.dataset, one.why, f"--data {one.data}=PATH") for one in table.absent)
        tables.append(Table("Datasets without a run", "", ("dataset", "why", "give"), lines))
    commands = Table(
        "Written out",
        "The same runs without the preset, but for model, predictions and folder.",
        ("dataset", "command"),
        tuple((part.dataset, format_part(preset, part)) for part in preset.parts),
    )
    return [Section("The table", preset.note, tuple(tables)), Section("The preset", "", (commands,))]


def write_preset_table(table: PresetTable, out: Path) -> Path:
    """Write `report.html` and `table.json` into the folder, and return the page."""
    from hardlook.report.page import render_study

    preset, page = table.preset, out / PAGE
    absent = table.describe_absent()
    reports = sorted({row.folder for row in table.runs})
    summary = f"{preset.table} of the paper, {preset.title}. " + (
        f"Each run has its own report in {', '.join(f'`{name}/report.html`' for name in reports)}." if reports else ""
    )
    html = render_study(
        build_sections(table),
        kind="Preset",
        title=f"{preset.name}: {preset.title}",
        summary=summary,
        lead=absent,
        provenance={"benchmark": preset.benchmark, "preset": preset.name, "runs": reports},
    )
    write_atomically(page, html)
    write_atomically(out / DOCUMENT, json.dumps(build_document(table), indent=1, allow_nan=False))
    return page


def print_preset_table(table: PresetTable) -> None:
    """Print the table, then what the runs say of comparing and which datasets are absent."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table as Printed
    from rich.text import Text

    console, preset = Console(highlight=False), table.preset
    title = Text(f"{preset.name}: {preset.table}, {preset.title}", style="bold")
    numbers = (*table.columns, "gain")
    printed = Printed(box=SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left")
    printed.add_column("method", overflow="fold")
    for name in numbers:
        printed.add_column(name, justify="right", no_wrap=True)
    printed.add_column("from", overflow="fold")
    before = ""
    for row in table.rows:
        group = f"{', '.join(row.where.values())}: {row.quantity}"
        if group != before:
            printed.add_section()
            printed.add_row(Text(group, style="italic"))
        before = group
        place = row.folder or f"published, {row.source.split(',')[0]}"
        cells = [_format_cell(_value(row, name)) for name in numbers]
        style = "bold" if row.kind == "run" else ""
        printed.add_row(*(Text(text) for text in (f"  {row.method}", *cells, place)), style=style)
    console.print(printed)
    for text in [*dict.fromkeys(row.note for row in table.runs if row.note), *([preset.note] if preset.note else [])]:
        console.print(Text(text, style="dim"))
    for text in table.describe_absent():
        console.print(Text(f"not here: {text}", style="yellow"))


def _format_cell(value: float | None) -> str:
    return "" if value is None else format_number(value, 3)
