"""What a session notes about its machine, and who holds a run."""

import json
import os
import platform
import socket
import sys
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

import hardlook
from hardlook.errors import ChangedRun, DamagedFile, RunError, RunWarning
from hardlook.harness.runs import sessions
from hardlook.harness.runs.folder import RunFolder
from hardlook.harness.runs.record_store import list_parts, write_part
from hardlook.harness.runs.sessions import (
    Session,
    claim_run,
    describe_hardware,
    describe_mixed_code,
    list_sessions,
    list_versions,
)
from hardlook.models.identity import ModelIdentity

MEMORY = Path("/proc/meminfo")


@pytest.mark.skipif(not MEMORY.exists(), reason="the system has no /proc/meminfo")
def test_the_memory_is_what_the_system_says_in_gib():
    kib = next(int(line.split()[1]) for line in MEMORY.read_text().splitlines() if line.startswith("MemTotal:"))
    assert describe_hardware()["memory_gib"] == pytest.approx(kib / 2**20, abs=0.06)


def test_versions_are_those_of_the_libraries_and_absent_ones_are_left_out(monkeypatch):
    found = list_versions()
    assert (found["hardlook"], found["numpy"], found["polars"]) == (
        hardlook.__version__,
        np.__version__,
        pl.__version__,
    )
    assert found["scipy"] == metadata.version("scipy")
    monkeypatch.setattr(sessions, "_VERSIONED", ("no-such-package", "numpy"))
    assert list(list_versions()) == ["python", "hardlook", "numpy"]


@pytest.fixture
def folder(tmp_path):
    return RunFolder(tmp_path)


def test_a_run_is_held_by_one_process_which_the_error_names(folder):
    with claim_run(folder, answers="abc"):
        note = json.loads((folder.path / ".running").read_text())
        assert (note["process"], note["host"], note["answers"]) == (os.getpid(), socket.gethostname(), "abc")
        with pytest.raises(RunError) as caught, claim_run(folder):
            pass
        assert f"process {os.getpid()} on {socket.gethostname()}, since {note['since']}" in str(caught.value)
    # Held by nobody, it can be held again, however often.
    for _ in range(2):
        with claim_run(folder):
            pass


def test_shards_are_held_one_by_one_and_not_beside_the_whole_run(folder):
    with claim_run(folder, (1, 2)), claim_run(folder, (2, 2)):
        for shard in ((1, 2), (2, 2), None):
            with pytest.raises(RunError, match="a run is under way"), claim_run(folder, shard):
                pass
    with claim_run(folder), pytest.raises(RunError, match="a run is under way"), claim_run(folder, (1, 2)):
        pass


def test_of_several_notes_the_error_names_the_process_that_holds_the_run(folder):
    gone = {"process": 4_000_001, "host": "elsewhere", "since": "long ago"}
    with claim_run(folder, (2, 3)):
        for name in (".running", ".running-1-of-3"):
            (folder.path / name).write_text(json.dumps(gone))
        with pytest.raises(RunError) as caught, claim_run(folder):
            pass
    assert f"process {os.getpid()} on" in str(caught.value) and "elsewhere" not in str(caught.value)
    assert "delete" in caught.value.remedy and ".running-2-of-3" in caught.value.remedy


@pytest.mark.parametrize("note", ["", "{", "[1]"])
def test_who_holds_a_run_is_unknown_where_the_note_cannot_be_read(folder, note):
    with claim_run(folder):
        (folder.path / ".running").write_text(note)
        with pytest.raises(RunError, match="process unknown on an unknown machine, since an unknown time"):
            with claim_run(folder):
                pass


def test_sessions_come_from_their_files_or_else_from_the_manifest(folder):
    first, second = Session("inline", id="a"), Session("ray", id="b")
    for one in (second, first):
        one.save(folder)
    stored = [{"id": "b", "engine": "old"}, {"id": "c", "engine": "processes"}, "no session", {"engine": "nameless"}]
    rows = list_sessions(folder, {"sessions": stored})
    assert [(row["id"], row["engine"]) for row in rows] == [("a", "inline"), ("b", "ray"), ("c", "processes")]
    for name in ("b", "d"):
        (folder.sessions_path / f"{name}.json").write_text("{")
    rows = list_sessions(folder, {"sessions": stored})
    assert [(row["id"], row.get("engine"), row.get("outcome")) for row in rows] == [
        ("a", "inline", "running"),
        ("b", "old", None),
        ("c", "processes", None),
        ("d", None, "unreadable"),
    ]
    assert [row["id"] for row in list_sessions(folder, {"sessions": "damaged"})] == ["a", "b", "d"]


def test_code_is_mixed_where_sessions_of_these_records_ran_other_code():
    def session(code="aaa", model_code="mmm", answers="x", **more):
        return {"code": code, "model_code": model_code, "answers": answers, "answered": 1, **more}

    both = [session(), session("bbb", "nnn")]
    sentence = "its records were made by different versions of the code of "
    assert describe_mixed_code([session(), session("bbb")], "x") == f"{sentence}hardlook (aaa, bbb)"
    assert describe_mixed_code([session(), session("aaa", "nnn")], "x") == f"{sentence}the model (mmm, nnn)"
    assert describe_mixed_code(both, "x") == f"{sentence}hardlook (aaa, bbb) and of the model (mmm, nnn)"
    assert describe_mixed_code([session(), session()], "x") == ""
    # Other records, and sessions that made none; one under way is about to.
    assert describe_mixed_code([session(), session("bbb", answers="y")], "x") == ""
    assert describe_mixed_code([session(), session("bbb", answered=0)], "x") == ""
    running = session("bbb", answered=0, outcome="running")
    assert describe_mixed_code([session(), running], "x") == f"{sentence}hardlook (aaa, bbb)"


def test_a_new_session_has_counted_nothing_and_is_running(folder):
    session = Session("inline")
    counts = (session.answered, session.failed, session.split_batches, session.halved_batches, session.batch_size)
    assert (counts, session.threads, session.outcome, session.ended) == ((0, 0, 0, 0, 0), 1, "running", "")
    session.save(folder)
    assert json.loads((folder.sessions_path / f"{session.id}.json").read_text())["failed"] == 0


def test_without_a_readable_note_the_error_names_the_first_file_to_delete(folder):
    with claim_run(folder, (1, 3)), claim_run(folder, (2, 3)):
        for path in folder.path.glob(".running*"):
            path.write_text("{")
        with pytest.raises(RunError, match="process unknown") as caught, claim_run(folder):
            pass
    assert caught.value.remedy.endswith(f"delete {folder.path / '.running'}")


def test_a_note_that_cannot_be_opened_belongs_to_nobody(folder, monkeypatch):
    """On a file system that has become read-only, say: the error names a process that is known to hold the run."""
    unopened, open_path = folder.path / ".running-1-of-3", Path.open
    unopened.write_text(json.dumps({"process": 4_000_001, "host": "elsewhere", "since": "long ago", "answers": "x"}))

    def refuse(path, mode="r", *more, **named):
        if path == unopened and mode == "a+":
            raise OSError(30, "Read-only file system")
        return open_path(path, mode, *more, **named)

    monkeypatch.setattr(Path, "open", refuse)
    with claim_run(folder, (2, 3)), pytest.raises(RunError) as caught, claim_run(folder):
        pass
    assert f"process {os.getpid()} on" in str(caught.value) and "elsewhere" not in str(caught.value)


def test_a_file_system_without_locks_lets_everybody_in(folder, monkeypatch):
    for error, is_free in ((BlockingIOError(), False), (PermissionError(), False), (OSError(38, "no locks"), True)):

        def refuse(stream, operation, error=error):
            raise error

        monkeypatch.setattr("fcntl.flock", refuse)
        with (folder.path / "claim").open("a+") as stream:
            assert sessions._lock(stream, shared=True) is sessions._lock(stream, shared=False) is is_free


def test_claims_of_other_records_count_while_their_process_lives(folder):
    (folder.path / ".running-9-of-9").write_text(json.dumps({"answers": "theirs"}))
    assert sessions._list_other_claims(folder, "mine") == []
    with claim_run(folder, (1, 3), "theirs"), claim_run(folder, (2, 3), "mine"):
        assert sessions._list_other_claims(folder, "mine") == [folder.path / ".running-1-of-3"]
        assert sessions._list_other_claims(folder, "theirs") == [folder.path / ".running-2-of-3"]
        (folder.path / ".running-1-of-3").write_text("{}")
        assert sessions._list_other_claims(folder, "mine") == []


@pytest.mark.parametrize(("available", "gpu"), [(True, {"gpu": "H100"}), (False, {})])
def test_the_gpu_is_named_where_torch_is_loaded_and_has_one(monkeypatch, available, gpu):
    cuda = SimpleNamespace(is_available=lambda: available, get_device_name=lambda: "H100")
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    found = describe_hardware()
    assert {name: value for name, value in found.items() if name == "gpu"} == gpu
    assert (found["cores"], found["system"], found["machine"]) == (
        os.cpu_count(),
        platform.system(),
        platform.machine(),
    )
    monkeypatch.setitem(sys.modules, "torch", None)
    assert "gpu" not in describe_hardware()


def test_only_parts_without_a_record_of_this_run_are_set_aside(folder):
    for units, answers in ((["a", "b"], ["mine", "theirs"]), (["c"], ["theirs"]), (["d"], ["mine"])):
        write_part(pl.DataFrame({"unit": units, "answers": answers}), folder.records_path)
    with pytest.warns(RunWarning, match="1 records of another run were moved to"):
        sessions.set_other_records_aside(folder, "mine")
    kept = pl.concat([pl.read_parquet(part) for part in list_parts(folder.records_path)])
    assert sorted(kept["unit"]) == ["a", "b", "d"] and len(list(folder.damaged_path.iterdir())) == 1


def test_a_damaged_manifest_is_set_aside_unless_the_records_are_of_another_run(folder):
    def damage():
        folder.manifest_path.write_text("{")
        return DamagedFile("run.json is damaged", file=folder.manifest_path)

    with pytest.warns(RunWarning, match="run.json is damaged; it was moved to"):
        sessions._set_damaged_manifest_aside(folder, "mine", damage())
    assert not folder.manifest_path.exists()
    write_part(pl.DataFrame({"unit": ["a"], "answers": ["theirs"]}), folder.records_path)
    with pytest.raises(ChangedRun, match="and the records of this folder are of another model"):
        sessions._set_damaged_manifest_aside(folder, "mine", damage())
    assert folder.manifest_path.exists()
    with pytest.warns(RunWarning, match="it was moved to"):
        sessions._set_damaged_manifest_aside(folder, "theirs", damage())


def test_a_model_that_was_an_object_is_described_so():
    identity = ModelIdentity("net", "semantic-segmenter", {"a": 1}, "xxh3:0")
    plain = sessions._describe_model(SimpleNamespace(identity=identity, model_object=""))
    assert plain["name"] == "net" and "object" not in plain
    given = sessions._describe_model(SimpleNamespace(identity=identity, model_object="an object of Net"))
    assert given == {**plain, "object": "an object of Net"}
    assert sessions._describe_model(SimpleNamespace(identity=None, model_object="")) is None
