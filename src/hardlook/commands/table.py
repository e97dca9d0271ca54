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
        TableForm,
        typer.Option("--format", help="latex (needs booktabs), markdown, or csv with exact numbers."),
    ] = TableForm.markdown,
    intervals: Annotated[
        IntervalForm,
        typer.Option("--intervals", help="Write [low, high], or plus-minus half their distance (not in csv)."),
    ] = IntervalForm.brackets,
    out: Annotated[Path | None, typer.Option("--out", help="Write to this file instead of printing.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table, or the names, as JSON.")] = False,
) -> None:
    """Print one table of a run: `scores`, `all-scores`, `left-out`, `readings`, or any of its report.

    The name of a chart gives the numbers behind it.

    [bold]Examples[/bold]

      hardlook table runs/first

      hardlook table runs/first scores --format latex --out scores.tex
    """
    import json

    from hardlook.commands.named_parts import named, tables_of
    from hardlook.report.numerals import is_number
    from hardlook.report.written_tables import write_table
    from hardlook.runs.folder import RunFolder, write_whole
    from hardlook.runs.scoring import score_run

    tables = tables_of(score_run(RunFolder(run)))
    if name is None:
        titles = {known: found.title for known, found in tables.items()}
        longest = max(map(len, titles))
        lines = [f"{known:{longest}}  {title}" for known, title in titles.items()]
        typer.echo(json.dumps({"tables": titles}) if as_json else "\n".join(lines))
        return
    found = named(tables, name, "table", run)
    text = write_table(found, form.value, intervals.value)
    if out is not None:
        write_whole(out, text)
    if as_json:
        rows = [[cell if isinstance(cell, str) or is_number(cell) else None for cell in row] for row in found.rows]
        document = {"table": name, "title": found.title, "columns": list(found.columns), "rows": rows}
        typer.echo(json.dumps(document | ({"file": str(out)} if out else {}), ensure_ascii=False))
    else:
        typer.echo(out if out is not None else text, nl=out is not None)
