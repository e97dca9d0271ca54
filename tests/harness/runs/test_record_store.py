"""Records that another version wrote, or that came apart, and what a user is told of them."""

import json

import polars as pl
import pytest
from small_runs import small_run

import hardlook
from hardlook.errors import RunError
from hardlook.harness.runs.folder import RunFolder
from hardlook.harness.runs.scoring import score_run


@pytest.fixture
def run(tmp_path):
    small_run(tmp_path / "run", scenes=4)
    folder = RunFolder(tmp_path / "run")
    manifest = folder.read_manifest()
    manifest["code"]["hardlook"] = "0.0.7"
    folder.manifest_path.write_text(json.dumps(manifest))
    return folder


def rewrite(folder, change):
    for part in folder.records_path.glob("part-*"):
        change(pl.read_parquet(part)).write_parquet(part)


def refusal(folder):
    with pytest.raises(RunError) as caught:
        score_run(folder)
    assert "\n" not in caught.value.what
    assert caught.value.file.startswith(str(folder.records_path))
    return caught.value


def test_records_that_lack_columns_name_them_and_the_version(run):
    rewrite(run, lambda frame: frame.drop("ignored", "cells"))
    error = refusal(run)
    assert "the records have no column cells, ignored: " in error.what
    code = run.read_manifest()["code"]["fingerprint"][:8]
    assert f"run.json: hardlook 0.0.7, code {code}; this is {hardlook.__version__}" in error.what
    assert "run it again" in error.remedy and "use the version that made it" in error.remedy


def test_columns_of_another_type_are_named(run):
    rewrite(run, lambda frame: frame.with_columns(pl.col("ignored").cast(pl.String)))
    assert "have other types in column ignored" in refusal(run).what


def test_a_run_that_does_not_say_who_made_it(run):
    manifest = run.read_manifest()
    del manifest["code"]
    run.manifest_path.write_text(json.dumps(manifest))
    rewrite(run, lambda frame: frame.drop("ignored"))
    assert "hardlook unknown" in refusal(run).what


def test_columns_of_a_newer_version_do_no_harm(run):
    before = score_run(run).scorecard
    rewrite(run, lambda frame: frame.with_columns(later=pl.lit(1)))
    assert score_run(run).scorecard == before


def test_a_torn_part_is_not_taken_for_an_old_one(run):
    part = next(run.records_path.glob("part-*"))
    part.write_bytes(part.read_bytes()[:100])
    assert "cannot be read" in refusal(run).what
