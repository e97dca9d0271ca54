"""A run cut into runs on disjoint units, as if each part had been run on its own."""

import json

import polars as pl

from hardlook.fingerprints import hash_value
from hardlook.harness.checked_json import format_checked_json, parse_checked_json
from hardlook.harness.runs.folder import RunFolder
from hardlook.harness.runs.record_store import write_part


def split_run(whole, out, count=2):
    """Folders with every `count`-th unit of a run."""
    run = RunFolder(whole)
    records = pl.concat([pl.read_parquet(path) for path in sorted(run.records_path.glob("*.parquet"))])
    failures = [pl.read_parquet(path) for path in sorted(run.failure_parts_path.glob("*.parquet"))]
    ids = sorted({*records["unit"], *(unit for frame in failures for unit in frame["unit"])})
    return [_write_part(run, records, failures, ids[place::count], out / f"part{place}") for place in range(count)]


def _write_part(run, records, failures, units, out):
    manifest = run.read_manifest()
    manifest["units"] = len(units)
    manifest["answers"]["parts"]["units"] = hash_value(units)
    answers = manifest["answers"]["fingerprint"] = hash_value(manifest["answers"]["parts"])
    for frame, folder in [(records, "records"), *((one, "failures") for one in failures)]:
        chosen = frame.filter(pl.col("unit").is_in(units)).with_columns(answers=pl.lit(answers))
        if len(chosen):
            write_part(chosen, out / folder)
    write_manifest(out, manifest)
    return out


def write_manifest(out, manifest):
    out.mkdir(exist_ok=True)
    (out / "run.json").write_text(format_checked_json(manifest))


def edit_manifest(out, edit):
    """Change the content of `run.json` in place; the fingerprint and the records keep theirs."""
    manifest = parse_checked_json((out / "run.json").read_text())
    edit(manifest)
    write_manifest(out, manifest)


def scores_without_checksum(out):
    document = json.loads(RunFolder(out).scores_path.read_text())
    return {name: value for name, value in document.items() if name != "checksum"}
