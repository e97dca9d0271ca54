"""Runs at an address: the same records and scores as in a local folder, claims, shards, and every command."""

import json
import threading
from pathlib import Path

import pytest
from object_stores import environment

import hardlook as hl
from hardlook.cloud import object_store, run_folders
from hardlook.cloud.leases import Lease, LostClaim
from hardlook.cloud.object_store import ObjectStore, StoreError
from hardlook.errors import ChangedRun, OptionError, RunError
from hardlook.harness.runs.folder import RunFolder, write_atomically

ELSEWHERE = {"host": "elsewhere", "machine": "elsewhere", "process": 7}

SETTINGS = {"model": "planted-segmenter", "scenes": 8, "resamples": 50, "batch_size": 2, "progress": False}


def run(out, stranger=0.3, **more):
    return hl.run("closed-miou", out=out, **{**SETTINGS, "model_args": {"stranger": stranger}, "report": False, **more})


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    return run(tmp_path_factory.mktemp("local") / "run")


@pytest.fixture
def parts_at_once(monkeypatch):
    """A part for each batch, as in runs that take longer."""
    monkeypatch.setattr("hardlook.harness.runs.record_store.FLUSH_SECONDS", 0.0)


def assert_same(one, other):
    assert one.records.equals(other.records)
    assert (one.folder / "scores.json").read_bytes() == (other.folder / "scores.json").read_bytes()


def test_a_run_at_an_address_equals_a_local_one_on_every_machine(bucket, local, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    address = f"{bucket.address}/runs/first"
    made = run(address, report=True)
    assert_same(made, local)
    assert repr(made).startswith(f"Run of planted-segmenter on closed-miou in {address}\n")
    names = {key.removeprefix("runs/first/").split("/")[0] for key in bucket.keys("runs/first/")}
    assert names == {"run.json", "records", "failures.parquet", "sessions", "scores.json", "report.html"}
    with environment(bucket.env, tmp_path / "another machine"):
        assert_same(hl.load(address), local)
        assert [one.model for one in hl.runs(bucket.address)] == ["planted-segmenter"]
        again = run(address)
        assert (again.progress.answered, again.progress.before) == (0, 8)
    assert len(json.loads(bucket.read("runs/first/run.json"))["sessions"]) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["another machine", "cache"], "no folder named s3:"


def test_another_model_is_refused_and_new_sets_the_old_run_aside(bucket):
    address = f"{bucket.address}/run"
    run(address)
    records = {key: bucket.read(key) for key in bucket.keys("run/records")}
    with pytest.raises(ChangedRun, match="other units or answers") as caught:
        run(address, stranger=0.1)
    assert f"--out {address} --new" in caught.value.remedy
    run(address, stranger=0.1, new=True)
    assert {key.replace(".old-1", ""): bucket.read(key) for key in bucket.keys("run.old-1/records")} == records
    run(address, new=True)
    assert (
        bucket.keys("run.old-2/run.json") and {key: bucket.read(key) for key in bucket.keys("run/records")} == records
    )


def test_an_address_with_other_objects_is_refused_and_nothing_is_fetched(bucket, tmp_path):
    bucket.put("VOC/JPEGImages/a.jpg", b"x")
    with pytest.raises(RunError, match=r"the folder holds other files \(JPEGImages\)"):
        run(f"{bucket.address}/VOC")
    with pytest.raises(RunError, match="there is no run here"):
        hl.load(f"{bucket.address}/VOC")
    assert not list((tmp_path / "cache").rglob("*.jpg")) and bucket.keys(hidden=True) == ["VOC/JPEGImages/a.jpg"]


def test_unknown_kinds_and_missing_buckets_make_no_folder(tmp_path, monkeypatch, bucket):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OptionError, match="s4:// is not a known kind"):
        run("s4://bucket/run")
    with pytest.raises(StoreError, match="there is no bucket"):
        run("s3://no-such-bucket/run")
    for path in (Path("s3://bucket/a.html"), Path("s3://bucket/deep/b.html")):
        with pytest.raises(RunError, match="a local path was expected"):
            write_atomically(path, "x")
    assert not Path("s3:").exists() and not Path("s4:").exists()


def test_a_second_process_is_told_who_works_there(bucket, monkeypatch):
    monkeypatch.setenv("HARDLOOK_LEASE", "1")
    address = f"{bucket.address}/run"
    holder = Lease(ObjectStore(address), "run", ELSEWHERE)
    holder.acquire()
    with holder.hold():
        for shard in (None, (1, 2)):
            with pytest.raises(RunError, match="under way in this folder: process 7 on elsewhere") as caught:
                run(address, shard=shard)
            assert f"delete {address}/.claims/run/" in caught.value.remedy
    assert run(address).progress.answered == 8


def test_a_whole_run_waits_for_shards_of_other_machines(bucket, monkeypatch):
    monkeypatch.setenv("HARDLOOK_LEASE", "1")
    address = f"{bucket.address}/run"
    other = Lease(ObjectStore(address), "shard-2-of-2", ELSEWHERE)
    other.acquire()
    with other.hold():
        with pytest.raises(RunError, match="process 7 on elsewhere"):
            run(address)
        assert run(address, shard=(1, 2)).progress.open == 4
    assert run(address).progress.answered == 4


def test_shards_of_several_machines_make_one_run(bucket, local, tmp_path):
    address, done = f"{bucket.address}/run", []
    for number in (1, 2, 3):
        with environment(bucket.env, tmp_path / f"machine {number}"):
            done.append(run(address, shard=(number, 3)))
    assert [one.progress.open > 0 for one in done] == [True, True, False]
    assert_same(done[-1], local)
    assert len(done[-1].manifest["sessions"]) == 3


def test_sessions_of_processes_that_end_together_are_all_in_run_json(bucket, tmp_path):
    address = f"{bucket.address}/run"
    run(address)
    folder = run_folders.open_run(address)
    threads = [threading.Thread(target=_end_session, args=(folder, f"s{number}")) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {"s0", "s1", "s2"} <= {row["id"] for row in json.loads(bucket.read("run/run.json"))["sessions"]}


def _end_session(folder, name):
    from hardlook.harness.runs.sessions import Session

    Session("inline", id=name).end(RunFolder(folder), "finished")


def test_one_whose_claim_was_taken_over_uploads_nothing_more(bucket, monkeypatch, parts_at_once, tmp_path):
    address = f"{bucket.address}/run"
    real, parts = ObjectStore.create, []

    def create(self, name, content):
        made = real(self, name, content)
        if name.startswith("part-"):
            parts.append(name)
            for lease in (one for leases in run_folders._held.values() for one in leases):
                other = Lease(lease.store, "run", ELSEWHERE)
                assert other._make(lease._number + 1)
                lease.renew()
        return made

    monkeypatch.setattr(ObjectStore, "create", create)
    with pytest.raises(LostClaim, match="process 7 on elsewhere took it over"):
        run(address)
    assert len(parts) == 1 and len(bucket.keys("run/records")) == 1


def test_where_the_store_goes_away_the_run_ends_with_one_sentence_and_resumes(
    bucket, local, monkeypatch, parts_at_once, tmp_path
):
    address = f"{bucket.address}/run"
    monkeypatch.setattr(object_store, "RETRY_SECONDS", ())
    file_system = ObjectStore(address)._fs
    real, count = file_system.pipe_file, []

    def pipe_file(path, value, **more):
        count.append(path)
        if sum("/records/" in one for one in count) > 2:
            raise TimeoutError("timed out")
        return real(path, value, **more)

    with monkeypatch.context() as patch:
        patch.setattr(file_system, "pipe_file", pipe_file)
        with pytest.raises(StoreError, match=r"does not answer \(TimeoutError: timed out\)"):
            run(address)
    stored = bucket.keys("run/records")
    assert len(stored) == 2
    with environment(bucket.env, tmp_path / "another machine"):
        done = run(address)
    assert (done.progress.before, done.progress.answered) == (4, 4)
    assert_same(done, local)
    assert set(stored) < set(bucket.keys("run/records"))


def test_a_damaged_part_is_found_and_repaired_at_the_address(bucket, local, hardlook):
    address = f"{bucket.address}/run"
    run(address)
    (part,) = bucket.keys("run/records")
    bucket.put(part, bucket.read(part)[:-9] + b"123456789")
    assert hardlook("verify", address).code == 1, "also where the copy here is whole"
    with environment(bucket.env, Path(run_folders.locate_run(address)).parents[4] / "another"):
        found = hardlook("verify", address)
        assert found.code == 1 and f"{bucket.address}/{part}: " in found.out
        assert f"hardlook verify {address} --repair" in found.out
        assert hardlook("verify", address, "--repair", "-q").code == 0
        assert_same(hl.load(address), local)
    assert bucket.keys("run/damaged") and bucket.keys("run/records") == [part]


def test_every_command_takes_addresses(bucket, hardlook, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first, second = f"{bucket.address}/runs/first", f"{bucket.address}/runs/second"
    words = ("--model", "planted-segmenter", "--scenes", "8", "--resamples", "50", "-q")
    done = hardlook("run", "closed-miou", *words, "--model-arg", "stranger=.3", "--out", first)
    assert f"report: {first}/report.html" in done.out and "cache" not in done.out
    hardlook("run", "closed-miou", *words, "--out", second)
    bucket.client.delete_object(Bucket=bucket.name, Key="runs/first/scores.json")
    bucket.client.delete_object(Bucket=bucket.name, Key="runs/first/report.html")
    hardlook("score", first)
    assert {"runs/first/scores.json", "runs/first/report.html"} <= set(bucket.keys())
    assert hardlook("report", first).out.strip() == f"{first}/report.html"
    assert (
        "2 models on 8 shared units" in hardlook("compare", first, second, "--out", "comparison", "--swaps", "99").out
    )
    hardlook("gate", second, first)
    hardlook("export", first, "--out", "first.json")
    assert "mIoU" in hardlook("table", first, "scores").out
    assert "no damage" in hardlook("verify", first, second).out
    board = hardlook("leaderboard", f"{bucket.address}/runs", "--out", "board")
    assert "planted-segmenter" in board.out
    hardlook("leaderboard", f"{bucket.address}/runs")
    assert "runs/leaderboard.html" in bucket.keys()
    for words in (
        ("report", first, "--out", f"{bucket.address}/page.html"),
        ("export", first, "--out", "s3://b/x.json"),
    ):
        assert "a local path was expected" in hardlook(*words).err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["board", "cache", "comparison", "first.json"]
