import errno
import os
import threading
from pathlib import Path

import pytest
from mounts import mounted

from hardlook.cli.app import describe_os_error
from hardlook.errors import DamagedFile, RunError
from hardlook.harness.checked_json import format_checked_json
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
