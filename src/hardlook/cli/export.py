"""`hardlook export RUN`: one JSON document of a run, for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hardlook.api.runs import Run
from hardlook.cli.printing import get_output, print_output
from hardlook.cloud.run_folders import open_run
from hardlook.errors import OptionError
from hardlook.report.export.document import read_schema
from hardlook.report.json_values import dump_json


def export(
    run: Annotated[Path | None, typer.Argument(help="A run folder.", show_default=False)] = None,
    out: Annotated[Path | None, typer.Option("--out", help="File to write; standard output without it.")] = None,
    records: Annotated[bool, typer.Option("--records/--no-records", help="Whether records go with it.")] = True,
    records_to: Annotated[
        Path | None, typer.Option("--records-to", help="Records in this file instead, as NDJSON.")
    ] = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of the document.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print what --out wrote as JSON.")] = False,
) -> None:
    """Write a run as one JSON document: what ran, scores, failures, charts as data, and records.

    The document has a schema of its own, `hardlook.export/1` (docs/export.md). Records are streamed, so that a run
    of a million units takes no more memory than its scores do.

    Examples:
      hardlook export runs/first --out first.json

      hardlook export runs/first --out first.json --records-to first.ndjson

      hardlook export runs/first --no-records | jq '.scores[] | select(.slice == {})'

      hardlook export --schema > export.schema.json
    """
    if schema:
        print_output(read_schema(), end="")
        return
    if run is None:
        raise OptionError("no run folder given", remedy="give a run folder, or --schema for the schema alone")
    folder = open_run(run)
    if folder.is_file():
        raise OptionError("this is a file, not a run folder", file=folder, remedy="give the folder of `--out`")
    found = Run(folder)
    units = found.scored.scorecard.units
    if without := units.planned - units.scored:
        typer.echo(f"note: {without} of {units.planned} units have no record ({units.failed} failed)", err=True)
    if out is None:
        found.export(get_output(), records=records, records_to=records_to)
        return
    count = found.export(out, records=records, records_to=records_to)
    written = {"export": str(out), "records": count, "records_to": str(records_to) if records_to else None}
    lines = [str(out), *([str(records_to)] if records_to else [])]
    print_output(dump_json(written) if as_json else "\n".join(lines))
