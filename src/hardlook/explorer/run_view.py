"""The page of a run: its records, filtered and sorted."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from hardlook.explorer.addresses import Pairs, compare_address, run_address, unit_address
from hardlook.explorer.library import Library
from hardlook.explorer.query import Query, parse_query
from hardlook.explorer.record_table import RecordTable
from hardlook.explorer.records_view import records_view
from hardlook.explorer.run_index import ListedRun
from hardlook.report.numerals import counted, numeral, span


def query_for(table: RecordTable, pairs: Pairs) -> Query:
    """The query of a run's page; where nothing is said the worst units come first."""
    main = table.main
    if main is None:
        return parse_query(pairs, table.by_key)
    return parse_query(pairs, table.by_key, sort=main.key, descending=not main.higher_is_better)


def run_view(library: Library, key: str, pairs: Pairs) -> dict[str, Any]:
    """What the template `run.html` shows."""
    run = library.run(key)
    table = library.table(run)
    query = query_for(table, pairs)
    card = library.benchmark(run).card
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
        "missing": _missing(run, len(table)),
        "scores": [
            (titles.get(name, name), numeral(value, 3), span(low, high, 3))
            for name, value, low, high in run.scores
            if name in titles
        ],
        "others": [(other.name, compare_address(run.key, other.key)) for other in rivals(library, run)],
        "records": records_view(
            table,
            query,
            lambda chosen: run_address(key, urlencode(list(chosen))),
            lambda unit: unit_address(key, unit, query.pairs(page=1, size=50)),
        ),
    }


def rivals(library: Library, run: ListedRun) -> list[ListedRun]:
    """The other runs of the same benchmark that can be opened."""
    return [
        other
        for other in library.index.runs()
        if other.key != run.key and other.manifest and other.benchmark == run.benchmark and not library.problem(other)
    ]


def _missing(run: ListedRun, answered: int) -> str:
    missing = int(run.manifest["units"]) - answered
    if missing <= 0:
        return ""
    return (
        f"{counted(missing, 'unit has', 'units have')} no record: not answered yet, or failed (see failures.parquet)."
    )
