"""The table of a paper, from a comparison: one row per model, one column per score, the best of each column in bold.

A dagger marks models that the comparison cannot distinguish from the best one: their difference from it is not
significant. The numbers are those of `comparison.json`, so nothing is computed again.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hardlook.errors import DataError, OptionError
from hardlook.harness.benchmark import BenchmarkCard, ScoreMeaning
from hardlook.harness.registry import find_benchmark
from hardlook.reading import read_json
from hardlook.report.compare.differences import find_score_meaning
from hardlook.report.compare.document import NUMBERS, SCHEMA
from hardlook.report.formatting import MISSING, format_exact, format_number
from hardlook.report.text_tables import (
    IntervalStyle,
    TextFormat,
    escape_latex,
    format_bounds,
    layout_latex,
    layout_markdown,
)

DECIMALS = 3
_NOTE = "bold: the best; dagger: not distinguishable from the best at level"


@dataclass(frozen=True)
class MethodCell:
    """A model's score: its value and interval, whether it is the best, and whether it cannot be told from the best."""

    value: float | None
    low: float | None = None
    high: float | None = None
    best: bool = False
    tied: bool = False


@dataclass(frozen=True)
class MethodTable:
    """Models by scores, `cells[model][score]`; `titles` are those of the scores."""

    models: tuple[str, ...]
    scores: tuple[str, ...]
    titles: tuple[str, ...]
    cells: Mapping[str, Mapping[str, MethodCell]]
    level: float

    def to_json(self) -> dict[str, Any]:
        """The table as JSON values."""
        rows = [
            {"model": model, "scores": {name: vars(self.cells[model][name]) for name in self.scores}}
            for model in self.models
        ]
        return {"scores": dict(zip(self.scores, self.titles, strict=True)), "level": self.level, "rows": rows}


def find_comparison(path: Path) -> Path | None:
    """The numbers of a comparison given as JSON, as page or as folder; None where the path is none of these."""
    if path.is_dir():
        return path / NUMBERS if (path / NUMBERS).is_file() else None
    beside = path.with_suffix(".json")
    return beside if path.suffix in (".json", ".html") and beside.is_file() else None


def read_method_table(path: Path, *, every_score: bool = False) -> MethodTable:
    """The table of a `comparison.json`: its headline scores, or every score over all units."""
    document = read_json(path)
    remedy = "make it again with `hardlook compare RUN RUN --out DIR`"
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise DataError("this is not a comparison", file=path, remedy=remedy)
    try:
        return build_method_table(document, every_score=every_score)
    except OptionError as error:
        raise DataError(error.what, file=path, remedy=error.remedy or remedy) from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"this comparison is damaged ({type(error).__name__})", file=path, remedy=remedy) from error


def build_method_table(document: dict[str, Any], *, every_score: bool = False) -> MethodTable:
    """The table of a comparison's JSON document."""
    card = find_benchmark(str(document["benchmark"]["name"])).card
    models = tuple(str(model["name"]) for model in document["models"])
    # Of a score with several readings the first is the one that the benchmark leads with.
    overall = {
        model: {row["name"]: row for row in reversed(document["scores"][model]) if not row["slice"]} for model in models
    }
    present = list(
        dict.fromkeys(row["name"] for model in models for row in document["scores"][model] if not row["slice"])
    )
    names = tuple(name for name in present if every_score or name in document["headline"])
    marks = {name: _find_best(document["differences"], name, find_score_meaning(card, name)) for name in names}
    cells = {
        model: {name: _read_cell(overall[model].get(name), model, *marks[name]) for name in names} for model in models
    }
    return MethodTable(models, names, tuple(_title(card, name) for name in names), cells, float(document["alpha"]))


def _find_best(
    differences: Sequence[Mapping[str, Any]], name: str, meaning: ScoreMeaning
) -> tuple[frozenset[str], frozenset[str]]:
    """The models with the best value of a score over all units, and those that do not differ significantly from one."""
    rows = [row for row in differences if row["name"] == name and not row["slice"]]
    rows = [row for row in rows if row["reading"] == rows[0]["reading"]]
    values = {row[place]: row[f"{place}_value"] for row in rows for place in ("first", "second")}
    known = [float(value) for value in values.values() if value is not None]
    if not known or not meaning.ranked:
        return frozenset(), frozenset()
    top = max(known) if meaning.higher_is_better else min(known)
    best = frozenset(model for model, value in values.items() if value == top)
    alike = [{row["first"], row["second"]} for row in rows if row["verdict"] == "cannot tell"]
    return best, frozenset(model for pair in alike if pair & best for model in pair - best)


def _read_cell(row: Mapping[str, Any] | None, model: str, best: frozenset[str], tied: frozenset[str]) -> MethodCell:
    if row is None or row["value"] is None:
        return MethodCell(None)
    low, high = (float(row["interval"][end]) for end in ("low", "high")) if row["interval"] else (None, None)
    return MethodCell(float(row["value"]), low, high, model in best, model in tied)


def _title(card: BenchmarkCard, name: str) -> str:
    meaning = find_score_meaning(card, name)
    arrow = {"higher is better": " \N{UPWARDS ARROW}", "lower is better": " \N{DOWNWARDS ARROW}"}
    return meaning.title + arrow.get(meaning.direction, "")


def format_method_table(table: MethodTable, text_format: TextFormat, intervals: IntervalStyle = "none") -> str:
    """The table as LaTeX, Markdown or CSV; CSV has exact numbers, with `low` and `high` beside each score."""
    if text_format == "csv":
        return _format_csv(table)
    rows = [
        [_cell_text(table.cells[model][name], text_format, intervals) for name in table.scores]
        for model in table.models
    ]
    right = [False, *(True for _ in table.scores)]
    note = f"{_NOTE} {format_exact(table.level)}"
    if text_format == "markdown":
        return layout_markdown(
            ["model", *table.titles], [[m, *row] for m, row in zip(table.models, rows, strict=True)], right
        ) + (f"\n{note.replace('dagger', chr(0x2020))}\n")
    columns = [escape_latex(title) for title in ("model", *table.titles)]
    lines = [[escape_latex(model), *row] for model, row in zip(table.models, rows, strict=True)]
    return f"% {note}; needs booktabs\n" + layout_latex(columns, lines, right)


def _cell_text(cell: MethodCell, text_format: TextFormat, intervals: IntervalStyle) -> str:
    if cell.value is None:
        return escape_latex(MISSING) if text_format == "latex" else MISSING
    latex = text_format == "latex"
    text = format_number(cell.value, DECIMALS)
    text = escape_latex(text) if latex else text
    if cell.best:
        text = rf"\textbf{{{text}}}" if latex else f"**{text}**"
    if cell.tied:
        text += r"$^{\dagger}$" if latex else "\N{DAGGER}"
    if intervals == "none" or cell.low is None or cell.high is None:
        return text
    shown = format_bounds(cell.low, cell.high, DECIMALS, intervals)
    return f"{text} {escape_latex(shown) if latex else shown}"


def _format_csv(table: MethodTable) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    kinds: Sequence[str] = ("", " low", " high", " best", " tied")
    writer.writerow(["model", *(name + kind for name in table.scores for kind in kinds)])
    for model in table.models:
        cells = [table.cells[model][name] for name in table.scores]
        numbers = [[format_exact(one) if one is not None else "" for one in (c.value, c.low, c.high)] for c in cells]
        flags = [[str(int(c.best)), str(int(c.tied))] for c in cells]
        writer.writerow([model, *(text for pair in zip(numbers, flags, strict=True) for part in pair for text in part)])
    return stream.getvalue()
