"""`hardlook run BENCHMARK ... --unit ID --show`: evaluate a few units, print their records, and draw them on a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table as Printed

from hardlook.api.running import run
from hardlook.api.single_units import UnitResults, build_document, format_fields
from hardlook.cli.arguments import collect_options
from hardlook.cli.printing import print_json
from hardlook.harness.benchmark import Benchmark


def evaluate_named_units(name: str, benchmark: Benchmark, values: dict[str, Any], arguments: Mapping[str, Any]) -> bool:
    """Evaluate the units of `--unit` with every model, print and show them; return whether one failed."""
    # Without --model there is one entry, that of the default model, which is no choice: --pred takes its place.
    models = list(arguments) if values["model"] else [None]
    results: UnitResults | None = None
    for model, given in zip(models, arguments.values(), strict=True):
        own = run(
            name,
            unit=values["unit"],
            model=model,
            model_args={key: value for key, value in given.items() if key != "device"},
            device=given.get("device"),
            threads=values["threads"],
            progress=not values["quiet"],
            **collect_options(benchmark, values),
        )
        results = own if results is None else results + own
    assert results is not None
    page = results.page(values["out"]).path if values["show"] else None
    if values["as_json"]:
        print_json(build_document(benchmark, results, page))
    else:
        _print_results(benchmark, results)
        if page:
            typer.echo(f"\npage: {page}")
    return bool(results.failed)


def _print_results(benchmark: Benchmark, results: UnitResults) -> None:
    console = Console()
    for result in results:
        printed = Printed(title=escape(f"{result.unit.id} by {result.model}"), title_justify="left", show_header=False)
        printed.add_column(style="dim")
        printed.add_column(overflow="fold")
        for name, text in format_fields(benchmark, result).items():
            printed.add_row(escape(name), escape(text))
        if result.error:
            printed.add_row("error", escape(result.error))
        console.print(printed)
        if result.caption:
            console.print(escape(result.caption))
