import os

import numpy as np
import pytest

from hardlook import fingerprints

SIZE = 200_000


@pytest.fixture
def data(tmp_path):
    root = tmp_path / "data"
    (root / "images").mkdir(parents=True)
    (root / "images" / "a.bin").write_bytes(bytes(SIZE))
    (root / "list.txt").write_text("a")
    return root


def changed(path, position):
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("position", [0, SIZE // 2, SIZE - 1])
@pytest.mark.parametrize("use_cache", [True, False])
def test_a_change_of_any_byte_is_seen(data, position, use_cache):
    before = fingerprints.hash_data(data, use_cache=use_cache)
    changed(data / "images" / "a.bin", position)
    assert fingerprints.hash_data(data, use_cache=use_cache) != before


def test_the_cache_does_not_change_the_hash(data):
    assert fingerprints.hash_data(data) == fingerprints.hash_data(data, use_cache=False)


def test_dangling_links_and_pipes_do_not_hang_and_count_by_name(data):
    before = fingerprints.hash_data(data)
    (data / "gone.png").symlink_to(data / "nowhere.png")
    os.mkfifo(data / "pipe")
    assert fingerprints.hash_data(data) != before


def test_names_count_and_places_do_not(data, tmp_path):
    before = fingerprints.hash_data(data)
    data.rename(tmp_path / "elsewhere")
    assert fingerprints.hash_data(tmp_path / "elsewhere") == before
    (tmp_path / "elsewhere" / "list.txt").rename(tmp_path / "elsewhere" / "other.txt")
    assert fingerprints.hash_data(tmp_path / "elsewhere") != before


def test_linked_folders_are_followed_and_loops_end(data, tmp_path):
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / "images").symlink_to(data / "images")
    (linked / "loop").symlink_to(linked)
    before = fingerprints.hash_data(linked)
    changed(data / "images" / "a.bin", 0)
    assert fingerprints.hash_data(linked) != before


def test_hidden_files_and_the_run_itself_do_not_count(data):
    before = fingerprints.hash_data(data)
    (data / ".DS_Store").write_bytes(b"x")
    (data / "run").mkdir()
    (data / "run" / "run.json").write_text("{}")
    assert fingerprints.hash_data(data, without=data / "run") == before
    assert fingerprints.hash_data(data) != before


def test_a_single_file_is_known_by_its_content(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_text("same")
    assert fingerprints.hash_data(tmp_path / "a") == fingerprints.hash_data(tmp_path / "b")
    with pytest.raises(FileNotFoundError):
        fingerprints.hash_data(tmp_path / "c")


def test_arrays_differ_by_content_shape_and_type():
    array = np.arange(6, dtype=np.uint8)
    different = [array, array.reshape(2, 3), array.astype(np.int16), array + 1]
    assert len({fingerprints.hash_array(one) for one in different}) == 4
    assert fingerprints.hash_array(array[::2]) == fingerprints.hash_array(array[::2].copy())


def test_files_have_the_hash_that_other_tools_print(tmp_path):
    (tmp_path / "empty").touch()
    assert (
        fingerprints.hash_file(tmp_path / "empty") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    )
