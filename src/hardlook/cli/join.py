"""`hardlook join RUN... --out DIR`: one run of runs on different units."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hardlook.cli.printing import print_scores, run_warnings_as_notes
from hardlook.harness.runs.joining import join_runs
from hardlook.report.run_report import write_report

FINISHED_WITH_FAILURES = 3


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
        scored = join_runs(runs, out, new=new)
    write_report(scored)
    print_scores(scored.scorecard, scored.benchmark, as_json=as_json, full=full)
    if not as_json:
        typer.echo(f"\nreport: {scored.folder.report_path}")
    if scored.scorecard.units.failed:
        typer.echo(f"{scored.scorecard.units.failed} units failed: {scored.folder.failures_path}", err=True)
        raise typer.Exit(FINISHED_WITH_FAILURES)
