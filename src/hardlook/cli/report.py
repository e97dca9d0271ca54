"""`hardlook report RUN...` writes the pages of runs and an index of several; `hardlook score RUN` their scores.

`hardlook figure RUN NAME` and `hardlook table RUN NAME` write one chart or table of a run, for papers. `hardlook join
RUN...` makes one run of several. All read the stored records and need no model. Where units have no record, a warning
goes to standard error.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from hardlook.api.inline import choose_figure_format, choose_table_format
from hardlook.api.reporting import write_reports
from hardlook.api.running import join as join_folders
from hardlook.api.runs import Run, describe_problems
from hardlook.cli import arguments
from hardlook.cli.printing import print_output, print_scores, run_warnings_as_notes
from hardlook.cloud.addresses import format_path
from hardlook.cloud.run_folders import open_run
from hardlook.errors import OptionError
from hardlook.harness.runs.folder import is_read_only_error, refuse_part_of_run, write_atomically
from hardlook.harness.runs.scoring import ScoredRun
from hardlook.report.compare.method_table import find_comparison, format_method_table, read_method_table
from hardlook.report.figures import FigureFormat
from hardlook.report.formatting import is_number
from hardlook.report.text_tables import TextFormat

FINISHED_WITH_FAILURES = 3


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Run folders.")],
    examples: Annotated[
        int, typer.Option("--examples", min=0, help="Units a gallery shows at most; 0 leaves galleries out.")
    ] = 6,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help="The page of one run, or the index of several; or a folder for it.", show_default=False
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the pages as JSON.")] = False,
) -> None:
    """Write `report.html` into run folders, from their records.

    A page is one file that loads nothing. Several runs get a page each, and an index with links to
    them in the folder that contains them all. Of a read-only run folder the page goes to `--out`; without it
    the scores are printed instead.

    Examples:
      hardlook report runs/first

      hardlook report runs/first runs/second --examples 12 --out overview.html
    """
    folders = list(dict.fromkeys(map(open_run, runs)))

    def read(folder: Path) -> ScoredRun:
        return read_run(folder).scored

    def print_instead(scored: ScoredRun) -> None:
        folder = scored.folder.path
        typer.echo(f"{folder}: read-only, no page was written; --out FILE.html writes it elsewhere", err=True)
        if not as_json:
            print_scores(scored, as_json=False)

    written = write_reports(folders, read, examples=examples, out=out, show_unwritten=print_instead)
    if as_json:
        pages = [
            {"run": format_path(run), "report": page and format_path(page), "bytes": page and page.stat().st_size}
            for run, page in zip(folders, written.pages, strict=True)
        ]
        print_output(json.dumps({"pages": pages, "index": written.index and format_path(written.index)}))
        return
    for page in (*written.pages, written.index):
        if page is not None:
            typer.echo(format_path(page))


def score(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    reading: Annotated[
        list[str] | None, typer.Option("--reading", help="NAME=VALUE; repeatable.", show_default=False)
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--set", help="NAME=VALUE of an option that changes only scores.", show_default=False),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Write the scorecard to this file.")] = None,
    full: Annotated[bool, typer.Option("--full", help="Print every score and every slice.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print scores.json instead of a table.")] = False,
) -> None:
    """Recompute the scores of a run from its records.

    Without changes `scores.json` and `report.html` in the folder are rewritten. With another reading or option,
    or in a read-only folder, they stay as they are: the scores are printed, and written to `--out`.

    Examples:
      hardlook score runs/first

      hardlook score runs/first --reading mean-over=gt-only --set level=.9 --out gt-only.json
    """
    changes: dict[str, Any] = {
        name.replace("-", "_"): value for name, value in arguments.parse_pairs(option, "--set").items()
    }
    if "reading" in changes:
        raise OptionError("--set reading: readings have a flag of their own", remedy="--reading NAME=VALUE")
    if reading:
        changes["reading"] = arguments.parse_pairs(reading, "--reading")
    run = open_run(run)
    scored = read_run(run, **changes)
    if not changes:
        try:
            scored.save_scores()
        except OSError as error:
            if not is_read_only_error(error):
                raise
            typer.echo(f"{run}: read-only, nothing was written there; --out FILE writes the scores elsewhere", err=True)
    if out is not None:
        scored.save_scores(out)
    print_scores(scored.scored, as_json=as_json, full=full)


def read_run(folder: Path, **changes: Any) -> Run:
    """Score the run of that folder, with warnings on standard error: units without a record, records of mixed code."""
    run = Run(folder).rescore(**changes)
    for text in describe_problems(folder, run.manifest, run.scorecard.units):
        typer.echo(f"{format_path(folder)}: {text}", err=True)
    return run


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
        refuse_part_of_run(out)
        write_atomically(out, text)
    if as_json:
        print_output(json.dumps(methods.to_json() | ({"file": str(out)} if out else {}), ensure_ascii=False))
    else:
        typer.echo(out if out is not None else text, nl=out is not None)


def _print_titles(kind: str, titles: Mapping[str, str], as_json: bool) -> None:
    longest = max(map(len, titles), default=0)
    lines = [f"{name:{longest}}  {title}" for name, title in titles.items()]
    print_output(json.dumps({kind: titles}) if as_json else "\n".join(lines))


def join(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Run folders; they are not changed.")],
    out: Annotated[Path, typer.Option("--out", help="Folder of the joined run.")],
    new: Annotated[bool, typer.Option("--new", help="Set another run in that folder aside.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print scores.json instead of a table.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Print every score and every slice.")] = False,
) -> None:
    """Make one run of runs on different units, such as those of the models of four folds.

    The runs need the same benchmark, settings and model; the weights of the model may differ, and its arguments by the
    number of the fold. The joined run has the records of all of them, is scored over all units, and can be reported,
    compared, ranked and exported like any other. Runs with units in common or with different settings are refused.

    Examples:
      hardlook join runs/fold0 runs/fold1 runs/fold2 runs/fold3 --out runs/net
    """
    with run_warnings_as_notes():
        scored = join_folders(list(runs), out, new=new).scored
    print_scores(scored, as_json=as_json, full=full)
    if not as_json:
        typer.echo(f"\nreport: {format_path(scored.folder.report_path)}")
    if scored.scorecard.units.failed:
        failures = format_path(scored.folder.failures_path)
        typer.echo(f"{scored.scorecard.units.failed} units failed: {failures}", err=True)
        raise typer.Exit(FINISHED_WITH_FAILURES)
