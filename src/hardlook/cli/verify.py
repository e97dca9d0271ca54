"""`hardlook verify RUN...`: whether every file of a run is what was written, and the repair of those that are not."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from hardlook.api.verifying import VerifiedRun, verify_folder
from hardlook.cli.printing import print_json, run_warnings_as_notes
from hardlook.cloud.addresses import format_path, replace_copies
from hardlook.cloud.run_folders import open_run
from hardlook.harness.runs.folder import suggest_repair
from hardlook.harness.runs.verification import Verification
from hardlook.report.formatting import format_count


def verify(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Run folders.")],
    repair: Annotated[
        bool, typer.Option("--repair", help="Set damaged files aside and evaluate the missing units again.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Check every file of runs for damage; with --repair, evaluate again what was lost.

    Parts of records and failures are compared with the hash in their name, run.json, scores.json and sessions with
    their checksum. Checking changes nothing and needs no model. `--repair` moves damaged files into the folder
    `damaged` of the run, evaluates the units that have no record any more, and scores the run again; it needs the
    model and the data. Exits with 1 where something is damaged and was not repaired.

    Examples:
      hardlook verify runs/first runs/second

      hardlook verify runs/first --repair
    """
    found: list[VerifiedRun] = []
    show_damage = None if as_json else partial(_print_problems, err=True)
    for run in dict.fromkeys(open_run(one, thorough=True) for one in runs):
        with run_warnings_as_notes():
            found.append(verify_folder(run, repair=repair, progress=not quiet, show_damage=show_damage))
        if not as_json:
            _print_state(found[-1].state, repaired=len(found[-1].repaired))
    if as_json:
        print_json([one.document for one in found])
    if not all(one.passed for one in found):
        raise typer.Exit(1)


def _print_problems(state: Verification, *, err: bool = False) -> None:
    for problem in state.problems:
        typer.echo(f"{format_path(problem.file)}: {problem.what}", err=err)


def _print_state(state: Verification, repaired: int) -> None:
    _print_problems(state)
    checked = f"{format_count(state.files, 'file')} checked"
    without = f", {state.unchecked} of them without a checksum" if state.unchecked else ""
    damaged = f"{format_count(len(state.problems), 'problem')}" if state.problems else "no damage"
    fixed = f", {format_count(repaired, 'file')} repaired" if repaired else ""
    folder = format_path(state.folder)
    typer.echo(f"{folder}: {checked}{without}, {damaged}{fixed}")
    for note in state.notes:
        typer.echo(f"{folder}: {note}", err=True)
    if any(problem.file.name == "run.json" for problem in state.problems):
        typer.echo("  remedy: repeat the `hardlook run` of this folder: it writes run.json again and keeps the records")
    elif state.problems:
        typer.echo(f"  remedy: {replace_copies(suggest_repair(state.folder))}")
