"""`hardlook table RUN NAME`: one table of a run as LaTeX, Markdown or CSV."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class TableForm(StrEnum):
    """What a table can be written as."""

    latex = "latex"
    markdown = "markdown"
    csv = "csv"


class IntervalForm(StrEnum):
    """How an interval is written."""

    brackets = "brackets"
    plus_minus = "plus-minus"


def add_to(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("table")(table)


def table(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    name: Annotated[str | None, typer.Argument(help="The table's name; without one all names are listed.")] = None,
    form: Annotated[
        TableForm | None,
        typer.Option("--format", help="latex (needs booktabs), markdown (default), or csv with exact numbers."),
    ] = None,
    intervals: Annotated[
        IntervalForm,
        typer.Option("--intervals", help="Write [low, high], or plus-minus half their distance (not in csv)."),
    ] = IntervalForm.brackets,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Write to this file instead of printing; .tex, .md or .csv says the format."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table, or the names, as JSON.")] = False,
) -> None:
    """Print one table of a run: `scores`, `all-scores`, `left-out`, `readings`, or any of its report.

    The name of a chart gives the numbers behind it.

    [bold]Examples[/bold]

      hardlook table runs/first

      hardlook table runs/first scores --out scores.tex
    """
    import json

    from hardlook.commands.reports.named_parts import named, tables_of
    from hardlook.commands.reports.unanswered import say_unanswered
    from hardlook.report.numerals import is_number
    from hardlook.report.written_tables import write_table
    from hardlook.runs.folder import RunFolder, write_whole
    from hardlook.runs.scoring import score_run

    scored = score_run(RunFolder(run))
    say_unanswered(scored)
    tables = tables_of(scored)
    if name is None:
        titles = {known: found.title for known, found in tables.items()}
        longest = max(map(len, titles))
        lines = [f"{known:{longest}}  {title}" for known, title in titles.items()]
        typer.echo(json.dumps({"tables": titles}) if as_json else "\n".join(lines))
        return
    found = named(tables, name, "table", run)
    text = write_table(found, _form(form, out).value, intervals.value)
    if out is not None:
        write_whole(out, text)
    if as_json:
        rows = [[cell if isinstance(cell, str) or is_number(cell) else None for cell in row] for row in found.rows]
        document = {"table": name, "title": found.title, "columns": list(found.columns), "rows": rows}
        typer.echo(json.dumps(document | ({"file": str(out)} if out else {}), ensure_ascii=False))
    else:
        typer.echo(out if out is not None else text, nl=out is not None)


def _form(form: TableForm | None, out: Path | None) -> TableForm:
    """The format that is asked for, by its flag or else by the ending of the file; Markdown where neither says."""
    from hardlook.errors import OptionError

    endings = {".tex": TableForm.latex, ".md": TableForm.markdown, ".csv": TableForm.csv}
    named = endings.get(out.suffix.lower()) if out is not None else None
    if form is not None and named is not None and form is not named:
        raise OptionError(f"--format {form} and --out {out} contradict each other", remedy="leave --format away")
    return form or named or TableForm.markdown
