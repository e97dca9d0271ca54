"""The pages of the explorer as values of their templates: all runs, one run, and two runs unit by unit."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from hardlook.report.explorer.query import Query, parse_query, truncate
from hardlook.report.explorer.record_table import APART, RecordTable, RunPair
from hardlook.report.explorer.records_view import build_records_view
from hardlook.report.explorer.run_data import RunData
from hardlook.report.explorer.run_index import ListedRun
from hardlook.report.explorer.urls import (
    PageError,
    Parameters,
    compare_url,
    get_single_value,
    run_url,
    split_parameters,
    unit_url,
)
from hardlook.report.formatting import format_count, format_interval, format_number


def parse_run_query(table: RecordTable, parameters: Parameters) -> Query:
    """The query of a run's page; by default the worst units come first."""
    main = table.main
    if main is None:
        return parse_query(parameters, table.by_key)
    return parse_query(parameters, table.by_key, sort=main.key, descending=not main.higher_is_better)


def build_run_view(data: RunData, key: str, parameters: Parameters) -> dict[str, Any]:
    """The values of the template `run.html`."""
    run = data.run(key)
    table = data.table(run)
    query = parse_run_query(table, parameters)
    card = data.benchmark(run).card
    titles = {score.name: score.title for score in card.scores}
    return {
        "title": run.name,
        "run": run,
        "benchmark": card.title,
        "facts": [
            ("Benchmark", f"{card.name} {card.version}"),
            ("Model", run.model),
            *([("Settings", run.settings)] if run.settings else []),
            ("Units", run.units),
            ("Date", str(run.manifest["created"])[:10]),
        ],
        "missing": _describe_missing(run, len(table)),
        "scores": [
            (titles.get(name, name), format_number(value, 3), format_interval(low, high, 3))
            for name, value, low, high in run.scores
            if name in titles
        ],
        "others": [(other.name, compare_url(run.key, other.key)) for other in list_comparable_runs(data, run)],
        "records": build_records_view(
            table,
            query,
            lambda chosen: run_url(key, urlencode(list(chosen))),
            lambda unit: unit_url(key, unit, query.parameters(page=1, size=50)),
        ),
    }


def list_comparable_runs(data: RunData, run: ListedRun) -> list[ListedRun]:
    """The other runs of the same benchmark that can be opened."""
    return [
        other
        for other in data.index.runs()
        if other.key != run.key and other.manifest and other.benchmark == run.benchmark and not data.problem(other)
    ]


def _describe_missing(run: ListedRun, answered: int) -> str:
    missing = int(run.manifest["units"]) - answered
    if missing <= 0:
        return ""
    count = format_count(missing, "unit has", "units have")
    return f"{count} no record: not evaluated yet, or failed (see failures.parquet)."


MOST_SCORES = 4


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
        titles = {score.name: score.title for score in headline[:MOST_SCORES]}
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
        "address": run_url(run.key),
        "model": run.model,
        "settings": run.settings,
        "units": run.units,
        "day": str(run.manifest["created"])[:10],
        "scores": [scores.get(name, ("", "")) for name in names],
    }


def build_compare_view(data: RunData, parameters: Parameters) -> dict[str, Any]:
    """The values of the template `compare.html`."""
    named, rest = split_parameters(parameters, ("first", "second", "quality"))
    first, second = (data.run(get_single_value(named[name], name)) for name in ("first", "second"))
    if first.benchmark != second.benchmark:
        raise PageError("Only runs of one benchmark can be compared.")
    if first.key == second.key:
        raise PageError("Choose two different runs.")
    qualities = [field for field in data.table(first).fields if field.kind == "quality"]
    if not qualities:
        raise PageError(f"The benchmark {first.benchmark} has no qualities of single units.", 404)
    quality = get_single_value(named["quality"], "quality", qualities[0].key) or qualities[0].key
    if quality not in {field.key for field in qualities}:
        known = ", ".join(field.key for field in qualities)
        raise PageError(f"There is no quality {truncate(quality)}. There are: {known}.")
    pair = data.pair(first, second, quality)
    query = parse_query(rest, pair.table.by_key, sort=APART, descending=True)
    beside = [("with", second.key)]
    field = next(field for field in qualities if field.key == quality)
    return {
        "title": f"{first.name} against {second.name}",
        "first": first,
        "second": second,
        "swapped": compare_url(second.key, first.key, quality),
        "choices": [first, *list_comparable_runs(data, first)],
        "quality": quality,
        "qualities": [(one.key, one.title) for one in qualities],
        "direction": "higher is better" if field.higher_is_better else "lower is better",
        "tally": _describe_wins(pair, first, second),
        "records": build_records_view(
            pair.table,
            query,
            lambda chosen: compare_url(first.key, second.key, quality, chosen),
            lambda unit: unit_url(first.key, unit, beside),
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
