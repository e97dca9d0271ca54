"""A run that was started with relative paths is scored from any folder."""

import json

import numpy as np
import pytest

from hardlook.errors import HardlookError
from hardlook.harness.checked_json import format_checked_json
from hardlook.harness.runs.folder import RunFolder
from hardlook.harness.runs.launch import launch
from hardlook.harness.runs.relative_paths import DIRECTORY
from hardlook.harness.runs.scoring import score_run


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
