"""Objects of an S3: names, conditional PUT, whole downloads, and errors in one sentence."""

import threading
from pathlib import Path

import pytest

from hardlook.cloud import object_store
from hardlook.cloud.object_store import ObjectStore, StoredObject, StoreError
from hardlook.errors import DataError, MissingExtra


def test_names_are_relative_and_neighbours_are_not_listed(bucket):
    for key in ("run/a", "run/b/c", "run2/a", "run.old-1/a", "run/folder/"):
        bucket.put(key, b"abc")
    listed = ObjectStore(f"{bucket.address}/run").list()
    assert set(listed) == {"a", "b/c"}
    assert listed["a"] == StoredObject(3, "900150983cd24fb0d6963f7d28e17f72") and listed["a"].md5
    assert ObjectStore(f"{bucket.address}/run/a").list() == {"": listed["a"]}
    assert ObjectStore(f"{bucket.address}/nothing").list() == {}
    bucket.put("run/new", b"")
    assert "new" in ObjectStore(f"{bucket.address}/run").list(), "listings are not cached"


def test_of_many_that_create_an_object_one_succeeds(bucket):
    store, winners, start = ObjectStore(bucket.address), [], threading.Barrier(6)

    def create(number):
        start.wait()
        if store.create("one", b"%d" % number):
            winners.append(number)

    threads = [threading.Thread(target=create, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(winners) == 1 and store.read("one") == b"%d" % winners[0]


def test_creating_the_same_again_is_no_conflict(bucket):
    store = ObjectStore(bucket.address)
    assert store.create("one", b"1") and store.create("one", b"1"), "the answer to the first may have been lost"
    assert not store.create("one", b"2") and store.read("one") == b"1"
    store.delete("one")
    store.delete("one")
    assert store.read("one") is None


def test_a_download_has_the_bytes_of_the_listing_or_is_none(bucket, tmp_path):
    bucket.put("a", b"abc")
    store = ObjectStore(bucket.address)
    expected = store.list()["a"]
    store.download("a", expected, tmp_path / "x" / "a")
    assert (tmp_path / "x" / "a").read_bytes() == b"abc"
    bucket.put("a", b"longer")
    with pytest.raises(DataError, match="changed while it was read") as caught:
        store.download("a", expected, tmp_path / "y" / "a")
    assert caught.value.file == f"{bucket.address}/a" and not list((tmp_path / "y").iterdir())
    # The ETag of an object that is encrypted with a key of its own is not the MD5 of its content.
    store.download("a", StoredObject(6, "0" * 32), tmp_path / "y" / "a")
    assert (tmp_path / "y" / "a").read_bytes() == b"longer"


def test_a_download_that_differs_each_time_is_an_error(bucket, tmp_path, monkeypatch):
    bucket.put("a", b"abc")
    store = ObjectStore(bucket.address)
    contents = iter([b"abd", b"abe", b"abf"])
    monkeypatch.setattr(store._fs, "get_file", lambda key, path: Path(path).write_bytes(next(contents)))
    with pytest.raises(DataError, match="other bytes than its listing"):
        store.download("a", store.list()["a"], tmp_path / "a")


def test_a_bucket_that_is_not_there_is_named(bucket):
    for ask in (lambda store: store.list(), lambda store: store.write("a", b""), lambda store: store.create("a", b"")):
        with pytest.raises(StoreError, match="there is no bucket 'no-such-bucket'") as caught:
            ask(ObjectStore("s3://no-such-bucket/run"))
        assert caught.value.remedy and caught.value.file.startswith("s3://no-such-bucket/run")


@pytest.fixture
def new_connection():
    """Connections are kept; this test has its own."""
    object_store._open_file_system.cache_clear()
    yield
    object_store._open_file_system.cache_clear()


def test_without_credentials_the_error_says_how_to_give_them(bucket, monkeypatch, tmp_path, new_connection):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    with pytest.raises(StoreError, match="no credentials") as caught:
        ObjectStore(bucket.address).write("a", b"")
    assert "AWS_ACCESS_KEY_ID" in caught.value.remedy


def test_a_store_that_does_not_answer_is_asked_a_few_times(bucket, monkeypatch, new_connection):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setattr(object_store, "RETRY_SECONDS", (0.01, 0.01))
    with pytest.raises(StoreError, match="does not answer") as caught:
        ObjectStore(bucket.address).list()
    assert "AWS_ENDPOINT_URL" in caught.value.remedy


def test_a_passing_error_is_waited_out_and_a_refusal_is_not(bucket, monkeypatch):
    monkeypatch.setattr(object_store, "RETRY_SECONDS", (0.0, 0.0))
    store, calls = ObjectStore(bucket.address), []

    def pipe_file(key, content, mode="overwrite"):
        calls.append(key)
        if len(calls) < 3:
            raise OSError(16, "Please reduce your request rate.")

    monkeypatch.setattr(store._fs, "pipe_file", pipe_file)
    store.write("a", b"1")
    assert len(calls) == 3

    def refuse(key, content, mode="overwrite"):
        calls.append(key)
        raise PermissionError("Access Denied")

    monkeypatch.setattr(store._fs, "pipe_file", refuse)
    with pytest.raises(StoreError, match="refuses access"):
        store.write("a", b"1")
    assert len(calls) == 4


def test_missing_packages_are_named(monkeypatch, new_connection):
    monkeypatch.setitem(__import__("sys").modules, "s3fs", None)
    monkeypatch.setattr(object_store, "is_installed", lambda name: False)
    with pytest.raises(MissingExtra, match="s3fs") as caught:
        ObjectStore("s3://bucket/run")
    assert "hardlook[cloud]" in caught.value.remedy
    with pytest.raises(MissingExtra, match="gcsfs"):
        ObjectStore("gs://bucket/run")
