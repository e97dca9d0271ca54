"""The charts and tables of a run's report by name, as `hardlook figure` and `hardlook table` write them."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import Literal, TypeVar

from hardlook.errors import DataError, OptionError
from hardlook.harness.runs.scoring import ScoredRun
from hardlook.harness.sections import Chart, Table
from hardlook.report import scorecard_tables
from hardlook.report.block_names import name_blocks
from hardlook.report.charts import describe, tabulate
from hardlook.report.charts.standalone import compile_figure, standalone_svg
from hardlook.report.text_tables import format_table

Part = TypeVar("Part")

FigureFormat = StrEnum("FigureFormat", ["svg", "pdf", "png", "csv"])


def list_figures(scored: ScoredRun) -> dict[str, Chart]:
    """Every chart of the run's report, by name."""
    sections = scored.build_sections()
    return {name: block for name, block in name_blocks(sections).items() if not isinstance(block, Table)}


def list_tables(scored: ScoredRun) -> dict[str, Table]:
    """The tables that every run has, those of its report, and the numbers behind its charts."""
    card, scorecard = scored.benchmark.card, scored.scorecard
    titles = {score.name: score.title for score in card.scores}
    tables = {
        "scores": scorecard_tables.build_scores_table(scorecard, [score.name for score in card.scores], titles),
        "all-scores": scorecard_tables.build_all_scores_table(scorecard),
        "left-out": scorecard_tables.build_left_out_table(scorecard),
        "noted": scorecard_tables.build_noted_table(scorecard),
        "readings": scorecard_tables.build_readings_table(scorecard),
    }
    blocks = name_blocks(scored.build_sections())
    return tables | {name: block if isinstance(block, Table) else tabulate(block) for name, block in blocks.items()}


def find_named(parts: Mapping[str, Part], name: str, kind: str, run: Path) -> Part:
    """The part of that name; an error with the nearest names where there is none.

    >>> from pathlib import Path
    >>> find_named({"iou-of-each-class": 1}, "iou-by-class", "figure", Path("runs/a"))
    Traceback (most recent call last):
    ...
    hardlook.errors.OptionError: this run has no figure 'iou-by-class'
      file: runs/a
      remedy: did you mean iou-of-each-class? `hardlook figure runs/a` lists them
    """
    if name in parts:
        return parts[name]
    near = get_close_matches(name, parts, n=3, cutoff=0.5) or [known for known in parts if name in known][:3]
    meant = f"did you mean {' or '.join(near)}? " if near else ""
    raise OptionError(f"this run has no {kind} {name!r}", file=run, remedy=f"{meant}`hardlook {kind} {run}` lists them")


def render_figure(
    chart: Chart, form: FigureFormat, *, width: float = 165.0, dark: bool = False, ppi: float = 300.0
) -> bytes | str:
    """The chart as a file of that format, `width` millimetres wide; csv holds the numbers behind it."""
    if form is FigureFormat.csv:
        return format_table(tabulate(chart), "csv")
    svg = standalone_svg(chart, width=width, dark=dark, filled=form is FigureFormat.png)
    if not svg:
        raise DataError(f"the figure {chart.title!r} has no value to draw", remedy="--format csv writes its table")
    if form is FigureFormat.svg:
        return svg
    kind: Literal["pdf", "png"] = "pdf" if form is FigureFormat.pdf else "png"
    return compile_figure(svg, kind, title=chart.title, words=describe(chart), ppi=ppi)
