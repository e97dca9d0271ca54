"""`hardlook report RUN...`: draw the pages of runs again, and an index where there are several."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def add_to(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("report")(report)


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

    A page is one file that loads nothing. Several runs get a page each and an index that links them, in the folder
    that holds them all.

    [bold]Examples[/bold]

      hardlook report runs/first

      hardlook report runs/first runs/second --examples 12 --out overview.html
    """
    import json

    from hardlook.commands.reports.reporting import write_report
    from hardlook.commands.reports.run_index import entry_of, index_path, page_at
    from hardlook.commands.reports.unanswered import say_unanswered
    from hardlook.report.index import render_index
    from hardlook.runs.folder import RunFolder, write_whole
    from hardlook.runs.scoring import score_run

    runs = list(dict.fromkeys(runs))
    several = len(runs) > 1
    place = None if out is None else page_at(out, several=several)
    index = (place or index_path(runs)) if several else None
    pages, entries = [], []
    for run in runs:
        scored = score_run(RunFolder(run))
        say_unanswered(scored)
        page = write_report(scored, examples=examples, out=None if several else place)
        pages.append({"run": str(run), "report": str(page), "bytes": page.stat().st_size})
        if index is not None:
            entries.append(entry_of(scored, page, index))
    if index is not None:
        write_whole(index, render_index(entries, text="Each report is one file that loads nothing."))
    if as_json:
        typer.echo(json.dumps({"pages": pages, "index": None if index is None else str(index)}))
        return
    for page_of_run in pages:
        typer.echo(page_of_run["report"])
    if index is not None:
        typer.echo(index)
