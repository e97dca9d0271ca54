"""Datasets of the hub in the caches of `datasets` and `huggingface_hub`, by their names; nothing is downloaded."""

import pytest

from hardlook.data.stored_files.hf_cache import find_dataset, list_cache_folders
from hardlook.errors import DataError

HASH, REVISION = "0" * 40, "1" * 40


@pytest.fixture(autouse=True)
def caches(tmp_path, monkeypatch):
    for name in ("HF_DATASETS_CACHE", "HF_HUB_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    return tmp_path


def touch(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
    return path.parent


def find(name):
    from pathlib import Path

    return find_dataset(Path(name))


def test_folders_follow_the_environment(tmp_path, monkeypatch):
    assert list_cache_folders() == (tmp_path / "datasets", tmp_path / "hub")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "a"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "b"))
    assert list_cache_folders() == (tmp_path / "a", tmp_path / "b")


def test_prepared_datasets(tmp_path):
    folder = touch(tmp_path / "datasets" / "nielsr___cppe_5" / "default" / "0.0.0" / HASH / "cppe_5-train.arrow")
    assert find("nielsr/cppe_5") == folder
    assert find("nielsr/cppe_5/default") == folder
    # Names are spelt as in the cache.
    other = touch(tmp_path / "datasets" / "owner___scene_parse150" / "full" / "1.0.0" / HASH / "a-train.arrow")
    assert find("owner/SceneParse150") == other
    plain = touch(tmp_path / "datasets" / "beans" / "default" / "0.0.0" / HASH / "beans-test.arrow")
    assert find("beans") == find("beans/default") == plain


def test_several_configurations(tmp_path):
    folders = [
        touch(tmp_path / "datasets" / "a___b" / config / "0.0.0" / HASH / "b-train.arrow") for config in ("en", "de")
    ]
    with pytest.raises(DataError, match="several datasets a/b") as caught:
        find("a/b")
    assert all(str(folder) in caught.value.remedy for folder in folders)
    assert find("a/b/en") == folders[0]


def test_snapshots_of_repositories(tmp_path):
    repository = tmp_path / "hub" / "datasets--a--b"
    touch(repository / "snapshots" / HASH / "data" / "train-00000-of-00001.parquet")
    newer = touch(repository / "snapshots" / REVISION / "data" / "train-00000-of-00001.parquet")
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(REVISION)
    assert find("a/b") == newer.parent
    # A reference cannot lead out of the repository.
    (repository / "refs" / "main").write_text("../../../elsewhere")
    with pytest.raises(DataError, match="several datasets"):
        find("a/b")
    config = touch(tmp_path / "hub" / "datasets--a--c" / "snapshots" / HASH / "small" / "train.parquet")
    assert find("a/c") == find("a/c/small") == config


@pytest.mark.parametrize("name", ["a/b", "nowhere", "a/b/c"])
def test_what_is_not_there(name, tmp_path):
    with pytest.raises(DataError, match="no dataset") as caught:
        find(name)
    assert str(tmp_path / "datasets") in str(caught.value) and "load_dataset" in caught.value.remedy


@pytest.mark.parametrize("name", ["../a/b", "/a/b", "a b", "a/b/c/d", "a//../b"])
def test_names_that_are_no_ids(name):
    with pytest.raises(DataError, match="no such file or folder"):
        find(name)


def test_a_path_that_exists_is_itself(tmp_path):
    assert find_dataset(tmp_path) == tmp_path
