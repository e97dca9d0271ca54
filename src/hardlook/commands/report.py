"""`hardlook report RUN`: draw the page of a run again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def add_to(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("report")(report)


def report(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the page's path as JSON.")] = False,
) -> None:
    """Write `report.html` into a run folder, from its records.

    [bold]Example[/bold]

      hardlook report runs/first
    """
    import json

    from hardlook.commands.reporting import write_report
    from hardlook.runs.folder import RunFolder
    from hardlook.runs.scoring import score_run

    scored = score_run(RunFolder(run))
    write_report(scored)
    path = str(scored.folder.report_path)
    typer.echo(json.dumps({"report": path}) if as_json else path)
