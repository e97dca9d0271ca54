"""`hardlook figure RUN NAME` and `hardlook table RUN NAME`: one chart or table of a run as a file, for papers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import typer

from hardlook.cli.printing import print_output
from hardlook.cli.report import read_scored_run
from hardlook.errors import DataError, OptionError
from hardlook.harness.runs.folder import write_atomically
from hardlook.harness.runs.scoring import ScoredRun
from hardlook.harness.sections import Chart, Table
from hardlook.report import scorecard_tables
from hardlook.report.block_names import name_blocks
from hardlook.report.charts import describe, tabulate
from hardlook.report.charts.standalone import compile_figure, standalone_svg
from hardlook.report.compare.method_table import find_comparison, format_method_table, read_method_table
from hardlook.report.formatting import is_number
from hardlook.report.text_tables import format_table

Part = TypeVar("Part")


FigureFormat = StrEnum("FigureFormat", ["svg", "pdf", "png", "csv"])


def figure(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    name: Annotated[str | None, typer.Argument(help="The figure's name; without one all names are listed.")] = None,
    form: Annotated[
        FigureFormat | None,
        typer.Option("--format", help="svg and csv always work, pdf and png need the extra figures (default svg)."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="The file; without one NAME.FORMAT here. Its suffix sets the format.")
    ] = None,
    width: Annotated[float, typer.Option("--width", help="Width in millimetres; 85 is a column of a paper.")] = 165.0,
    dark: Annotated[bool, typer.Option("--dark", help="Light on dark, for slides.")] = False,
    ppi: Annotated[float, typer.Option("--ppi", min=36, max=1200, help="Pixels per inch of a png.")] = 300.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the file, or the names, as JSON.")] = False,
) -> None:
    """Write one chart of a run's report as SVG, PDF, PNG or CSV.

    Names are in small print under the charts of a report. They are made from titles, such as `iou-of-each-class`.

    Examples:
      hardlook figure runs/first

      hardlook figure runs/first iou-of-each-class --format pdf --width 85
    """
    figures = list_figures(read_scored_run(run))
    if name is None:
        _print_titles("figures", figures, as_json)
        return
    chosen = _choose_figure_format(form, out)
    path = out or Path(f"{name}.{chosen}")
    write_atomically(path, _content(find_named(figures, name, "figure", run), chosen, width, dark, ppi))
    print_output(json.dumps({"figure": name, "format": chosen, "file": str(path)}) if as_json else str(path))


def _choose_figure_format(form: FigureFormat | None, out: Path | None) -> FigureFormat:
    """The format from its flag, else from the suffix of the file."""
    ending = out.suffix.lower().removeprefix(".") if out is not None else ""
    if form is not None:
        if ending in list(FigureFormat) and ending != form:
            raise OptionError(f"--format {form} and --out {out} contradict each other", remedy="omit --format")
        return form
    if out is None:
        return FigureFormat.svg
    if ending not in list(FigureFormat):
        raise OptionError(f"--out {out}: its suffix is no format", remedy="give --format svg, pdf, png or csv")
    return FigureFormat(ending)


def _content(chart: Chart, form: FigureFormat, width: float, dark: bool, ppi: float) -> bytes | str:
    if form is FigureFormat.csv:
        return format_table(tabulate(chart), "csv")
    svg = standalone_svg(chart, width=width, dark=dark, filled=form is FigureFormat.png)
    if not svg:
        raise DataError(f"the figure {chart.title!r} has no value to draw", remedy="--format csv writes what there is")
    if form is FigureFormat.svg:
        return svg
    kind: Literal["pdf", "png"] = "pdf" if form is FigureFormat.pdf else "png"
    return compile_figure(svg, kind, title=chart.title, words=describe(chart), ppi=ppi)


class TableFormat(StrEnum):
    """The formats of tables."""

    latex = "latex"
    markdown = "markdown"
    csv = "csv"


class IntervalStyle(StrEnum):
    """How an interval is written."""

    brackets = "brackets"
    plus_minus = "plus-minus"
    none = "none"


def table(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, or a comparison (folder, page or JSON).")],
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="The table's name; without one the names of a run's tables are listed."),
    ] = None,
    form: Annotated[
        TableFormat | None,
        typer.Option("--format", help="latex (needs booktabs), markdown (default), or csv with exact numbers."),
    ] = None,
    intervals: Annotated[
        IntervalStyle | None,
        typer.Option("--intervals", help="Write [low, high], plus-minus half their distance, or none (not in csv)."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Write to this file instead of printing; .tex, .md or .csv sets the format."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table, or the names, as JSON.")] = False,
) -> None:
    """Print one table of a run: `scores`, `all-scores`, `left-out`, `readings`, or any of its report.

    The name of a chart gives the numbers behind it. Of a comparison: models by headline scores, or with `all-scores`
    by all scores, the best in bold, and a dagger where a model cannot be distinguished from the best.

    Examples:
      hardlook table runs/first

      hardlook table runs/first scores --out scores.tex

      hardlook table comparison --format latex
    """
    if (comparison := find_comparison(run)) is not None:
        _write_method_table(comparison, name, _choose_table_format(form, out), intervals, out, as_json)
        return
    tables = list_tables(read_scored_run(run))
    if name is None:
        _print_titles("tables", tables, as_json)
        return
    found = find_named(tables, name, "table", run)
    text = format_table(found, _choose_table_format(form, out).value, (intervals or IntervalStyle.brackets).value)
    if out is not None:
        write_atomically(out, text)
    if as_json:
        rows = [[cell if isinstance(cell, str) or is_number(cell) else None for cell in row] for row in found.rows]
        document = {"table": name, "title": found.title, "columns": list(found.columns), "rows": rows}
        print_output(json.dumps(document | ({"file": str(out)} if out else {}), ensure_ascii=False))
    else:
        typer.echo(out if out is not None else text, nl=out is not None)


def _write_method_table(
    comparison: Path,
    name: str | None,
    form: TableFormat,
    intervals: IntervalStyle | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Print the models by scores of a comparison, or write them to `out`."""
    if name not in (None, "all-scores"):
        remedy = "give no name for its headline scores, or all-scores"
        raise OptionError(f"a comparison has no table {name!r}", file=comparison, remedy=remedy)
    methods = read_method_table(comparison, every_score=name is not None)
    text = format_method_table(methods, form.value, (intervals or IntervalStyle.none).value)
    if out is not None:
        write_atomically(out, text)
    if as_json:
        print_output(json.dumps(methods.to_json() | ({"file": str(out)} if out else {}), ensure_ascii=False))
    else:
        typer.echo(out if out is not None else text, nl=out is not None)


def _choose_table_format(form: TableFormat | None, out: Path | None) -> TableFormat:
    """The format from its flag, else from the suffix of the file, else Markdown."""
    endings = {".tex": TableFormat.latex, ".md": TableFormat.markdown, ".csv": TableFormat.csv}
    named = endings.get(out.suffix.lower()) if out is not None else None
    if form is not None and named is not None and form is not named:
        raise OptionError(f"--format {form} and --out {out} contradict each other", remedy="omit --format")
    return form or named or TableFormat.markdown


def _print_titles(kind: str, parts: Mapping[str, Chart] | Mapping[str, Table], as_json: bool) -> None:
    titles = {name: part.title for name, part in parts.items()}
    longest = max(map(len, titles), default=0)
    lines = [f"{name:{longest}}  {title}" for name, title in titles.items()]
    print_output(json.dumps({kind: titles}) if as_json else "\n".join(lines))


def list_figures(scored: ScoredRun) -> dict[str, Chart]:
    """Every chart of the run's report, by name."""
    sections = scored.benchmark.report(scored.records, scored.scorecard)
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
    blocks = name_blocks(scored.benchmark.report(scored.records, scorecard))
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
