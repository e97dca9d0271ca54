"""`hardlook gate RUN BASELINE`: fail where a run is worse than a baseline by more than is allowed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from hardlook.api.gating import gate as gate_runs
from hardlook.cli.printing import print_json
from hardlook.harness.runs.folder import write_atomically
from hardlook.report.json_values import to_json_value

WORSE = 5


def gate(
    run: Annotated[Path, typer.Argument(help="The folder of the new run.")],
    baseline: Annotated[Path, typer.Argument(help="The folder of the run that it is compared with.")],
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", help="A score; repeatable. Without it the headline scores.", show_default=False),
    ] = None,
    max_drop: Annotated[
        float, typer.Option("--max-drop", min=0, help="By how much a score may get worse, in its own scale.")
    ] = 0.0,
    alpha: Annotated[float, typer.Option("--alpha", help="The chance that a run at the limit fails.")] = 0.05,
    undecided: Annotated[
        str, typer.Option("--undecided", metavar="pass|fail", help="What it means if the units cannot tell.")
    ] = "pass",
    junit: Annotated[Path | None, typer.Option("--junit", help="Write the outcome as JUnit XML to this file.")] = None,
    github: Annotated[
        bool | None,
        typer.Option(
            "--github/--no-github", help="Print annotations of GitHub Actions.", show_default="where these run it"
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for the comparison's page.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
) -> None:
    """Compare a run with a baseline on the units that they share, and exit with 5 where it is worse.

    A score fails where the interval of the paired difference, of level 1 - 2 alpha, lies beyond the allowed drop. Where
    the interval reaches both sides, the units cannot tell, and --undecided counts.

    Examples:
      hardlook gate runs/new runs/main --metric miou --max-drop .01

      hardlook gate runs/new runs/main --undecided fail --junit gate.xml --out comparison
    """
    result = gate_runs(
        run,
        baseline,
        metrics=metric or (),
        max_drop=max_drop,
        alpha=alpha,
        undecided=undecided,  # type: ignore[arg-type]
        out=out,
    )
    if junit is not None:
        write_atomically(junit, result.to_junit())
    annotations = github if github is not None else os.environ.get("GITHUB_ACTIONS") == "true"
    if as_json:
        rows = [{**vars(score), "sentence": score.describe()} for score in result.scores]
        print_json({"schema": "hardlook.gate/1", "passed": result.passed, "scores": to_json_value(rows)})
    else:
        plain = [f"{one.outcome}: {one.describe()}" for one in result.scores]
        typer.echo("\n".join(result.to_github() if annotations else plain))
    if not result.passed:
        raise typer.Exit(WORSE)
