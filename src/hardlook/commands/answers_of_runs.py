"""The answers of a run of one benchmark, for studies that go on from them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook.errors import RunError

if TYPE_CHECKING:
    import polars as pl


def read_answers(folder: Path, benchmark: str) -> tuple[dict[str, Any], pl.DataFrame]:
    """What run.json says and the records without their pictures; a run of another benchmark is a `RunError`."""
    from hardlook.benchmarks import find_benchmark
    from hardlook.runs.folder import RunFolder
    from hardlook.runs.record_store import read_records

    run = RunFolder(folder)
    manifest = run.read_manifest()
    name = manifest["benchmark"]["name"]
    if name != benchmark:
        remedy = f"give the folder of a `hardlook run {benchmark}`"
        raise RunError(f"this is a run of {name}", file=folder, remedy=remedy)
    schema = find_benchmark(name).schema
    return manifest, read_records(run, schema, manifest["answers"]["fingerprint"], schema.light)


def model_of(manifest: dict[str, Any]) -> str:
    """The name of a run's model.

    >>> model_of({"model": None})
    'stored predictions'
    """
    return str(manifest["model"]["name"]) if manifest["model"] else "stored predictions"
