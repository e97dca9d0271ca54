"""A run at an address that ends at any change of the store is resumed on a machine with an empty cache."""

import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from killed_uploads import Gone, ending_at, raise_gone, run
from object_stores import environment

from hardlook.cloud import leases
from hardlook.harness.runs.folder import RunFolder
from hardlook.harness.runs.verification import verify_run

SUPPORT = Path(__file__).parents[1] / "support"

# Of 27 changes 7 is run.json, 10 the session, 11 to 13 the parts, 18 run.json again, 27 scores.json; the others are
# failures.parquet and claims. `-n` is right before the n-th.
KILLED, GONE = (7, 12, -18), (1, -7, 11, -13, -27)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return run(tmp_path_factory.mktemp("undisturbed") / "run")


def resume_and_compare(bucket, name, cache, undisturbed):
    """Resume on another machine: nothing is lost or done twice; how many units were answered before."""
    stored = {key: bucket.read(key) for key in bucket.keys(f"{name}/records/")}
    with environment(bucket.env, cache):
        done = run(f"{bucket.address}/{name}")
        assert not verify_run(RunFolder(done.folder)).problems
    records = pl.concat(pl.read_parquet(path) for path in sorted((done.folder / "records").glob("*.parquet")))
    assert len(records) == 6, "nothing was done twice"
    assert done.records.equals(undisturbed.records)
    assert (done.folder / "scores.json").read_bytes() == (undisturbed.folder / "scores.json").read_bytes()
    assert {key: bucket.read(key) for key in stored} == stored, "what was uploaded is kept"
    assert done.progress.before == 2 * len(stored)
    return done.progress.before


def test_after_a_kill_another_machine_resumes_to_the_same_bits(bucket, undisturbed, tmp_path):
    environ = {**os.environ, **bucket.env, "HARDLOOK_CACHE": str(tmp_path / "killed"), "PYTHONPATH": str(SUPPORT)}
    command = [sys.executable, str(SUPPORT / "killed_uploads.py"), bucket.address, *map(str, KILLED)]
    answer = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120)
    assert answer.stdout.splitlines() == [f"{place} killed" for place in KILLED], answer.stdout + answer.stderr
    before = [resume_and_compare(bucket, f"{place}", tmp_path / f"{place}", undisturbed) for place in KILLED]
    assert before == [0, 4, 6]


def test_a_run_that_ends_at_any_change_resumes_to_the_same_bits(bucket, undisturbed, tmp_path):
    before = []
    for place in GONE:
        cache = tmp_path / f"{place} first"
        with environment(bucket.env, cache), ending_at(place, raise_gone), pytest.raises(Gone):
            run(f"{bucket.address}/{place}")
        leases._owned.clear()  # as in a new process
        before.append(resume_and_compare(bucket, f"{place}", tmp_path / f"{place}", undisturbed))
    assert before == [0, 0, 2, 4, 6]
