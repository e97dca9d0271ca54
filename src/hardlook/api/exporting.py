"""`Run.export`: one JSON document of a run, for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import TextIO

from hardlook.cloud.run_folders import refuse_address
from hardlook.errors import OptionError
from hardlook.harness.runs.folder import refuse_part_of_run
from hardlook.harness.runs.scoring import ScoredRun


def export_run(
    scored: ScoredRun, out: str | Path | TextIO, *, records: bool = True, records_to: str | Path | None = None
) -> int:
    """Write the document to a file or stream, and return the number of records; all checks come before any writing."""
    from hardlook.report.export.document import open_for_replacement, write_export

    file = Path(out) if isinstance(out, str | Path) else None
    beside = None if records_to is None else Path(records_to)
    if beside is not None and not records:
        raise OptionError("--no-records and --records-to contradict each other", remedy="give one of them")
    if beside is not None and file is not None and beside.resolve() == file.resolve():
        raise OptionError("--out and --records-to are the same file", file=file, remedy="give them different names")
    _check_targets({"--out": file, "--records-to": beside})
    if not isinstance(out, str | Path):
        return write_export(scored, out, records=records, beside=beside)
    with open_for_replacement(Path(out)) as stream:
        return write_export(scored, stream, records=records, beside=beside)


def _check_targets(targets: dict[str, Path | None]) -> None:
    """Raise an error for a target that is an address, a folder or one of a run's own files."""
    for name, target in targets.items():
        if target is None:
            continue
        refuse_address(target)
        if target.is_dir():
            raise OptionError(f"{name} is a folder", file=target, remedy="give the name of a file")
        refuse_part_of_run(target, name)
