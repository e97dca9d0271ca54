"""`hardlook figure RUN NAME` and `hardlook table RUN NAME`: one chart or table of a run as a file, for papers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from hardlook.api.inline import choose_figure_format, choose_table_format
from hardlook.cli.printing import print_output
from hardlook.cli.report import read_run
from hardlook.cloud.run_folders import open_run
from hardlook.errors import OptionError
from hardlook.harness.runs.folder import write_atomically
from hardlook.report.compare.method_table import find_comparison, format_method_table, read_method_table
from hardlook.report.figures import FigureFormat
from hardlook.report.formatting import is_number
from hardlook.report.text_tables import TextFormat


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
    read = read_run(open_run(run))
    if name is None:
        _print_titles("figures", read.figures, as_json)
        return
    found = read.figure(name)
    path = out or Path(f"{found.name}.{form or 'svg'}")
    chosen = choose_figure_format(form, path)
    found.save(path, format=chosen, width=width, dark=dark, ppi=ppi)
    print_output(json.dumps({"figure": found.name, "format": chosen, "file": str(path)}) if as_json else str(path))


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
    chosen = choose_table_format(None if form is None else form.value, out)
    if (comparison := find_comparison(run)) is not None:
        _write_method_table(comparison, name, chosen, intervals, out, as_json)
        return
    read = read_run(open_run(run))
    if name is None:
        _print_titles("tables", read.tables, as_json)
        return
    text = read.format_table(name, format=chosen, intervals=(intervals or IntervalStyle.brackets).value, out=out)
    if as_json:
        found = read.find_table(name)
        rows = [[cell if isinstance(cell, str) or is_number(cell) else None for cell in row] for row in found.rows]
        document = {"table": name, "title": found.title, "columns": list(found.columns), "rows": rows}
        print_output(json.dumps(document | ({"file": str(out)} if out else {}), ensure_ascii=False))
    else:
        typer.echo(out if out is not None else text, nl=out is not None)


def _write_method_table(
    comparison: Path,
    name: str | None,
    form: TextFormat,
    intervals: IntervalStyle | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Print the models by scores of a comparison, or write them to `out`."""
    if name not in (None, "all-scores"):
        remedy = "give no name for its headline scores, or all-scores"
        raise OptionError(f"a comparison has no table {name!r}", file=comparison, remedy=remedy)
    methods = read_method_table(comparison, every_score=name is not None)
    text = format_method_table(methods, form, (intervals or IntervalStyle.none).value)
    if out is not None:
        write_atomically(out, text)
    if as_json:
        print_output(json.dumps(methods.to_json() | ({"file": str(out)} if out else {}), ensure_ascii=False))
    else:
        typer.echo(out if out is not None else text, nl=out is not None)


def _print_titles(kind: str, titles: Mapping[str, str], as_json: bool) -> None:
    longest = max(map(len, titles), default=0)
    lines = [f"{name:{longest}}  {title}" for name, title in titles.items()]
    print_output(json.dumps({kind: titles}) if as_json else "\n".join(lines))
