"""`hardlook figure RUN NAME`: one chart of a run as a file, for papers and slides."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from hardlook.contract.sections import Chart


class FigureForm(StrEnum):
    """What a figure can be written as."""

    svg = "svg"
    pdf = "pdf"
    png = "png"
    csv = "csv"


def add_to(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("figure")(figure)


def figure(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    name: Annotated[str | None, typer.Argument(help="The figure's name; without one all names are listed.")] = None,
    form: Annotated[
        FigureForm | None,
        typer.Option("--format", help="svg and csv always work, pdf and png need the extra figures (default svg)."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="The file; without one NAME.FORMAT here. Its ending says the format.")
    ] = None,
    width: Annotated[float, typer.Option("--width", help="Width in millimetres; 85 is a column of a paper.")] = 165.0,
    dark: Annotated[bool, typer.Option("--dark", help="Light on dark, for slides.")] = False,
    ppi: Annotated[float, typer.Option("--ppi", min=36, max=1200, help="Pixels an inch of a png.")] = 300.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the file, or the names, as JSON.")] = False,
) -> None:
    """Write one chart of a run's report as SVG, PDF, PNG or CSV.

    Names are in small print under the charts of a report. They are made from titles, such as `iou-of-each-class`.

    [bold]Examples[/bold]

      hardlook figure runs/first

      hardlook figure runs/first iou-of-each-class --format pdf --width 85
    """
    import json

    from hardlook.commands.reports.named_parts import figures_of, named
    from hardlook.commands.reports.unanswered import say_unanswered
    from hardlook.runs.folder import RunFolder, write_whole
    from hardlook.runs.scoring import score_run

    scored = score_run(RunFolder(run))
    say_unanswered(scored)
    figures = figures_of(scored)
    if name is None:
        titles = {known: chart.title for known, chart in figures.items()}
        longest = max(map(len, titles), default=0)
        lines = [f"{known:{longest}}  {title}" for known, title in titles.items()]
        typer.echo(json.dumps({"figures": titles}) if as_json else "\n".join(lines))
        return
    chosen = _form(form, out)
    path = out or Path(f"{name}.{chosen}")
    write_whole(path, _content(named(figures, name, "figure", run), chosen, width, dark, ppi))
    typer.echo(json.dumps({"figure": name, "format": chosen, "file": str(path)}) if as_json else str(path))


def _form(form: FigureForm | None, out: Path | None) -> FigureForm:
    """The format that is asked for, by its flag or else by the ending of the file."""
    from hardlook.errors import OptionError

    ending = out.suffix.lower().removeprefix(".") if out is not None else ""
    if form is not None:
        if ending in list(FigureForm) and ending != form:
            raise OptionError(f"--format {form} and --out {out} contradict each other", remedy="leave --format away")
        return form
    if out is None:
        return FigureForm.svg
    if ending not in list(FigureForm):
        raise OptionError(f"--out {out}: its ending names no format", remedy="give --format svg, pdf, png or csv")
    return FigureForm(ending)


def _content(chart: Chart, form: FigureForm, width: float, dark: bool, ppi: float) -> bytes | str:
    from hardlook.errors import DataError
    from hardlook.report.charts import describe, tabulate
    from hardlook.report.charts.standalone import standalone_svg
    from hardlook.report.typeset import typeset
    from hardlook.report.written_tables import write_table

    if form is FigureForm.csv:
        return write_table(tabulate(chart), "csv")
    svg = standalone_svg(chart, width=width, dark=dark, filled=form is FigureForm.png)
    if not svg:
        raise DataError(f"the figure {chart.title!r} has no value to draw", remedy="--format csv writes what there is")
    if form is FigureForm.svg:
        return svg
    kind: Literal["pdf", "png"] = "pdf" if form is FigureForm.pdf else "png"
    return typeset(svg, kind, title=chart.title, words=describe(chart), ppi=ppi)
