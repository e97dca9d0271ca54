"""`hardlook demo`: every benchmark on the embedded world, with models that need nothing but the core install."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from hardlook.api.demonstrating import demo as run_demo
from hardlook.cli.printing import print_output
from hardlook.report.json_values import dump_json


def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for index.html and the runs.")] = Path("demo"),
    benchmark: Annotated[
        list[str] | None, typer.Option("--benchmark", help="Only this one; repeatable.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print where the pages are as JSON.")] = False,
) -> None:
    """Run each benchmark on the planted world, with a sound and a faulty model, compare the two, and calibrate it.

    Examples:
      hardlook demo --out demo

      hardlook demo --benchmark rclicks --out demo-rclicks
    """
    made = run_demo(out, benchmarks=benchmark, progress=partial(typer.echo, err=True))
    document = {"index": str(made.index), "pages": made.pages}
    print_output(dump_json(document) if as_json else f"\nopen {made.index}")
