"""A run that was started with relative paths is scored from any folder."""

import json

import numpy as np
import pytest

from hardlook.errors import DataError, HardlookError
from hardlook.harness.checked_json import format_checked_json
from hardlook.harness.runs.folder import RunFolder
from hardlook.harness.runs.launch import launch
from hardlook.harness.runs.relative_paths import DIRECTORY, explain_missing_path, locate_options
from hardlook.harness.runs.scoring import score_run
from hardlook.open_vocabulary.closed_miou import CLOSED_MIOU


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run in one folder with relative paths; the test goes on in another."""
    started, elsewhere = tmp_path / "started", tmp_path / "elsewhere"
    for folder in (started, elsewhere):
        folder.mkdir()
    monkeypatch.chdir(started)
    for name in ("gt", "pred"):
        (started / name).mkdir()
        np.save(started / name / "a.npy", np.array([[0, 1], [1, int(name == "pred")]]))
    (started / "labels.csv").write_text("name,synset\ncat,cat.n.01\ndog,dog.n.01\n")
    given = {"gt": "gt", "pred": "pred", "labels": "labels.csv", "resamples": 0, "compare": ()}
    done = launch("open-miou", out=started / "run", given=given)
    monkeypatch.chdir(elsewhere)
    return done.scored


def test_scores_do_not_depend_on_the_current_folder(run, tmp_path):
    again = score_run(run.folder)
    assert again.scorecard.get("open-miou").value == run.scorecard.get("open-miou").value
    assert [unit.id for unit in again.list_units()] == ["a"]
    # A file of that name here is another one.
    (tmp_path / "elsewhere" / "labels.csv").write_text("name,synset\ncat,cat.n.01\ndog,cat.n.01\n")
    assert score_run(run.folder).scorecard.get("open-miou").value == again.scorecard.get("open-miou").value


def test_options_of_a_stored_run_stay_as_they_were_given(run):
    manifest = json.loads(run.folder.manifest_path.read_text())
    assert (manifest["options"]["labels"], manifest["options"]["gt"]) == ("labels.csv", "gt")


def test_an_earlier_run_says_where_to_type_the_command(run, monkeypatch, tmp_path):
    manifest = run.folder.read_manifest()
    del manifest[DIRECTORY]
    run.folder.manifest_path.write_text(format_checked_json(manifest))
    with pytest.raises(HardlookError, match=r"labels\.csv") as caught:
        score_run(RunFolder(run.folder.path))
    assert "relative to the folder in which it was started: type the command there" in caught.value.remedy
    monkeypatch.chdir(tmp_path / "started")
    assert score_run(RunFolder(run.folder.path)).scorecard.get("miou").n == 1


def test_only_relative_paths_that_exist_in_the_runs_folder_become_absolute(tmp_path):
    for name in ("gt", "pred", "voc12", "a"):
        (tmp_path / name).mkdir()
    (tmp_path / "labels.csv").touch()
    options = {
        "gt": "gt",  # a path by its type
        "pred": "absent",
        "labels": "labels.csv",  # a name or a path: it has an ending
        "data": {"voc": "voc12", "coco": str(tmp_path / "a"), "ade": "s3://bucket/voc12"},
        "seed": 3,
        "nosuch": "gt",
    }
    located = locate_options({DIRECTORY: str(tmp_path), "options": options}, CLOSED_MIOU.options)
    assert located == {
        **options,
        "gt": str(tmp_path / "gt"),
        "labels": str(tmp_path / "labels.csv"),
        "data": {**options["data"], "voc": str(tmp_path / "voc12")},
    }
    # A name of labels is no path although there is a folder of that name; one with a folder is.
    for labels, expected in (("a", "a"), ("./a", str(tmp_path / "a")), ("", ""), ("labels.csv\n", "labels.csv\n")):
        given = {DIRECTORY: str(tmp_path), "options": {"labels": labels}}
        assert locate_options(given, CLOSED_MIOU.options) == {"labels": expected}
    assert locate_options({"options": options}, CLOSED_MIOU.options) == options
    assert locate_options({DIRECTORY: None, "options": options}, CLOSED_MIOU.options) == options


def test_only_errors_about_a_relative_path_that_is_not_here_are_explained(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = CLOSED_MIOU.options(gt="gt", pred="pred", labels="labels.csv")
    other = DataError("something else", file="other.csv", remedy="fix it")
    assert explain_missing_path(other, options) is other
    about = "relative to the folder in which it was started: type the command there"
    for error, name in (
        (DataError("no such file", file="labels.csv", unit="u", remedy="give one"), "labels.csv"),
        (DataError("cannot open 'gt'", unit="u"), "gt"),
    ):
        explained = explain_missing_path(error, options)
        assert type(explained) is DataError and explained.remedy == f"the run names {name} {about}"
        assert (explained.what, explained.file, explained.unit) == (error.what, error.file, error.unit)
    (tmp_path / "gt").mkdir()
    here = DataError("cannot open 'gt'")
    assert explain_missing_path(here, options) is here
    data = CLOSED_MIOU.options(data={"voc": "w"})
    assert explain_missing_path(DataError("no images", file="w"), data).remedy == f"the run names w {about}"
