import json
import shutil

import jsonschema
import polars as pl
import pytest
from small_runs import replace_part, small_run

from hardlook.harness.checked_json import parse_checked_json
from hardlook.harness.scorecard import Scorecard
from hardlook.report.export.document import read_scorecard


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("export") / "run"
    small_run(out, scenes=6)
    return out


def test_the_document_goes_to_standard_output_or_to_a_file(hardlook, run, tmp_path):
    printed = hardlook("export", run)
    written = hardlook("export", run, "--out", tmp_path / "new" / "a.json")
    assert written.out.strip() == str(tmp_path / "new" / "a.json")
    assert (tmp_path / "new" / "a.json").read_text() == printed.out
    document = json.loads(printed.out)
    assert document["schema"] == "hardlook.export/1"
    assert document["records"]["count"] == 6
    assert read_scorecard(document) == Scorecard.from_json((run / "scores.json").read_text())


def test_the_schema_is_printed_without_a_run_and_holds_for_a_document(hardlook, run):
    schema = json.loads(hardlook("export", "--schema").out)
    jsonschema.validate(json.loads(hardlook("export", run).out), schema)
    jsonschema.validate(json.loads(hardlook("export", run, "--no-records").out), schema)
    assert schema["$schema"].endswith("draft/2020-12/schema")


def test_records_in_a_file_of_their_own(hardlook, run, tmp_path):
    words = ("export", run, "--out", tmp_path / "a.json", "--records-to", tmp_path / "a.ndjson")
    told = json.loads(hardlook(*words, "--json").out)
    assert told == {"export": str(tmp_path / "a.json"), "records": 6, "records_to": str(tmp_path / "a.ndjson")}
    document = json.loads((tmp_path / "a.json").read_text())
    assert document["records"]["file"] == "a.ndjson"
    assert len((tmp_path / "a.ndjson").read_text().splitlines()) == 6
    jsonschema.validate(document, json.loads(hardlook("export", "--schema").out))


def test_without_records_there_is_no_key_for_them(hardlook, run):
    assert "records" not in json.loads(hardlook("export", run, "--no-records").out)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "no run folder given"),
        (("gone",), "there is no run here"),
        (("RUN", "--no-records", "--records-to", "x"), "contradict"),
        (("RUN", "--out", "same.json", "--records-to", "same.json"), "the same file"),
        (("RUN", "--out", "."), "--out is a folder"),
        (("RUN", "--records-to", "."), "--records-to is a folder"),
        ((__file__,), "this is a file, not a run folder"),
    ],
)
def test_what_cannot_be_exported_is_told(hardlook, run, words, said):
    answer = hardlook("export", *(run if word == "RUN" else word for word in words))
    assert (answer.code, answer.out) == (1, "")
    assert said in answer.err and "remedy" in answer.err and "Traceback" not in answer.err


@pytest.mark.parametrize("name", ["run.json", "scores.json", "report.html", "records/part.json", "sessions/a"])
def test_a_run_is_never_overwritten_by_its_own_export(hardlook, run, name):
    before = (run / "run.json").read_bytes()
    for flag in ("--out", "--records-to"):
        answer = hardlook("export", run, flag, run / name)
        assert answer.code == 1 and f"{flag} would replace a part of the run" in answer.err
    assert (run / "run.json").read_bytes() == before
    assert hardlook("export", run, "--out", run / "export.json").code == 0


def test_an_unfinished_run_is_exported_with_what_it_lacks(hardlook, tmp_path):
    small_run(tmp_path / "run", scenes=8, batch_size=2, shard=(1, 2))
    answer = hardlook("export", tmp_path / "run")
    document = json.loads(answer.out)
    units = document["units"]
    assert 0 < units["scored"] == document["records"]["count"] < units["planned"] == 8
    assert f"note: {8 - units['scored']} of 8 units have no record (0 failed)" in answer.err
    [left] = [left for left in document["left_out"] if left["what"] == "units not answered yet"]
    assert left["count"] == 8 - units["scored"]
    jsonschema.validate(document, json.loads(hardlook("export", "--schema").out))


def test_failed_units_are_noted(hardlook, tmp_path):
    small_run(tmp_path / "run", scenes=8, model="troubled_segmenters:Raises", max_failures=0.5)
    answer = hardlook("export", tmp_path / "run")
    failed = len(json.loads(answer.out)["failures"])
    assert failed and f"note: {failed} of 8 units have no record ({failed} failed)" in answer.err


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda manifest: manifest["benchmark"].update(version="0"), "made by version 0 of closed-miou"),
        (lambda manifest: manifest["benchmark"].update(name="gone"), "there is no benchmark 'gone'"),
        (lambda manifest: manifest.update(schema="hardlook.run/9"), "this version reads 'hardlook.run/1'"),
        (lambda manifest: manifest["answers"].update(fingerprint="other"), "made with another version"),
    ],
)
def test_runs_of_other_versions_are_refused_and_nothing_is_written(hardlook, run, tmp_path, spoil, said):
    shutil.copytree(run, tmp_path / "run")
    file = tmp_path / "run" / "run.json"
    manifest = parse_checked_json(file.read_text())
    spoil(manifest)
    file.write_text(json.dumps(manifest))
    answer = hardlook("export", tmp_path / "run", "--out", tmp_path / "a.json")
    assert (answer.code, answer.out) == (1, "")
    assert said in answer.err and "Traceback" not in answer.err
    assert not (tmp_path / "a.json").exists()


def test_records_of_another_version_are_refused(hardlook, run, tmp_path):
    shutil.copytree(run, tmp_path / "run")
    for part in (tmp_path / "run" / "records").glob("part-*"):
        replace_part(part, pl.read_parquet(part).drop("cells"))
    answer = hardlook("export", tmp_path / "run")
    assert (answer.code, answer.out) == (1, "")
    assert "the records have no column cells" in answer.err and "run it again" in answer.err
