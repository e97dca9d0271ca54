"""Single changed bits in every file of a run: noticed, named, and repaired by evaluating the lost units again."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from small_runs import all_records, scores_text, small_run

from hardlook.errors import HardlookError, RunError
from hardlook.harness.checked_json import format_checked_json, parse_checked_json
from hardlook.harness.runs.folder import RunFolder
from hardlook.harness.runs.record_store import (
    has_checksum,
    list_parts,
    read_failures_table,
    write_failures,
    write_part,
)
from hardlook.harness.runs.scoring import score_run
from hardlook.harness.runs.verification import repair_run, verify_run
from hardlook.harness.scorecard import read_scores

FLIPS = int(os.environ.get("HARDLOOK_FLIPS", "400"))


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A run of two sessions with several parts, failures, and scores."""
    out = tmp_path_factory.mktemp("sound") / "run"
    model = {"model": "troubled_segmenters:Raises", "args": {"scenes": "3+7"}, "max_failures": 0.5, "batch_size": 3}
    small_run(out, shard=(1, 2), **model)
    small_run(out, shard=(2, 2), **model)
    return out


@pytest.fixture
def run(sound, tmp_path):
    shutil.copytree(sound, tmp_path / "run")
    return RunFolder(tmp_path / "run")


def list_files(folder):
    """What holds the run: every file but the locks and the table of failures, which is made from their parts."""
    files = [path for path in sorted(folder.path.rglob("*")) if path.is_file() and not path.name.startswith(".")]
    return [path for path in files if path != folder.failures_path]


def flip(file, rng):
    content = bytearray(file.read_bytes())
    content[rng.integers(len(content))] ^= 1 << rng.integers(8)
    file.write_bytes(content)


def read_everything(folder):
    """All that a reader of the run learns, or the error that it gets."""
    try:
        scored = score_run(folder)
        stored = read_scores(folder.scores_path)
    except HardlookError as error:
        return error
    sessions = [parse_checked_json(path.read_text()) for path in sorted(folder.sessions_path.glob("*.json"))]
    return scored.scorecard, scored.records, scored.failures, scored.manifest, stored, sessions


def equal(one, other):
    return all(a.equals(b) if isinstance(a, pl.DataFrame) else a == b for a, b in zip(one, other, strict=True))


def test_no_changed_bit_changes_a_result_in_silence(run):
    rng = np.random.default_rng(0)
    files, before = list_files(run), read_everything(run)
    assert not isinstance(before, HardlookError)
    assert {path.parent.name for path in files} == {"run", "records", "failures", "sessions"}
    noticed = 0
    for number in range(FLIPS):
        file = files[number % len(files)]
        content = file.read_bytes()
        flip(file, rng)
        damaged = [problem.file for problem in verify_run(run).problems]
        if damaged:
            assert damaged == [file]
            noticed += 1
            if file.parent != run.sessions_path:
                error = read_everything(run)
                assert isinstance(error, HardlookError), file
                assert error.file == str(file) and error.remedy
        else:
            assert equal(read_everything(run), before), file
        file.write_bytes(content)
    assert noticed > 0.8 * FLIPS


def test_a_changed_bit_in_a_run_without_checksums_is_an_error_or_no_traceback(run):
    rng = np.random.default_rng(1)
    for file in [run.manifest_path, run.scores_path, *run.sessions_path.iterdir()]:
        file.write_text(json.dumps(parse_checked_json(file.read_text()), indent=1))
    for number, part in enumerate(list_parts(run.records_path)):
        part.rename(part.with_name(f"part-{number}.parquet"))
    pl.read_parquet(run.failures_path).write_parquet(run.failures_path)
    state = verify_run(run)
    assert not state.problems and state.unchecked == state.files - len(list_parts(run.failure_parts_path))
    before = {file: file.read_bytes() for file in list_files(run)}
    for number in range(max(FLIPS // 4, 60)):
        file = list(before)[number % len(before)]
        flip(file, rng)
        try:
            verify_run(run)
            score_run(run)
        except HardlookError as error:
            assert "\n" not in error.what.strip()
        file.write_bytes(before[file])


@pytest.mark.parametrize("which", ["records", "failures", "sessions", "scores.json", "failures.parquet"])
def test_repair_sets_the_damaged_file_aside_and_restores_the_run(run, sound, which):
    target = run.path / which
    damaged = sorted(target.iterdir())[0] if target.is_dir() else target
    damaged.write_bytes(damaged.read_bytes()[: len(damaged.read_bytes()) // 2])
    assert [problem.file for problem in verify_run(run).problems] == [damaged]
    repair_run(run)
    state = verify_run(run)
    assert not state.problems
    assert (state.planned, state.answered, state.failed) == (12, 10, 2)
    assert [path.name for path in run.damaged_path.iterdir()] == [f"{damaged.name}.1"]
    assert all_records(run.path).equals(all_records(sound))
    assert scores_text(run.path) == scores_text(sound)
    assert len(run.read_manifest()["sessions"]) == (3 if which in ("records", "failures") else 2)


def test_a_changed_row_of_the_table_of_failures_is_damage_and_an_earlier_table_is_none(run):
    table = pl.read_parquet(run.failures_path)
    assert len(table) == 2 and has_checksum(run.failures_path)
    changed = table.with_columns(error=pl.lit("nothing to see here"))
    changed.write_parquet(run.failures_path, metadata=pl.read_parquet_metadata(run.failures_path))
    assert [problem.file for problem in verify_run(run).problems] == [run.failures_path]
    assert "do not have its checksum" in verify_run(run).problems[0].what
    # As 0.1.0 wrote it, or a copy of an earlier one: no damage, and said to be out of date.
    changed.write_parquet(run.failures_path)
    assert not has_checksum(run.failures_path)
    assert not verify_run(run).problems and any(
        "failures.parquet is out of date" in note for note in verify_run(run).notes
    )
    write_failures(run, run.read_manifest()["answers"]["fingerprint"])
    assert verify_run(run).notes == () and pl.read_parquet(run.failures_path).equals(table)


def test_a_changed_bit_of_the_table_of_failures_is_noticed_or_changes_no_row(run):
    rng, table = np.random.default_rng(1), pl.read_parquet(run.failures_path)
    content = run.failures_path.read_bytes()
    for _ in range(40):
        flip(run.failures_path, rng)
        assert verify_run(run).problems or read_failures_table(run).equals(table)
        run.failures_path.write_bytes(content)


def test_repair_says_that_a_damaged_run_json_needs_the_run_again(run):
    run.manifest_path.write_text("")
    with pytest.raises(RunError, match=r"run\.json is not valid JSON") as caught:
        repair_run(run)
    assert "repeat the `hardlook run`" in caught.value.remedy


def test_records_of_another_model_are_refused_until_they_are_set_aside(run, tmp_path):
    small_run(tmp_path / "other", args={"stranger": 0.9})
    for part in list_parts(tmp_path / "other" / "records"):
        shutil.copy(part, run.records_path)
    with pytest.raises(
        RunError, match="12 records here were made with another version of the benchmark, another model"
    ):
        score_run(run)
    assert "12 records of another" in verify_run(run).problems[0].what
    repair_run(run)
    assert score_run(run).scorecard.units.scored == 10


def test_units_that_are_lost_are_noted_and_no_damage(run):
    part = list_parts(run.records_path)[0]
    lost = len(pl.read_parquet(part))
    part.unlink()
    state = verify_run(run)
    assert not state.problems and state.notes == (f"{lost} of 12 units are not answered yet",)


def test_a_part_is_damaged_whatever_its_content_is_worth(run):
    """A valid table under the name of another one is not what was written."""
    part = list_parts(run.records_path)[0]
    pl.read_parquet(part).with_columns(ignored=pl.col("ignored") + 1).write_parquet(part)
    with pytest.raises(RunError, match="a part of the records is damaged"):
        score_run(run)
    write_part(pl.read_parquet(part), part.parent)
    assert len(list_parts(run.records_path)) > len({Path(part)})


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run of one session without a failure."""
    out = tmp_path_factory.mktemp("whole") / "run"
    small_run(out, scenes=4)
    return out


def test_repair_of_a_run_that_lacks_no_unit_evaluates_nothing(whole, tmp_path):
    run = RunFolder(shutil.copytree(whole, tmp_path / "run"))
    run.scores_path.write_text("{")
    assert repair_run(run) is None
    assert scores_text(run.path) == scores_text(whole)
    assert len(run.read_manifest()["sessions"]) == 1
    state = verify_run(run)
    assert (state.planned, state.answered, state.failed, state.unchecked) == (4, 4, 0, 0)
    assert state.files == len([path for path in list_files(run) if path.parent != run.damaged_path]) + 1


def test_repair_evaluates_what_a_damaged_part_has_lost(whole, tmp_path):
    run = RunFolder(shutil.copytree(whole, tmp_path / "run"))
    list_parts(run.records_path)[0].write_bytes(b"")
    repaired = repair_run(run)
    assert (repaired.progress.answered, repaired.progress.failed) == (4, 0)
    assert scores_text(run.path) == scores_text(whole)


def test_a_manifest_whose_parts_are_not_those_of_its_fingerprint_is_damaged(whole, tmp_path):
    run = RunFolder(shutil.copytree(whole, tmp_path / "run"))
    manifest = run.read_manifest()
    manifest["answers"]["parts"]["batch size"] = 3
    run.manifest_path.write_text(format_checked_json(manifest))
    [problem] = verify_run(run).problems
    assert problem.file == run.manifest_path and "run.json is damaged: answers.fingerprint" in problem.what
    del manifest["answers"]["parts"]  # as the first version wrote it
    run.manifest_path.write_text(format_checked_json(manifest))
    assert verify_run(run).problems == ()


def test_files_that_cannot_be_opened_or_are_no_session_are_problems(whole, tmp_path, monkeypatch):
    run = RunFolder(shutil.copytree(whole, tmp_path / "run"))
    [session] = run.sessions_path.glob("*.json")
    session.write_text("[1]")
    assert [(one.file, one.what) for one in verify_run(run).problems] == [(session, "a session is not an object")]
    session.write_text("{")
    [problem] = verify_run(run).problems
    assert problem.what.startswith("a session cannot be read: it ")

    def refuse(path):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("hardlook.harness.runs.verification._check_session", refuse)
    assert [one.what for one in verify_run(run).problems] == ["it cannot be read (Input/output error)"]


def test_a_joined_run_is_joined_again_from_runs_that_are_there(whole, tmp_path, monkeypatch):
    run = RunFolder(shutil.copytree(whole, tmp_path / "run"))
    manifest = run.read_manifest()
    folders = [tmp_path / "first", tmp_path / "second"]
    shutil.copytree(whole, folders[0])
    manifest["joined"] = [{"folder": str(folder)} for folder in folders]
    run.manifest_path.write_text(format_checked_json(manifest))
    with pytest.raises(RunError, match=f"this run was joined from others, and {folders[1]}"):
        repair_run(run)
    shutil.copytree(whole, folders[1])
    joined = []
    monkeypatch.setattr("hardlook.harness.runs.verification.join_runs", lambda *given: joined.append(given))
    assert repair_run(run) is None
    assert joined == [(folders, run.path)]
