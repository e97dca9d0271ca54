"""`hardlook leaderboard DIR`: all runs below a folder in one table, beside the published results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from hardlook.api.comparing import leaderboard as rank_runs
from hardlook.cli.printing import print_output
from hardlook.cloud.addresses import format_path
from hardlook.cloud.run_folders import open_run
from hardlook.harness.runs.folder import RunFolder, is_read_only_error
from hardlook.report.leaderboard.board import Leaderboard
from hardlook.report.leaderboard.document import SCHEMA, build_document
from hardlook.report.leaderboard.report import write_pages
from hardlook.report.leaderboard.terminal import print_leaderboards


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
    site: Annotated[
        Path | None,
        typer.Option("--site", help="Write a static site with all reports into this folder.", show_default=False),
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

      hardlook leaderboard runs --site public
    """
    folder = open_run(folder)
    ranked = rank_runs(folder, benchmark=benchmark, sort=sort, out=out, site=site)
    boards, found, first = ranked.boards, ranked.found, ranked.site
    written = list(ranked.pages) if out is not None else [] if site is not None else _write_files(boards, folder)
    if as_json:
        document = {
            "schema": SCHEMA,
            "pages": [format_path(page) for page in written[:-1]],
            "table": format_path(written[-1]) if written else None,
            **({"site": str(first)} if first else {}),
            "leaderboards": [build_document(board) for board in boards],
            "left_out": [asdict(one) for one in found.left_out],
        }
        print_output(json.dumps(document, allow_nan=False))
        return
    print_leaderboards(boards, found.left_out)
    for path in [*([first] if first else []), *written]:
        typer.echo(format_path(path))


def _write_files(boards: Sequence[Leaderboard], folder: Path) -> list[Path]:
    """Write the pages and, last, the table into the folder itself; nothing where that is a run or read-only."""
    if RunFolder(folder).exists():
        typer.echo(f"{folder}: this is a run, no page was written; --out FOLDER writes it elsewhere", err=True)
        return []
    try:
        pages, table = write_pages(boards, folder)
    except OSError as error:
        if not is_read_only_error(error):
            raise
        typer.echo(f"{folder}: read-only, no page was written; --out FOLDER writes it elsewhere", err=True)
        return []
    return [*pages, table]
