"""`hardlook export RUN`: one JSON document of a run, for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hardlook.cli.printing import get_output, print_output
from hardlook.cloud.run_folders import open_run, refuse_address
from hardlook.errors import OptionError
from hardlook.harness.runs.folder import OWN_NAMES, RunFolder
from hardlook.harness.runs.scoring import score_run
from hardlook.report.export.writing import open_for_replacement, read_schema, write_export
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
    if records_to is not None and not records:
        raise OptionError("--no-records and --records-to contradict each other", remedy="give one of them")
    if records_to is not None and out is not None and records_to.resolve() == out.resolve():
        raise OptionError("--out and --records-to are the same file", file=out, remedy="give them different names")
    for target in (out, records_to):
        if target is not None:
            refuse_address(target)
    run = open_run(run)
    if run.is_file():
        raise OptionError("this is a file, not a run folder", file=run, remedy="give the folder of `--out`")
    _check_targets(run, {"--out": out, "--records-to": records_to})
    scored = score_run(RunFolder(run))
    units = scored.scorecard.units
    if without := units.planned - units.scored:
        typer.echo(f"note: {without} of {units.planned} units have no record ({units.failed} failed)", err=True)
    if out is None:
        write_export(scored, get_output(), records=records, beside=records_to)
        return
    with open_for_replacement(out) as stream:
        count = write_export(scored, stream, records=records, beside=records_to)
    written = {"export": str(out), "records": count, "records_to": str(records_to) if records_to else None}
    lines = [str(out), *([str(records_to)] if records_to else [])]
    print_output(dump_json(written) if as_json else "\n".join(lines))


def _check_targets(run: Path, targets: dict[str, Path | None]) -> None:
    """Raise an error for a target that is a folder or one of the run's own files."""
    for name, target in targets.items():
        if target is None:
            continue
        if target.is_dir():
            raise OptionError(f"{name} is a folder", file=target, remedy="give the name of a file")
        place, own = target.resolve(), run.resolve()
        if place.is_relative_to(own) and place.relative_to(own).parts[0] in OWN_NAMES:
            raise OptionError(f"{name} would replace a part of the run", file=target, remedy="choose another name")
