import json

import jsonschema
import pytest
from small_runs import small_run

from hardlook.contract.scorecard import Scorecard
from hardlook.export.score_rows import scorecard_of


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
    assert scorecard_of(document) == Scorecard.from_json((run / "scores.json").read_text())


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
        ((), "which run?"),
        (("gone",), "there is no run here"),
        (("RUN", "--no-records", "--records-to", "x"), "contradict"),
        (("RUN", "--out", "same.json", "--records-to", "same.json"), "the same file"),
    ],
)
def test_what_cannot_be_exported_is_told(hardlook, run, words, said):
    answer = hardlook("export", *(run if word == "RUN" else word for word in words))
    assert (answer.code, answer.out) == (1, "")
    assert said in answer.err and "remedy" in answer.err and "Traceback" not in answer.err
