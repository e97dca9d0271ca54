"""Data of an address: fetched once, whole, kept equal to the store, and worth the same scores as local files."""

from pathlib import Path

import numpy as np
import pytest
from object_stores import environment
from PIL import Image

import hardlook as hl
from hardlook.cloud.data_copies import fetch_data
from hardlook.cloud.object_store import ObjectStore
from hardlook.errors import DataError


@pytest.fixture
def downloads(monkeypatch):
    """The names of the objects that are downloaded."""
    names, real = [], ObjectStore.download

    def download(self, name, expected, target):
        names.append(name)
        real(self, name, expected, target)

    monkeypatch.setattr(ObjectStore, "download", download)
    return names


def tree(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_is_unchanged_is_not_fetched_again(bucket, downloads):
    for key in ("VOC/a.txt", "VOC/deep/b.txt", "VOC/deep/c d é.txt", "VOCs/other"):
        bucket.put(key, key.encode())
    copy = fetch_data(Path(f"{bucket.address}/VOC"))
    assert tree(copy) == {name: f"VOC/{name}".encode() for name in ("a.txt", "deep/b.txt", "deep/c d é.txt")}
    assert copy.name == "VOC" and len(downloads) == 3
    fetch_data(f"{bucket.address}/VOC")
    assert len(downloads) == 3
    bucket.put("VOC/a.txt", b"VOC/A.TXT")  # of the same size
    bucket.client.delete_object(Bucket=bucket.name, Key="VOC/deep/b.txt")
    (copy / "deep" / "c d é.txt").write_text("changed here")
    (copy / "foreign.txt").write_text("not there")
    fetch_data(f"{bucket.address}/VOC")
    assert sorted(downloads[3:]) == ["a.txt", "deep/c d é.txt"]
    assert tree(copy) == {"a.txt": b"VOC/A.TXT", "deep/c d é.txt": "VOC/deep/c d é.txt".encode()}


def test_a_file_may_become_a_folder_and_back(bucket):
    bucket.put("data/a", b"file")
    copy = fetch_data(f"{bucket.address}/data")
    bucket.client.delete_object(Bucket=bucket.name, Key="data/a")
    bucket.put("data/a/b", b"inner")
    assert tree(fetch_data(f"{bucket.address}/data")) == {"a/b": b"inner"}
    bucket.client.delete_object(Bucket=bucket.name, Key="data/a/b")
    bucket.put("data/a", b"file")
    assert tree(fetch_data(f"{bucket.address}/data")) == {"a": b"file"}
    assert fetch_data(f"{bucket.address}/data/a").read_bytes() == b"file", "an address of one file"
    assert copy.is_dir()


def test_after_an_error_what_was_fetched_counts(bucket, downloads, monkeypatch):
    for number in range(5):
        bucket.put(f"data/{number}", b"x")
    counted = ObjectStore.download

    def download(self, name, expected, target):
        if name == "4":
            raise DataError("the network is down")
        counted(self, name, expected, target)

    monkeypatch.setattr(ObjectStore, "download", download)
    with pytest.raises(DataError, match="down"):
        fetch_data(f"{bucket.address}/data")
    before = list(downloads)
    monkeypatch.setattr(ObjectStore, "download", counted)
    fetch_data(f"{bucket.address}/data")
    assert sorted(downloads) == ["0", "1", "2", "3", "4"] and len(before) == 4


@pytest.mark.parametrize(
    ("keys", "what"),
    [
        ((), "nothing at this address"),
        (("data/a", "data/a/b"), "an object and a folder at once"),
        (("data/../etc",), "cannot be a file"),
        (("data//b",), "cannot be a file"),
    ],
)
def test_what_cannot_be_a_folder_is_refused(bucket, monkeypatch, keys, what):
    listed = {key.removeprefix("data").removeprefix("/"): b"" for key in keys}
    if any(".." in key or "//" in key for key in keys):  # clients tidy such names
        rows = {f"{bucket.name}/{key}": {"size": 1, "ETag": "x"} for key in keys}
        monkeypatch.setattr(type(ObjectStore(bucket.address)._fs), "find", lambda self, path, detail: rows)
    for key in keys if listed else ():
        bucket.put(key, b"x")
    with pytest.raises(DataError, match=what) as caught:
        fetch_data(f"{bucket.address}/data")
    assert caught.value.file.startswith("s3://") and caught.value.remedy


class Threshold:
    """What is bright in red is bright; a little off, so that scores are not all 1."""

    labels = ("background", "bright")

    def segment(self, images):
        return [(image[..., 0] > 100).astype(np.int32) for image in images]


def make_images(folder):
    """Six images with masks of two classes."""
    rng = np.random.default_rng(0)
    for name in ("images", "masks"):
        (folder / name).mkdir(parents=True)
    for number in range(6):
        image = rng.integers(0, 256, (24, 24, 3), dtype=np.uint8)
        Image.fromarray(image).save(folder / "images" / f"{number}.png")
        Image.fromarray((image[..., 0] > 128).astype(np.uint8)).save(folder / "masks" / f"{number}.png")
    (folder / "labels.txt").write_text("background\nbright\n")


def test_a_run_over_an_address_equals_one_over_the_same_files(bucket, tmp_path):
    make_images(tmp_path / "data")
    bucket.upload_folder(tmp_path / "data", "mine")
    local = {"images": tmp_path / "data" / "images", "masks": tmp_path / "data" / "masks"}
    remote = {name: f"{bucket.address}/mine/{name}" for name in local}
    same = {"model": Threshold(), "progress": False, "batch_size": 2, "resamples": 50}
    first = hl.run("closed-miou", data=local, labels=f"{tmp_path}/data/labels.txt", out=tmp_path / "a", **same)
    labels = f"{bucket.address}/mine/labels.txt"
    second = hl.run("closed-miou", data=remote, labels=labels, out=tmp_path / "b", **same)
    # This column names the file: an address where it came from one, never its copy.
    assert second.records["truth"][0] == f"{bucket.address}/mine/masks/0.png"
    assert first.records.drop("truth").equals(second.records.drop("truth"))
    assert first.manifest["answers"] == second.manifest["answers"]
    assert (first.folder / "scores.json").read_bytes() == (second.folder / "scores.json").read_bytes()
    assert second.options["data"] == remote and second.options["labels"] == labels
    # Either can be resumed from the other place; and another machine draws the pictures from the address.
    again = hl.run("closed-miou", data=remote, labels=labels, out=tmp_path / "a", **same)
    assert again.progress.before == 6 and again.progress.answered == 0
    with environment(bucket.env, tmp_path / "other cache"):
        page = hl.load(tmp_path / "b").report()
        assert "data:image" in page.path.read_text() and f"{bucket.address}/mine/images" in page.path.read_text()
        assert hl.load(tmp_path / "b").unit("0").pictures
    assert not Path("s3:").exists()
