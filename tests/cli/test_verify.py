"""`hardlook verify`: damage is named and ends with 1; `--repair` brings the run back."""

import json

import pytest
from small_runs import all_records, scores_text, small_run


@pytest.fixture
def run(tmp_path):
    small_run(tmp_path / "run")
    return tmp_path / "run"


def flip(file):
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    return file


def test_a_sound_run_ends_with_0(hardlook, run):
    answer = hardlook("verify", run)
    assert answer.code == 0
    assert answer.out == f"{run}: 5 files checked, no damage\n"


def test_damage_is_named_and_repaired(hardlook, run):
    records, scores = all_records(run), scores_text(run)
    part = flip(next((run / "records").iterdir()))
    files = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    for command in ("score", "report", "export", "table", "figure"):
        answer = hardlook(command, run)
        assert answer.code == 1 and f"file: {part}" in answer.err and "--repair" in answer.err, command
    answer = hardlook("verify", run)
    assert answer.code == 1 and f"{part}: a part of the records is damaged" in answer.out
    assert f"remedy: `hardlook verify {run} --repair`" in answer.out
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == files
    answer = hardlook("verify", run, "--repair", "-q")
    assert answer.code == 0 and "no damage, 1 file repaired" in answer.out
    assert all_records(run).equals(records) and scores_text(run) == scores


def test_json_names_what_was_found_and_repaired(hardlook, run):
    part = flip(next((run / "records").iterdir()))
    answer = hardlook("verify", run, "--json")
    (found,) = json.loads(answer.out)
    assert answer.code == 1 and [one["file"] for one in found["problems"]] == [str(part)]
    (found,) = json.loads(hardlook("verify", run, "--repair", "--json", "-q").out)
    assert (found["problems"], found["answered"], found["planned"]) == ([], 12, 12)
    assert [one["file"] for one in found["repaired"]] == [str(part)]


def test_of_a_damaged_run_json_the_run_is_the_remedy(hardlook, run):
    flip(run / "run.json")
    for words in (("verify", run), ("verify", run, "--repair")):
        answer = hardlook(*words)
        assert answer.code == 1 and "Traceback" not in answer.err
        assert "repeat the `hardlook run` of this folder" in answer.out + answer.err


def test_a_folder_without_a_run(hardlook, tmp_path):
    answer = hardlook("verify", tmp_path)
    assert answer.code == 1 and "there is no run here" in answer.err
