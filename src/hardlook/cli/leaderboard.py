"""`hardlook leaderboard DIR`: all runs below a folder in one table, beside the published results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from hardlook.cli.printing import print_output
from hardlook.errors import OptionError
from hardlook.harness.runs.folder import RunFolder, is_read_only_error
from hardlook.report.leaderboard.board import Leaderboard, build_leaderboard
from hardlook.report.leaderboard.document import SCHEMA, build_document
from hardlook.report.leaderboard.report import write_pages
from hardlook.report.leaderboard.runs import SkippedRun, collect_runs
from hardlook.report.leaderboard.terminal import print_leaderboards
from hardlook.report.run_report import list_model_marks

MAX_NAMED = 5


def leaderboard(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder that contains the runs, at any depth.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="Where the pages and the table go.", show_default="DIR itself")
    ] = None,
    benchmark: Annotated[
        str | None, typer.Option("--benchmark", help="Only runs of this benchmark.", show_default="all that ran")
    ] = None,
    sort: Annotated[
        str | None, typer.Option("--sort", help="The score that comes first.", show_default="the first headline score")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the standings as JSON.")] = False,
) -> None:
    """Rank all runs below a folder, with the results of the paper in the same table.

    Runs are ranked where they have the same units, data, settings and readings; all others are shown with what
    differs. Published results get a rank only where a run says that it can be compared with them. Writes
    `leaderboard.html` and `leaderboard.parquet`; one page per benchmark where there are several.

    Examples:
      hardlook leaderboard runs

      hardlook leaderboard runs --benchmark rclicks --sort dgr --out board
    """
    if out is not None and out.exists() and not out.is_dir():
        raise OptionError("this is a file, not a folder", file=out, remedy="choose a folder for --out")
    found = collect_runs(folder, benchmark)
    if not found.runs:
        raise _no_runs_error(folder, benchmark, found.left_out)
    if sort is not None and benchmark is None and len(found.runs) > 1:
        raise OptionError(
            f"--sort {sort}: there are runs of {', '.join(found.runs)}", remedy="choose one with --benchmark"
        )
    boards: list[Leaderboard] = [
        build_leaderboard(found.benchmarks[name], runs, found.list_skipped(name), sort=sort, marks=list_model_marks)
        for name, runs in found.runs.items()
    ]
    written = _write_files(boards, folder, out)
    if as_json:
        document = {
            "schema": SCHEMA,
            "pages": [str(page) for page in written[:-1]],
            "table": str(written[-1]) if written else None,
            "leaderboards": [build_document(board) for board in boards],
            "left_out": [asdict(one) for one in found.left_out],
        }
        print_output(json.dumps(document, allow_nan=False))
        return
    print_leaderboards(boards, found.left_out)
    for path in written:
        typer.echo(str(path))


def _write_files(boards: Sequence[Leaderboard], folder: Path, out: Path | None) -> list[Path]:
    """Write the pages and, last, the table; without `--out` nothing where the folder is a run or read-only."""
    place = out or folder
    if RunFolder(place).exists():
        typer.echo(f"{place}: this is a run, no page was written; --out FOLDER writes it elsewhere", err=True)
        return []
    try:
        pages, table = write_pages(boards, place)
    except OSError as error:
        if out is not None or not is_read_only_error(error):
            raise
        typer.echo(f"{place}: read-only, no page was written; --out FOLDER writes it elsewhere", err=True)
        return []
    return [*pages, table]


def _no_runs_error(folder: Path, benchmark: str | None, left_out: Sequence[SkippedRun]) -> OptionError:
    runs = f"run of {benchmark}" if benchmark else "run"
    if not left_out:
        remedy = "give the folder that holds the --out folders of `hardlook run`"
        return OptionError(f"there is no {runs} below this folder", file=folder, remedy=remedy)
    named = [f"{one.folder}: {one.why}" for one in left_out[:MAX_NAMED]]
    if len(left_out) > MAX_NAMED:
        named.append(f"and {len(left_out) - MAX_NAMED} more")
    remedies = dict.fromkeys(one.remedy for one in left_out if one.remedy)
    return OptionError(
        f"no {runs} below this folder can be ranked ({'; '.join(named)})",
        file=folder,
        remedy="; ".join(list(remedies)[:MAX_NAMED]) or None,
    )
