"""`hardlook calibrate BENCHMARK`: vary the faults of planted models and plot fault against score."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hardlook.api.calibrating import calibrate as run_calibration
from hardlook.cli import arguments
from hardlook.cli.printing import print_json
from hardlook.harness.rounding import format_fixed

CALIBRATION_FAILED = 4


def calibrate(
    benchmark: Annotated[str, typer.Argument(help="A benchmark's name.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for calibration.html and calibration.json.")] = Path(
        "calibration"
    ),
    settings: Annotated[int, typer.Option("--settings", min=3, help="Dial settings from 0 to 1.")] = 6,
    option: Annotated[
        list[str] | None,
        typer.Option("--set", help="NAME=VALUE of a benchmark option; repeatable.", show_default=False),
    ] = None,
    offline: Annotated[bool, typer.Option("--offline", help=arguments.OFFLINE_HELP)] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print calibration.json instead of a table.")] = False,
) -> None:
    """Show that a benchmark measures what it says, on models whose faults are known.

    Every dial that is meant to move a score must move it steadily, every control must leave it flat; exit 4 when
    one does not.

    Example:
      hardlook calibrate closed-miou --out calibration
    """
    given = {name.replace("-", "_"): value for name, value in arguments.parse_pairs(option, "--set").items()}
    result = run_calibration(benchmark, settings=settings, out=out, offline=offline, **given)
    document = result.document
    if as_json:
        print_json(document)
    else:
        for row in document["dials"]:
            verdict = "as meant" if row["as_meant"] else "NOT AS MEANT"
            meant = "moves" if row["moves"] else "stays flat"
            typer.echo(
                f"{row['dial']}: {row['score']} {meant}, Spearman {format_fixed(row['spearman'], 2, sign=True)}, "
                f"range {format_fixed(row['range'], 3)}: {verdict}"
            )
        typer.echo(f"\npage: {out / 'calibration.html'}")
    if not result.passed:
        raise typer.Exit(CALIBRATION_FAILED)
