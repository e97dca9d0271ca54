import os
import threading
from pathlib import Path

import pytest

from hardlook.errors import RunError
from hardlook.harness.runs.folder import RunFolder, write_atomically, write_if_absent


def test_write_whole_leaves_the_old_file_when_it_cannot_finish(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_atomically(path, "old")

    def broken(descriptor):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OSError, match="disk full"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("write", [write_atomically, write_if_absent])
def test_a_file_that_cannot_be_made_at_all_says_the_systems_reason(tmp_path, monkeypatch, write):
    def refused(*args, **kwargs):
        raise PermissionError("read-only file system")

    monkeypatch.setattr(Path, "open", refused)
    monkeypatch.setattr(Path, "write_text", refused)
    with pytest.raises(PermissionError, match="read-only"):
        write(tmp_path / "file", "new")
    assert not list(tmp_path.iterdir())


def test_write_once_has_one_winner_among_many(tmp_path):
    wins = []
    threads = [
        threading.Thread(target=lambda n=n: wins.append(write_if_absent(tmp_path / "f", str(n)))) for n in range(16)
    ]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert sum(wins) == 1
    assert [entry.name for entry in tmp_path.iterdir()] == ["f"]


def test_a_folder_with_other_things_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(RunError, match=r"thesis\.tex"):
        RunFolder(tmp_path).check_is_run_folder()


def test_old_runs_are_set_aside_and_never_deleted(tmp_path):
    folder = RunFolder(tmp_path / "run")
    for content in ("first", "second"):
        write_atomically(folder.manifest_path, content)
        folder.set_aside()
    kept = sorted(path.read_text() for path in tmp_path.glob("run.old-*/run.json"))
    assert kept == ["first", "second"]


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "no run here"), ("{", "not valid JSON"), ('{"schema": "x"}', "this version reads")],
)
def test_unreadable_manifests_say_why(tmp_path, content, message):
    if content is not None:
        (tmp_path / "run.json").write_text(content)
    with pytest.raises(RunError, match=message):
        RunFolder(tmp_path).read_manifest()


def test_a_file_in_place_of_a_folder_is_no_run(tmp_path):
    (tmp_path / "scores.json").write_text("{}")
    with pytest.raises(RunError, match="there is no run here"):
        RunFolder(tmp_path / "scores.json").read_manifest()


def test_a_folder_of_runs_names_them(tmp_path):
    for name in ("ridge", "k-nn", "dn4", "cosine"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text("{}")
    with pytest.raises(RunError, match=r"give one of the runs in it: .*cosine, .*dn4, .*k-nn and 1 more"):
        RunFolder(tmp_path).read_manifest()
