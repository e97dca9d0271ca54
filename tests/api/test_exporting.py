"""`Run.export` writes what `hardlook export` does."""

import io
import json

import pytest
from small_runs import small_run

import hardlook as hl
from hardlook.errors import OptionError, RunError


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("export") / "run"
    small_run(out, scenes=4)
    return hl.load(out)


def test_the_document_equals_that_of_the_command(hardlook, run, tmp_path):
    assert run.export(tmp_path / "a.json") == 4
    assert (tmp_path / "a.json").read_text() == hardlook("export", run.folder).out
    stream = io.StringIO()
    run.export(stream, records=False)
    assert stream.getvalue() == hardlook("export", run.folder, "--no-records").out
    run.export(tmp_path / "b.json", records_to=tmp_path / "b.ndjson")
    assert len((tmp_path / "b.ndjson").read_text().splitlines()) == 4
    assert json.loads((tmp_path / "b.json").read_text())["records"]["file"] == "b.ndjson"


def test_what_would_destroy_something_is_refused_before_anything_is_written(run, tmp_path):
    before = run.folder.joinpath("run.json").read_bytes()
    for out, more, said in (
        (run.folder / "run.json", {}, "would replace a part of the run"),
        (tmp_path, {}, "is a folder"),
        (tmp_path / "a", {"records_to": tmp_path / "a"}, "the same file"),
        (tmp_path / "a", {"records_to": tmp_path / "b", "records": False}, "contradict"),
        ("s3://bucket/a.json", {}, "address"),
    ):
        with pytest.raises((OptionError, RunError), match=said):
            run.export(out, **more)
    assert run.folder.joinpath("run.json").read_bytes() == before and list(tmp_path.iterdir()) == []
