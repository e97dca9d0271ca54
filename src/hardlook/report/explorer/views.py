"""The pages of the explorer as values of their templates: all runs, one run, two runs unit by unit, and one unit."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import numpy as np

from hardlook.errors import HardlookError
from hardlook.harness.records import Record
from hardlook.harness.runs.rerun_command import build_rerun_command
from hardlook.harness.sections import Picture
from hardlook.report.explorer import display, urls
from hardlook.report.explorer.display import Display, parse_display
from hardlook.report.explorer.query import Field, Query, parse_query, truncate
from hardlook.report.explorer.record_table import APART, FIRST, SECOND, RecordTable, RunPair
from hardlook.report.explorer.records_view import MakeURL, Shot, build_grid, build_records_view, format_cell
from hardlook.report.explorer.run_data import PictureTrial, RunData
from hardlook.report.explorer.run_index import ListedRun
from hardlook.report.formatting import MISSING, choose_decimals, format_count, format_interval, format_number
from hardlook.report.markup import strip_backticks
from hardlook.report.pictures import describe_picture, list_legend

MAX_SCORES = 4
MAX_LABELS, MAX_BESIDE, MAX_OTHER_RUNS = 24, 4, 24
MAX_ITEMS, MAX_TEXT = 40, 4000

# So many units of a page are tried before its pictures are given up for the table.
TRIED = 3


def parse_run_query(table: RecordTable, parameters: urls.Parameters) -> Query:
    """The query of a run's page; by default the worst units come first."""
    main = table.main
    if main is None:
        return parse_query(parameters, table.by_key)
    return parse_query(parameters, table.by_key, sort=main.key, descending=not main.higher_is_better)


def build_run_view(data: RunData, key: str, parameters: urls.Parameters) -> dict[str, Any]:
    """The values of the template `run.html`."""
    named, rest = urls.split_parameters(parameters, display.NAMES)
    shown = parse_display(named)
    run = data.run(key)
    table = data.table(run)
    query = parse_run_query(table, rest)
    card = data.benchmark(run).card
    titles = {score.name: score.title for score in card.scores}
    missing = int(run.manifest["units"]) - len(table)
    count = format_count(missing, "unit has", "units have")
    kept = [*query.parameters(page=1), *shown.parameters()]
    quality = table.main.key if table.main else None
    return {
        "title": run.name,
        "run": run,
        "benchmark": card.title,
        "facts": [
            ("Benchmark", f"{card.name} {card.version}"),
            ("Model", run.method),
            *([("Settings", run.settings)] if run.settings else []),
            ("Units", run.units),
            ("Date", str(run.manifest["created"])[:10]),
        ],
        "missing": f"{count} no record: not evaluated yet, or failed (see failures.parquet)." if missing > 0 else "",
        "scores": [
            (titles.get(name, name), format_number(value, 3), format_interval(low, high, 3))
            for name, value, low, high in run.scores
            if name in titles
        ],
        "others": [(other.name, urls.compare_url(run.key, other.key)) for other in list_comparable_runs(data, run)],
        "records": _build_list(
            data,
            table,
            query,
            shown,
            [(run, "", quality)],
            lambda chosen: urls.run_url(key, urlencode(list(chosen))),
            lambda unit: urls.unit_url(key, unit, kept),
        ),
    }


def _build_list(
    data: RunData,
    table: RecordTable,
    query: Query,
    shown: Display,
    pictured: Sequence[tuple[ListedRun, str, str | None]],
    make_url: MakeURL,
    unit_link: Callable[[str], str],
) -> dict[str, Any]:
    """The values of the template `records.html`; `pictured` are the runs to show: name and column of the quality.

    Where no unit of the page can be drawn the table is shown, with the reason.
    """
    records = build_records_view(table, query, lambda chosen: make_url([*chosen, *shown.parameters()]), unit_link)
    rows, trial = records["page"], PictureTrial()
    if shown.view == "grid" and rows:
        trial = _try_pictures(data, [run for run, _, _ in pictured], [row["unit"] for row in rows[:TRIED]])
    grid = shown.view == "grid" and not trial.problem
    shots = [Shot(name, quality, _make_thumbnail_url(data, run, shown)) for run, name, quality in pictured]
    page = query.parameters()
    overlays = [
        {
            "overlay": overlay,
            "name": name,
            "address": make_url([*page, *shown.parameters(overlay=overlay)]),
            "shown": overlay == shown.overlay,
        }
        for overlay, name in display.OVERLAYS.items()
    ]
    return records | {
        "display": shown,
        "grid": build_grid(table, rows, shots, shown.overlay, unit_link) if grid else [],
        "as_grid": grid,
        "paired": len(pictured) > 1,
        "trial": trial,
        "views": [(view, make_url([*page, *shown.parameters(view=view)])) for view in ("grid", "table")],
        "overlays": overlays,
    }


def _try_pictures(data: RunData, runs: Sequence[ListedRun], units: Sequence[str]) -> PictureTrial:
    """Whether these units can be drawn in one of the runs."""
    trials = []
    for run in runs:
        table = data.table(run)
        trials.append(data.try_pictures(run, (table.row(find_row(table, unit)) for unit in units)))
    return PictureTrial(
        trials[0].problem if all(trial.problem for trial in trials) else "",
        any(trial.listing for trial in trials),
        any(trial.overlaid for trial in trials),
    )


def _make_thumbnail_url(data: RunData, run: ListedRun, shown: Display) -> Callable[[str], str]:
    version = data.state(run).fingerprint[:12]
    return lambda unit: urls.thumbnail_url(run.key, unit, shown.overlay, version)


def list_comparable_runs(data: RunData, run: ListedRun) -> list[ListedRun]:
    """The other runs of the same benchmark that can be opened."""
    return [
        other
        for other in data.index.runs()
        if other.key != run.key and other.manifest and other.benchmark == run.benchmark and not data.problem(other)
    ]


def build_index_view(data: RunData) -> dict[str, Any]:
    """The values of the template `index.html`."""
    runs = data.index.runs()
    problems = {run.key: data.problem(run) for run in runs}
    opened = [run for run in runs if not problems[run.key]]
    groups = []
    for name in sorted({run.benchmark for run in opened}):
        own = [run for run in opened if run.benchmark == name]
        card = data.benchmark(own[0]).card
        headline = [score for score in card.scores if score.headline] or list(card.scores)
        titles = {score.name: score.title for score in headline[:MAX_SCORES]}
        groups.append(
            {
                "title": card.title,
                "summary": card.summary,
                "scores": list(titles.values()),
                "runs": [_build_row(run, list(titles)) for run in own],
                "comparable": len(own) > 1,
            }
        )
    return {
        "title": f"Runs in {data.root.name}",
        "counted": format_count(len(opened), "run"),
        "groups": groups,
        "closed": [(run.name, problems[run.key]) for run in runs if problems[run.key]],
        "cut": data.index.cut,
    }


def _build_row(run: ListedRun, names: list[str]) -> dict[str, Any]:
    scores = {name: (format_number(value, 3), format_interval(low, high, 3)) for name, value, low, high in run.scores}
    return {
        "key": run.key,
        "name": run.name,
        "address": urls.run_url(run.key),
        "method": run.method,
        "settings": run.settings,
        "units": run.units,
        "day": str(run.manifest["created"])[:10],
        "scores": [scores.get(name, ("", "")) for name in names],
    }


@dataclass(frozen=True)
class Comparison:
    """Two runs unit by unit: their shared units, the quality they are compared by, and the query of the list."""

    first: ListedRun
    second: ListedRun
    qualities: Sequence[Field]
    quality: Field
    pair: RunPair
    query: Query

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """What the page of a unit needs to know to go through this list."""
        return [("compare", self.second.key), ("quality", self.quality.key)]

    def make_url(self, chosen: Sequence[tuple[str, str]]) -> str:
        """The URL of the comparison with these parameters."""
        return urls.compare_url(self.first.key, self.second.key, self.quality.key, chosen)


def parse_comparison(
    data: RunData, first: ListedRun, second: ListedRun, quality: str, rest: urls.Parameters
) -> Comparison:
    """The comparison of two runs by a quality, by default the first one; the largest differences come first."""
    if first.benchmark != second.benchmark:
        raise urls.PageError("Only runs of one benchmark can be compared.")
    if first.key == second.key:
        raise urls.PageError("Choose two different runs.")
    qualities = [field for field in data.table(first).fields if field.kind == "quality"]
    if not qualities:
        raise urls.PageError(f"The benchmark {first.benchmark} has no qualities of single units.", 404)
    chosen = next((field for field in qualities if field.key == (quality or qualities[0].key)), None)
    if chosen is None:
        known = ", ".join(field.key for field in qualities)
        raise urls.PageError(f"There is no quality {truncate(quality)}. There are: {known}.")
    pair = data.pair(first, second, chosen.key)
    query = parse_query(rest, pair.table.by_key, sort=APART, descending=True)
    return Comparison(first, second, qualities, chosen, pair, query)


def build_compare_view(data: RunData, parameters: urls.Parameters) -> dict[str, Any]:
    """The values of the template `compare.html`."""
    named, rest = urls.split_parameters(parameters, ("first", "second", "quality", *display.NAMES))
    shown = parse_display(named)
    first, second = (data.run(urls.get_single_value(named[name], name)) for name in ("first", "second"))
    compared = parse_comparison(data, first, second, urls.get_single_value(named["quality"], "quality"), rest)
    quality, query = compared.quality, compared.query
    kept = [*compared.parameters, *query.parameters(page=1), *shown.parameters()]
    return {
        "title": f"{first.name} against {second.name}",
        "first": first,
        "second": second,
        "swapped": urls.compare_url(second.key, first.key, quality.key, shown.parameters()),
        "choices": [first, *list_comparable_runs(data, first)],
        "quality": quality.key,
        "qualities": [(one.key, one.title) for one in compared.qualities],
        "direction": "higher is better" if quality.higher_is_better else "lower is better",
        "tally": _describe_wins(compared.pair, first, second),
        "display": shown,
        "records": _build_list(
            data,
            compared.pair.table,
            query,
            shown,
            [(first, first.name, FIRST), (second, second.name, SECOND)],
            compared.make_url,
            lambda unit: urls.unit_url(first.key, unit, kept),
        ),
    }


def _describe_wins(pair: RunPair, first: ListedRun, second: ListedRun) -> list[str]:
    """Sentences: how often each run is better, and how many units are in only one of them."""
    better = pair.better
    sentences = [
        f"First ({first.name}): better on {format_count(better['first'], 'unit')}. "
        f"Second ({second.name}): better on {format_count(better['second'], 'unit')}. "
        f"Equal on {format_count(better['equal'], 'unit')}."
    ]
    if better["undefined"]:
        sentences.append(f"On {format_count(better['undefined'], 'unit')} one of them has no value.")
    alone = [(pair.only_first, first), (pair.only_second, second)]
    sentences += [
        f"{format_number(count, 0)} units are only in {run.name} and not compared." for count, run in alone if count
    ]
    return sentences


def build_pictures(data: RunData, run: ListedRun, row: Mapping[str, Any], overlay: bool) -> dict[str, Any]:
    """The pictures, or the reason why there are none: the data may have moved since the run."""
    try:
        pictures = data.pictures(run, row)
    except Exception as error:
        # A benchmark reads files of any kind; whatever fails, the record can still be shown.
        if not isinstance(error, HardlookError | OSError):
            logging.getLogger(__name__).exception("no pictures of %r", row["unit"])
        return {"pictures": [], "reason": urls.describe_error(error, data.root)}
    shown = [_build_picture(run, str(row["unit"]), number, picture, overlay) for number, picture in enumerate(pictures)]
    return {"pictures": shown, "reason": "" if shown else "the unit has none"}


def _build_picture(run: ListedRun, unit: str, number: int, picture: Picture, overlay: bool) -> dict[str, Any]:
    height, width = picture.image.shape[:2]
    radius = max(width, height) / 40
    return {
        "address": urls.picture_url(run.key, unit, number, overlay=overlay),
        "label": strip_backticks(picture.label) or "picture",
        "words": describe_picture(picture, unit, most_labels=MAX_LABELS, overlay=overlay),
        "width": width,
        "height": height,
        "labels": list_legend(picture, MAX_LABELS) if overlay else [],
        "radius": radius if picture.ordered else radius / 3,
        "points": [(x + 0.5, y + 0.5, positive) for x, y, positive in picture.points] if overlay else [],
        "ordered": picture.ordered,
    }


def build_unit_view(data: RunData, key: str, parameters: urls.Parameters) -> dict[str, Any]:
    """The values of the template `unit.html`; its neighbours are those of the list it was opened from."""
    names = ("id", "with", "compare", "quality", *display.NAMES)
    named, rest = urls.split_parameters(parameters, names)
    run = data.run(key)
    table = data.table(run)
    unit, shown = urls.get_single_value(named["id"], "id"), parse_display(named)
    row = find_row(table, unit)
    source = _parse_source(data, run, named, rest)
    beside = _find_runs_beside(data, run, [*source.beside, *named["with"]])
    others = [("with", other.key) for other in beside if other.key not in source.beside]
    listed = [*source.kept, *source.query.parameters(page=1)]
    own = [*listed, *others, *shown.parameters()]
    overlay = shown.overlay != "off"
    place = _find_neighbours(source.table, source.query, unit, key, own)
    here = source.query.parameters(page=place["page"] if place else 1)
    return {
        "title": unit,
        "run": run,
        "back": source.make_url([*here, *shown.parameters()]),
        "back_name": source.name,
        "overlay": overlay,
        "switch": urls.unit_url(key, unit, [*listed, *others, *shown.parameters(overlay="off" if overlay else "on")]),
        "answers": [_build_answer(data, one, unit, overlay) for one in (run, *beside)],
        "place": place,
        "command": build_rerun_command(run.manifest, unit, import_model=False),
        "other_runs": _list_other_runs(data, run, unit, row, beside, own),
        "qualities": [field.title for field in table.fields if field.kind == "quality"],
    }


@dataclass(frozen=True)
class Source:
    """The list that a unit's page was opened from: a run's records, or the shared units of two runs.

    `kept` are the parameters that name the list, and `beside` the keys of the runs that it shows beside the first.
    """

    name: str
    table: RecordTable
    query: Query
    make_url: MakeURL
    kept: Sequence[tuple[str, str]] = ()
    beside: Sequence[str] = ()


def _parse_source(data: RunData, run: ListedRun, named: Mapping[str, list[str]], rest: urls.Parameters) -> Source:
    quality = urls.get_single_value(named["quality"], "quality")
    if not (second := urls.get_single_value(named["compare"], "compare")):
        table = data.table(run)
        query = parse_run_query(table, rest)
        return Source(run.name, table, query, lambda chosen: urls.run_url(run.key, urlencode(list(chosen))))
    compared = parse_comparison(data, run, data.run(second), quality, rest)
    name = f"{run.name} against {compared.second.name}"
    return Source(name, compared.pair.table, compared.query, compared.make_url, compared.parameters, [second])


def parse_overlay(values: list[str]) -> bool:
    """Whether masks are painted over pictures: yes by default."""
    chosen = urls.get_single_value(values, "overlay", "on")
    if chosen not in ("on", "off"):
        raise urls.PageError(f"The overlay is on or off, not {truncate(chosen)}.")
    return chosen == "on"


def find_row(table: RecordTable, unit: str) -> int:
    """The row number of a unit; an error page where the run has no record of it."""
    row = table.row_of(unit)
    if row is None:
        raise urls.PageError(f"There is no record of a unit {truncate(unit)} in this run.", 404)
    return row


def _build_answer(data: RunData, run: ListedRun, unit: str, overlay: bool) -> dict[str, Any]:
    """One run's answer to the unit: caption, pictures or the reason for none, qualities, record."""
    table = data.table(run)
    row = table.row(find_row(table, unit))
    record, problem = _read_record(data, run, row)
    benchmark = data.benchmark(run)
    meanings = {column.name: column.meaning for column in benchmark.schema.columns}
    return {
        "run": run,
        "address": urls.unit_url(run.key, unit),
        "caption": benchmark.caption(record) if benchmark.caption and not problem else "",
        "shots": build_pictures(data, run, row, overlay),
        "problem": problem,
        "qualities": [(f.title, format_cell(row[f.key])) for f in table.fields if f.kind == "quality"],
        "record": [
            (name, _format_value(value), meanings.get(name, "")) for name, value in record.items() if name != "unit"
        ],
    }


def _read_record(data: RunData, run: ListedRun, row: Mapping[str, Any]) -> tuple[Record, str]:
    """The whole record without pictures; where it cannot be read, what the table holds, and the reason."""
    light = data.benchmark(run).schema.light
    try:
        record = data.record(run, row)
    except HardlookError as error:
        return {name: row[name] for name in light if name in row}, urls.describe_error(error, data.root)
    return {name: record[name] for name in light}, ""


def _format_value(value: object) -> str:
    if isinstance(value, list):
        decimals = choose_decimals(item for item in value if isinstance(item, float))
        items = [format_cell(item, decimals) for item in value[:MAX_ITEMS]]
        more = f" and {len(value) - MAX_ITEMS} more" if len(value) > MAX_ITEMS else ""
        return (", ".join(items) + more) or MISSING
    if isinstance(value, str) and value:
        text = ", ".join(value.splitlines())
        return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}\N{HORIZONTAL ELLIPSIS}"
    return format_cell(value)


def _find_neighbours(
    table: RecordTable, query: Query, unit: str, key: str, kept: Sequence[tuple[str, str]]
) -> dict[str, Any] | None:
    """The place of the unit in the list it was opened from, the list's page with it, and its neighbours there."""
    row = table.row_of(unit)
    rows = table.select(query).rows
    found = [] if row is None else np.flatnonzero(rows == row).tolist()
    if not found:
        return None
    place = found[0]
    return {
        "place": format_number(place + 1, 0),
        "of": format_number(len(rows), 0),
        "page": place // query.size + 1,
        "before": urls.unit_url(key, table.row(int(rows[place - 1]))["unit"], kept) if place else "",
        "after": urls.unit_url(key, table.row(int(rows[place + 1]))["unit"], kept) if place + 1 < len(rows) else "",
    }


def _find_runs_beside(data: RunData, run: ListedRun, keys: list[str]) -> list[ListedRun]:
    if len(keys) > MAX_BESIDE:
        raise urls.PageError(f"At most {MAX_BESIDE} runs are shown beside another.")
    others = [data.run(key) for key in dict.fromkeys(keys) if key != run.key]
    if any(other.benchmark != run.benchmark for other in others):
        raise urls.PageError("Runs of different benchmarks cannot be shown side by side.")
    return others


def _list_other_runs(
    data: RunData, run: ListedRun, unit: str, row: int, beside: Sequence[ListedRun], kept: Sequence[tuple[str, str]]
) -> list[dict[str, Any]]:
    """The same unit in other runs: qualities, the difference of the main one, and links."""
    table, rows = data.table(run), []
    for other in list_comparable_runs(data, run)[:MAX_OTHER_RUNS]:
        line: dict[str, Any] = {
            "run": other,
            "address": urls.unit_url(other.key, unit),
            "compare": urls.compare_url(run.key, other.key),
            "beside": urls.unit_url(run.key, unit, [*kept, ("with", other.key)]),
            "shown": other in beside,
            "qualities": [],
            "difference": "",
            "note": "",
        }
        rows.append(line)
        if not data.is_quick(other):
            line["note"] = "large: open it to see its units"
        elif (place := data.table(other).row_of(unit)) is None:
            line["note"] = "has no record of this unit"
        else:
            line.update(_compare_with(table, row, data.table(other), place))
    return rows


def _compare_with(table: RecordTable, row: int, theirs: RecordTable, place: int) -> dict[str, Any]:
    qualities = [field for field in table.fields if field.kind == "quality" and field.key in theirs.by_key]
    ours, other = table.row(row), theirs.row(place)
    values = [other[field.key] for field in qualities]
    difference = ""
    if table.main is not None and values and values[0] is not None and ours[table.main.key] is not None:
        gap = ours[table.main.key] - values[0]
        difference = format_number(gap, choose_decimals([gap, *values[:1]]))
    return {"qualities": [format_cell(value) for value in values], "difference": difference}
