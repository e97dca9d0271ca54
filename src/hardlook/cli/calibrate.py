"""`hardlook calibrate BENCHMARK`: vary the faults of planted models and plot fault against score."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from hardlook.cli import arguments
from hardlook.cli.printing import print_json
from hardlook.harness.calibration import Calibration, build_calibration_section
from hardlook.harness.calibration import calibrate as run_calibration
from hardlook.harness.registry import find_benchmark
from hardlook.harness.rounding import format_fixed
from hardlook.report.page import write_study

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
    as_json: Annotated[bool, typer.Option("--json", help="Print calibration.json instead of a table.")] = False,
) -> None:
    """Show that a benchmark measures what it says, on models whose faults are known.

    Every dial that is meant to move a score must move it steadily, every control must leave it flat; exit 4 when
    one does not.

    Example:
      hardlook calibrate closed-miou --out calibration
    """
    given = {name.replace("-", "_"): value for name, value in arguments.parse_pairs(option, "--set").items()}
    steps = [step / (settings - 1) for step in range(settings)]
    calibration = run_calibration(benchmark, given, steps)
    document = write_calibration(calibration, out)
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
    if not calibration.passed:
        raise typer.Exit(CALIBRATION_FAILED)


def write_calibration(calibration: Calibration, out: Path) -> dict[str, Any]:
    """Write the page and the numbers; return the numbers."""
    card = find_benchmark(calibration.benchmark).card
    document = {
        "schema": "hardlook.calibration/1",
        "benchmark": calibration.benchmark,
        "passed": calibration.passed,
        "dials": [
            {
                "dial": curve.dial.name,
                "model": curve.dial.model,
                "score": curve.dial.score,
                "moves": curve.dial.moves,
                "settings": list(curve.settings),
                "values": [score.value for score in curve.scores],
                "spearman": curve.spearman,
                "range": curve.score_range,
                "as_meant": calibration.is_as_expected(curve),
            }
            for curve in calibration.curves
        ],
    }
    return write_study(
        out,
        "calibration",
        document,
        [build_calibration_section(calibration)],
        kind="Calibration",
        title=f"Calibration: {card.title}",
        summary="Planted models have faults that can be turned up. A score that measures a fault must follow it, "
        "and must not follow what it is not meant to measure.",
        provenance=document,
    )
