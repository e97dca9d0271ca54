import errno
import os
import shutil
import stat
import threading
from pathlib import Path

import pytest
from mounts import mounted

from hardlook.cli.app import describe_os_error
from hardlook.errors import DamagedFile, RunError
from hardlook.harness.checked_json import format_checked_json
from hardlook.harness.runs.folder import (
    RunFolder,
    find_manifest_problem,
    is_read_only_error,
    make_folder,
    write_atomically,
    write_if_absent,
)


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


def record_syncs(monkeypatch):
    """The paths that are synced, in order, and what lay in their folder at that time."""
    synced, sync = [], os.fsync

    def note(descriptor):
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink())
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    return synced


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are read from /proc")
@pytest.mark.parametrize("write", [write_atomically, write_if_absent])
@pytest.mark.parametrize("links", [True, False])
def test_a_file_and_the_folders_that_name_it_are_synced(tmp_path, monkeypatch, write, links):
    if not links:
        monkeypatch.setattr(os, "link", lambda *given: (_ for _ in ()).throw(OSError("no links here")))
    synced = record_syncs(monkeypatch)
    write(tmp_path / "new" / "inner" / "file", "content")
    content, *_ = [path for path in synced if path.name.startswith(".file.")]
    assert synced.index(tmp_path) < synced.index(tmp_path / "new") < synced.index(content)
    assert synced[-1] == tmp_path / "new" / "inner"
    if write is write_if_absent and not links:
        assert tmp_path / "new" / "inner" / "file" in synced
    assert (tmp_path / "new" / "inner" / "file").read_text() == "content"


def test_a_full_disk_names_the_file_and_the_space(tmp_path):
    with mounted(tmp_path, "-t", "tmpfs", "-o", "size=64k", "tmpfs"):
        write_atomically(tmp_path / "old", "kept")
        with pytest.raises(OSError, match=r"this file needs 1\.0 MB, and its file system has .* free") as caught:
            write_atomically(tmp_path / "new", b"x" * 1_000_000)
        assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(tmp_path / "new"))
        assert [path.name for path in tmp_path.iterdir()] == ["old"]
        shown = describe_os_error(caught.value)
    assert f"file: {tmp_path / 'new'}" in shown and "remedy: free some space" in shown and "needs 1.0 MB" in shown


@pytest.mark.parametrize("number", [errno.EDQUOT, errno.ENOSPC, errno.EFBIG])
def test_a_quota_names_the_file_and_the_space(tmp_path, monkeypatch, number):
    def refuse(descriptor):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match=f"{os.strerror(number)}: this file needs 3 bytes") as caught:
        write_atomically(tmp_path / "file", "new")
    assert caught.value.filename == str(tmp_path / "file")


def refuse_folders(monkeypatch, number):
    """Let the sync of folders fail with an error number, that of files succeed."""
    sync = os.fsync

    def refuse(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(number, os.strerror(number))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", refuse)


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP])
def test_a_file_system_that_cannot_sync_folders_is_no_error(tmp_path, monkeypatch, number):
    refuse_folders(monkeypatch, number)
    write_atomically(tmp_path / "a" / "file", "whole")
    assert write_if_absent(tmp_path / "once", "first")
    assert (tmp_path / "a" / "file").read_text() == "whole"


def test_a_disk_that_fails_to_sync_a_folder_is_one(tmp_path, monkeypatch):
    refuse_folders(monkeypatch, errno.EIO)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)) as caught:
        write_atomically(tmp_path / "file", "new")
    assert caught.value.errno == errno.EIO


def test_a_folder_that_cannot_be_opened_is_not_synced(tmp_path, monkeypatch):
    def refuse(path, flags):
        raise PermissionError("no folders here")

    monkeypatch.setattr(os, "open", refuse)
    make_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()


def test_without_hard_links_the_first_writer_still_wins(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "link", lambda *given: (_ for _ in ()).throw(OSError("no links here")))
    assert write_if_absent(tmp_path / "once", "first") is True
    assert write_if_absent(tmp_path / "once", "second") is False
    assert (tmp_path / "once").read_text() == "first"
    assert [path.name for path in tmp_path.iterdir()] == ["once"]


@pytest.mark.parametrize(
    ("size", "text"), [(3, "3 bytes"), (999, "999 bytes"), (1000, r"1\.0 kB"), (1_570_000, r"1\.6 MB")]
)
def test_the_space_that_a_file_needs_is_said_also_where_the_rest_is_unknown(tmp_path, monkeypatch, size, text):
    def full(descriptor):
        raise OSError(errno.ENOSPC, "")

    def unknown(path):
        raise OSError("no such call")

    monkeypatch.setattr(os, "fsync", full)
    monkeypatch.setattr(shutil, "disk_usage", unknown)
    with pytest.raises(OSError, match=f"no space left: this file needs ({text})(:|$)"):
        write_atomically(tmp_path / "file", b"x" * size)


@pytest.mark.parametrize(
    ("number", "is_read_only"),
    [(errno.EACCES, True), (errno.EPERM, True), (errno.EROFS, True), (errno.ENOSPC, False), (errno.ENOENT, False)],
)
def test_errors_of_read_only_folders_are_known_by_their_number(number, is_read_only):
    assert is_read_only_error(OSError(number, "")) == is_read_only


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "run").write_text("a file")
    with pytest.raises(RunError, match="this is a file, not a folder"):
        RunFolder(tmp_path / "run").check_is_run_folder()
    RunFolder(tmp_path / "absent").check_is_run_folder()


def test_where_a_run_is_set_aside_is_returned(tmp_path):
    folder = RunFolder(tmp_path / "run")
    assert folder.set_aside() is None
    for number in (1, 2):
        folder.path.mkdir()
        assert folder.set_aside() == (tmp_path / f"run.old-{number}").resolve()
        assert not folder.path.exists()


SOUND = {
    "schema": "hardlook.run/1",
    "benchmark": {"name": "b", "version": "1"},
    "model": None,
    "options": {},
    "units": 12,
    "batch_size": 4,
    "answers": {"fingerprint": "f", "parts": {}},
    "created": "now",
}
NOTE = {"what": "images", "count": 1, "why": "unreadable", "examples": []}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({}, ""),
        ({"model": {"name": "m"}}, ""),
        ({"left_out": [NOTE, {**NOTE, "kept": 3}]}, ""),
        ({"answers": {"fingerprint": "f"}}, ""),
        ({"benchmark": "b"}, "cannot be used: benchmark is not an object"),
        ({"options": []}, "cannot be used: options is not an object"),
        ({"units": "12"}, "cannot be used: units is not of type int"),
        ({"units": True}, "cannot be used: units is not of type int"),
        ({"batch_size": 4.0}, "cannot be used: batch_size is not of type int"),
        ({"created": 3}, "cannot be used: created is not of type str"),
        ({"benchmark": {"name": "b"}}, "cannot be used: the benchmark has no name, or no version"),
        ({"benchmark": {"version": "1"}}, "cannot be used: the benchmark has no name, or no version"),
        ({"benchmark": {"name": "b", "version": 1}}, "cannot be used: the benchmark has no name, or no version"),
        ({"model": "m"}, "cannot be used: model is not an object with a name"),
        ({"model": {"args": {}}}, "cannot be used: model is not an object with a name"),
        ({"answers": {"fingerprint": "f", "parts": []}}, "cannot be used: parts of answers is not an object"),
        ({"answers": {}}, "cannot be used: answers has no fingerprint"),
        ({"answers": {"fingerprint": 7}}, "cannot be used: answers has no fingerprint"),
        ({"left_out": {}}, "cannot be used: left_out is not a list of notes"),
        ({"left_out": [NOTE, "more"]}, "cannot be used: left_out is not a list of notes"),
        ({"left_out": [{**NOTE, "other": 1}]}, "cannot be used: left_out is not a list of notes"),
    ],
)
def test_what_makes_a_manifest_unusable_is_said(tmp_path, change, problem):
    manifest = {**SOUND, **change}
    assert find_manifest_problem(manifest) == problem
    folder = RunFolder(tmp_path)
    folder.manifest_path.write_text(format_checked_json(manifest))
    if not problem:
        assert folder.read_manifest() == manifest
        return
    with pytest.raises(DamagedFile, match=problem):
        folder.read_manifest()


@pytest.mark.parametrize("flaw", ["units", "checksum"])
def test_a_changed_manifest_is_damaged_and_says_what_to_do(tmp_path, flaw):
    manifest = {"schema": "hardlook.run/1", "benchmark": {"name": "b", "version": "1"}, "model": None, "options": {},
                "units": 12, "batch_size": 4, "answers": {"fingerprint": "f"}, "created": "now"}  # fmt: skip
    folder = RunFolder(tmp_path)
    text = format_checked_json(manifest)
    folder.manifest_path.write_text(text)
    assert folder.read_manifest() == manifest
    folder.manifest_path.write_text(
        text.replace("12", "13") if flaw == "units" else text.replace("checksum", "bhecksum")
    )
    with pytest.raises(DamagedFile, match="does not match its checksum") as caught:
        folder.read_manifest()
    assert "repeat the `hardlook run`" in caught.value.remedy
    folder.manifest_path.write_text("\n".join(line for line in text.splitlines() if "checksum" not in line))
    assert folder.read_manifest() == manifest, "a line that is deleted by hand leaves valid JSON"


def test_of_many_other_files_four_are_named_and_hidden_ones_do_not_count(tmp_path):
    folder = RunFolder(tmp_path)
    (tmp_path / ".hidden").touch()
    (tmp_path / "records").mkdir()
    folder.check_is_run_folder()
    for name in "febdca":
        (tmp_path / name).touch()
    with pytest.raises(RunError, match=r"the folder holds other files \(a, b, c, d\)"):
        folder.check_is_run_folder()


@pytest.mark.parametrize(("count", "more"), [(0, None), (1, ""), (3, ""), (4, " and 1 more"), (5, " and 2 more")])
def test_of_many_runs_below_three_are_named(tmp_path, count, more):
    for number in range(count):
        (tmp_path / f"run{number}").mkdir()
        (tmp_path / f"run{number}" / "run.json").touch()
    with pytest.raises(RunError) as caught:
        RunFolder(tmp_path).read_manifest()
    named = ", ".join(str(tmp_path / f"run{number}") for number in range(min(count, 3)))
    assert caught.value.remedy == (
        "give the folder of `--out`" if more is None else f"give one of the runs in it: {named}{more}"
    )


def test_damaged_files_are_set_aside_under_numbers_from_one(tmp_path):
    folder = RunFolder(tmp_path)
    for number in (1, 2):
        (tmp_path / "run.json").write_text(f"damaged {number}")
        assert folder.set_file_aside(tmp_path / "run.json") == folder.damaged_path / f"run.json.{number}"
    assert (folder.damaged_path / "run.json.1").read_text() == "damaged 1"
    assert not (tmp_path / "run.json").exists()
