"""The first page: every run below the folder, by benchmark, and which two to set side by side."""

from __future__ import annotations

from typing import Any

from hardlook.explorer.addresses import run_address
from hardlook.explorer.library import Library
from hardlook.explorer.run_index import ListedRun
from hardlook.report.numerals import counted, numeral, span

MOST_SCORES = 4


def index_view(library: Library) -> dict[str, Any]:
    """What the template `index.html` shows."""
    runs = library.index.runs()
    problems = {run.key: library.problem(run) for run in runs}
    opened = [run for run in runs if not problems[run.key]]
    groups = []
    for name in sorted({run.benchmark for run in opened}):
        own = [run for run in opened if run.benchmark == name]
        card = library.benchmark(own[0]).card
        headline = [score for score in card.scores if score.headline] or list(card.scores)
        titles = {score.name: score.title for score in headline[:MOST_SCORES]}
        groups.append(
            {
                "title": card.title,
                "summary": card.summary,
                "scores": list(titles.values()),
                "runs": [_row(run, list(titles)) for run in own],
                "comparable": len(own) > 1,
            }
        )
    return {
        "title": f"Runs in {library.root.name}",
        "counted": counted(len(opened), "run"),
        "groups": groups,
        "closed": [(run.name, problems[run.key]) for run in runs if problems[run.key]],
        "cut": library.index.cut,
    }


def _row(run: ListedRun, names: list[str]) -> dict[str, Any]:
    scores = {name: (numeral(value, 3), span(low, high, 3)) for name, value, low, high in run.scores}
    return {
        "key": run.key,
        "name": run.name,
        "address": run_address(run.key),
        "model": run.model,
        "settings": run.settings,
        "units": run.units,
        "day": str(run.manifest["created"])[:10],
        "scores": [scores.get(name, ("", "")) for name in names],
    }
