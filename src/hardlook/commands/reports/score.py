"""`hardlook score RUN`: scores from stored records, without the model, also under another reading."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from hardlook.commands import grammar


def add_to(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("score")(score)


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

    Without changes `scores.json` and `report.html` in the folder are written anew. With another reading or option
    they are left alone: the scores are printed, and written where `--out` says.

    [bold]Examples[/bold]

      hardlook score runs/first

      hardlook score runs/first --reading mean-over=gt-only --set level=.9 --out gt-only.json
    """
    from hardlook.commands.printing import print_scores
    from hardlook.commands.reports.reporting import write_report
    from hardlook.errors import OptionError
    from hardlook.runs.folder import RunFolder, write_whole
    from hardlook.runs.scoring import score_run

    changes: dict[str, Any] = dict(grammar.pairs(option, "--set"))
    changes = {name.replace("-", "_"): value for name, value in changes.items()}
    if "reading" in changes:
        raise OptionError("--set reading: readings have a flag of their own", remedy="--reading NAME=VALUE")
    if reading:
        changes["reading"] = grammar.pairs(reading, "--reading")
    scored = score_run(RunFolder(run), changes)
    if not changes:
        write_whole(scored.folder.scores_path, scored.scorecard.to_json())
        write_report(scored)
    if out is not None:
        write_whole(out, scored.scorecard.to_json())
    print_scores(scored.scorecard, scored.benchmark, as_json=as_json, full=full)
