"""The same guarantees on fsspec's store in memory, which needs no extra: what holds there rests on no detail of S3."""

import uuid

import pytest
from killed_uploads import Gone, ending_at, raise_gone, run
from object_stores import environment

import hardlook as hl
from hardlook.cloud import leases
from hardlook.cloud.data_copies import fetch_data
from hardlook.cloud.object_store import ObjectStore

pytest.importorskip("fsspec")


@pytest.fixture
def address(tmp_path):
    with environment({}, tmp_path / "cache"):
        yield f"memory://{uuid.uuid4().hex[:8]}"


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return run(tmp_path_factory.mktemp("undisturbed") / "run")


def test_a_run_equals_a_local_one_and_shards_make_it_too(address, undisturbed, tmp_path):
    run(f"{address}/whole")
    for number in (1, 2):
        with environment({}, tmp_path / f"{number}"):
            run(f"{address}/shared", shard=(number, 2))
    with environment({}, tmp_path / "reader"):
        for name in ("whole", "shared"):
            found = hl.load(f"{address}/{name}")
            assert found.records.equals(undisturbed.records)
            assert (found.folder / "scores.json").read_bytes() == (undisturbed.folder / "scores.json").read_bytes()
        assert len(hl.runs(address)) == 2


def test_a_shard_sees_what_another_did_while_it_worked(address, undisturbed, tmp_path, monkeypatch):
    create, others = ObjectStore.create, []

    def create_after_the_other(self, name, content):
        if name.startswith("part-") and not others:
            others.append("running")
            with environment({}, tmp_path / "other"):
                others[0] = run(f"{address}/run", shard=(1, 2))
        return create(self, name, content)

    monkeypatch.setattr(ObjectStore, "create", create_after_the_other)
    last = run(f"{address}/run", shard=(2, 2))
    assert others[0].progress.open and not last.progress.open
    assert last.records.equals(undisturbed.records)


@pytest.mark.parametrize(("place", "before"), [(4, 0), (-12, 2), (12, 4), (20, 6)])
def test_a_run_that_ends_at_a_change_resumes_to_the_same_bits(address, undisturbed, tmp_path, place, before):
    with environment({}, tmp_path / "first"), ending_at(place, raise_gone), pytest.raises(Gone):
        run(f"{address}/run")
    leases._owned.clear()  # as in a new process
    done = run(f"{address}/run")
    assert (done.progress.before, done.progress.answered) == (before, 6 - before)
    assert done.records.equals(undisturbed.records)
    assert (done.folder / "scores.json").read_bytes() == (undisturbed.folder / "scores.json").read_bytes()


def test_data_follow_the_store(address):
    store = ObjectStore(f"{address}/data")
    store.write("a/b.txt", b"one")
    store.write("c.txt", b"two")
    copy = fetch_data(f"{address}/data")
    assert {path.name: path.read_bytes() for path in copy.rglob("*.txt")} == {"b.txt": b"one", "c.txt": b"two"}
    store.write("c.txt", b"new")
    store.delete("a/b.txt")
    assert {path.name: path.read_bytes() for path in fetch_data(f"{address}/data").rglob("*.txt")} == {"c.txt": b"new"}
