"""A backup of a study is a study: it can be opened, served and exported, and appears whole or not at all."""

import json
import stat

import pytest
from research_crowd import Person, clicks_study, open_store, take_part

from hardlook.collect.results import study_backup
from hardlook.collect.results.export import export_study
from hardlook.collect.results.study_backup import back_up_study
from hardlook.collect.study.folder import check_complete, open_study
from hardlook.errors import DataError


@pytest.fixture
def taken(tmp_path):
    study = clicks_study(tmp_path / "study", modes=("text",))
    with open_store(study) as store:
        for number in range(3):
            take_part(study, store, Person("pc"), 100.0 * number)
        yield study, store


def test_the_copy_exports_what_the_study_does(taken, tmp_path):
    study, store = taken
    assert back_up_study(study, store, tmp_path / "copy") == store.answers().height == 12
    copy = open_study(tmp_path / "copy")
    check_complete(copy)
    assert (copy.secret, copy.fingerprint, copy.settings) == (study.secret, study.fingerprint, study.settings)
    with open_store(copy) as copied:
        one, two = tmp_path / "one", tmp_path / "two"
        export_study(study, store, one)
        export_study(copy, copied, two)
    for name in ("clicks.csv", "every-click.csv", "participants.csv"):
        assert (one / name).read_bytes() == (two / name).read_bytes()
    # It holds the secret.
    assert stat.S_IMODE((tmp_path / "copy").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "copy" / "secret.key").stat().st_mode) == 0o600


def test_without_pictures(taken, tmp_path):
    study, store = taken
    back_up_study(study, store, tmp_path / "copy", pictures=False)
    names = {path.name for path in (tmp_path / "copy").iterdir()}
    assert names == {"study.json", "tasks.jsonl", "made.json", "secret.key", "answers.sqlite"}
    assert json.loads((tmp_path / "copy" / "study.json").read_text())["title"] == study.settings.title


def test_what_is_there_is_kept(taken, tmp_path):
    (tmp_path / "copy").mkdir()
    with pytest.raises(DataError, match="there is something already"):
        back_up_study(*taken, tmp_path / "copy")


def test_a_backup_that_fails_leaves_nothing(taken, tmp_path, monkeypatch):
    before = sorted(tmp_path.iterdir())
    monkeypatch.setattr(study_backup.shutil, "copytree", lambda *names: (_ for _ in ()).throw(OSError("No space left")))
    with pytest.raises(OSError, match="No space"):
        back_up_study(*taken, tmp_path / "copy")
    assert sorted(tmp_path.iterdir()) == before
