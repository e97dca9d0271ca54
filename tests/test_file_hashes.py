from __future__ import annotations

import hashlib
import os
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook import file_hashes
from hardlook.errors import DataError
from hardlook.file_hashes import Algorithm, default_cache_file, group_equal_hashes, hash_files

LONG_AGO = 1_600_000_000


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "hashes.sqlite"


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files whose content was read."""
    names: list[str] = []
    whole = file_hashes.hash_file

    def counted(path: Path, algorithm: Algorithm) -> str:
        names.append(path.name)
        return whole(path, algorithm)

    monkeypatch.setattr(file_hashes, "hash_file", counted)
    return names


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three seconds have passed since files were written: their change times cannot be set."""
    now = time.time_ns
    monkeypatch.setattr(file_hashes.time, "time_ns", lambda: now() + 3_000_000_000)


def write(folder: Path, name: str, text: str, changed: float = LONG_AGO) -> Path:
    path = folder / name
    path.write_text(text)
    os.utime(path, (changed, changed))
    return path


@pytest.mark.usefixtures("later")
def test_hashes_are_sha256_in_order_and_read_once(tmp_path: Path, cache: Path, read: list[str]) -> None:
    paths = [write(tmp_path, f"{number}", f"text {number % 7}") for number in range(20)]
    expected = tuple(hashlib.sha256(f"text {number % 7}".encode()).hexdigest() for number in range(20))
    assert hash_files(paths, cache=cache) == expected
    assert sorted(read) == sorted(path.name for path in paths)
    read.clear()
    assert hash_files(paths[::-1], cache=cache) == expected[::-1]
    assert hash_files([paths[3], paths[3]], cache=cache) == (expected[3], expected[3])
    assert read == []


@pytest.mark.usefixtures("later")
def test_changed_files_are_read_again(tmp_path: Path, cache: Path, read: list[str]) -> None:
    paths = [write(tmp_path, name, "abc") for name in ("same", "longer", "later")]
    hash_files(paths, cache=cache)
    read.clear()
    write(tmp_path, "longer", "abcd")
    write(tmp_path, "later", "abx", LONG_AGO + 1)
    found = hash_files(paths, cache=cache)
    assert sorted(read) == ["later", "longer"]
    assert found == tuple(hashlib.sha256(text).hexdigest() for text in (b"abc", b"abcd", b"abx"))


def test_a_file_changed_just_now_is_not_cached(tmp_path: Path, cache: Path, read: list[str]) -> None:
    path = tmp_path / "new"
    path.write_text("one")
    changed = path.stat().st_mtime_ns
    hash_files([path], cache=cache)
    path.write_text("two")
    os.utime(path, ns=(changed, changed))
    assert hash_files([path], cache=cache) == (hashlib.sha256(b"two").hexdigest(),)
    assert read == ["new", "new"]


MIDDLE = 100_000


@pytest.mark.parametrize("algorithm", ["sha256", "xxh3"])
@pytest.mark.usefixtures("later")
def test_a_middle_byte_changed_behind_an_old_time_is_seen(tmp_path: Path, cache: Path, algorithm: Algorithm) -> None:
    path = tmp_path / "prediction.npy"
    path.write_bytes(bytes(2 * MIDDLE))
    before, times = hash_files([path], cache=cache, algorithm=algorithm), path.stat()
    with path.open("r+b") as stream:
        stream.seek(MIDDLE)
        stream.write(b"1")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert path.stat().st_mtime_ns == times.st_mtime_ns and path.stat().st_size == times.st_size
    assert hash_files([path], cache=cache, algorithm=algorithm) != before


@pytest.mark.usefixtures("later")
def test_a_file_replaced_by_another_of_equal_size_and_time_is_seen(tmp_path: Path, cache: Path) -> None:
    path, other = write(tmp_path, "a", "one"), write(tmp_path, "b", "two")
    hash_files([path], cache=cache)
    other.replace(path)
    assert hash_files([path], cache=cache) == (hashlib.sha256(b"two").hexdigest(),)


@pytest.mark.usefixtures("later")
def test_a_file_that_changes_while_it_is_read_is_not_cached(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, whole = write(tmp_path, "a", "one"), file_hashes.hash_file

    def hash_then_change(read: Path, algorithm: Algorithm) -> str:
        value = whole(read, algorithm)
        write(tmp_path, "a", "two")
        return value

    monkeypatch.setattr(file_hashes, "hash_file", hash_then_change)
    assert hash_files([path], cache=cache) == (hashlib.sha256(b"one").hexdigest(),)
    monkeypatch.setattr(file_hashes, "hash_file", whole)
    assert hash_files([path], cache=cache) == (hashlib.sha256(b"two").hexdigest(),)


@pytest.mark.usefixtures("later")
def test_without_the_cache_every_file_is_read(tmp_path: Path, cache: Path, read: list[str]) -> None:
    path = write(tmp_path, "a", "abc")
    for _ in range(2):
        hash_files([path], cache=cache, use_cache=False)
    assert read == ["a", "a"]


@pytest.mark.usefixtures("later")
def test_each_algorithm_has_its_own_hashes(tmp_path: Path, cache: Path) -> None:
    path = write(tmp_path, "a", "abc")
    expected = (hashlib.sha256(b"abc").hexdigest(),)
    # The hash of "abc" by the reference program: xxhsum -H2.
    fast = ("06b05ab6733a618578af5f94892f3950",)
    for _ in range(2):
        assert hash_files([path], cache=cache) == expected
        assert hash_files([path], cache=cache, algorithm="xxh3") == fast


@pytest.mark.usefixtures("later")
def test_a_damaged_cache_costs_time_only(tmp_path: Path, cache: Path, read: list[str]) -> None:
    path = write(tmp_path, "a", "abc")
    cache.parent.mkdir()
    cache.write_bytes(b"no database" * 1000)
    expected = (hashlib.sha256(b"abc").hexdigest(),)
    assert [hash_files([path], cache=cache) for _ in range(3)] == [expected] * 3
    assert read == ["a"]


@pytest.mark.usefixtures("later")
def test_a_cache_that_cannot_be_written_costs_time_only(tmp_path: Path, read: list[str]) -> None:
    path = write(tmp_path, "a", "abc")
    below_a_file = path / "hashes.sqlite"
    assert hash_files([path], cache=below_a_file) == (hashlib.sha256(b"abc").hexdigest(),)
    assert hash_files([], cache=below_a_file) == ()
    assert read == ["a"]


def test_threads_share_a_cache(tmp_path: Path, cache: Path) -> None:
    paths = [write(tmp_path, f"{number}", f"{number}") for number in range(60)]
    expected = [hashlib.sha256(str(number).encode()).hexdigest() for number in range(60)]
    found: dict[int, tuple[str, ...]] = {}

    def work(start: int) -> None:
        found[start] = hash_files(paths[start : start + 40], cache=cache)

    threads = [threading.Thread(target=work, args=(start,)) for start in (0, 10, 20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {start: list(hashes) for start, hashes in found.items()} == {
        start: expected[start : start + 40] for start in (0, 10, 20)
    }


def test_missing_and_empty_files_are_counted_and_named(tmp_path: Path, cache: Path) -> None:
    good, empty = write(tmp_path, "good", "abc"), write(tmp_path, "empty", "")
    with pytest.raises(DataError, match=r"3 of 4 images cannot be read: absent \(no such file") as caught:
        hash_files([good, tmp_path / "absent", empty, tmp_path], cache=cache)
    assert "empty (empty)" in caught.value.what and "(no file)" in caught.value.what
    assert caught.value.file == str(tmp_path / "absent")
    with pytest.raises(DataError, match="not a file name"):
        hash_files([good, tmp_path / "a\0b"], cache=cache)


def test_the_cache_lies_where_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HARDLOOK_CACHE", str(tmp_path))
    assert default_cache_file().parent == tmp_path
    monkeypatch.delenv("HARDLOOK_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert default_cache_file().parent == tmp_path / "x" / "hardlook"


@given(st.lists(st.sampled_from("abcde"), max_size=12))
def test_groups_of_equal_content(hashes: list[str]) -> None:
    groups = group_equal_hashes(hashes)
    pairs = {(i, j) for group in groups for i in group for j in group if i < j}
    assert pairs == {(i, j) for i in range(len(hashes)) for j in range(i + 1, len(hashes)) if hashes[i] == hashes[j]}
    assert all(len(group) > 1 for group in groups)


@pytest.mark.usefixtures("later")
def test_a_path_that_is_no_unicode_is_hashed_and_leaves_the_cache_of_others_alone(
    tmp_path: Path, cache: Path, read: list[str]
) -> None:
    other = write(tmp_path, "other", "other")
    hash_files([other], cache=cache)
    try:
        odd = write(tmp_path, "caf\udce9", "odd")
    except OSError:
        pytest.skip("names of this file system are Unicode")
    read.clear()
    for _ in range(2):
        expected = tuple(hashlib.sha256(text).hexdigest() for text in (b"odd", b"other"))
        assert hash_files([odd, other], cache=cache) == expected
    assert read == [odd.name, odd.name]
