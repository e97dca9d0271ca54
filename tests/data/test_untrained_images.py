"""Images that do not train: copies of test images are found under other names, sizes and files."""

import cv2
import numpy as np
import pytest

from hardlook.data.untrained_images import find_copies, read_excluded
from hardlook.errors import DataError


def draw(seed, size=96):
    rng = np.random.default_rng(seed)
    return cv2.resize(rng.integers(0, 256, (6, 6, 3), dtype=np.uint8), (size, size))


@pytest.fixture
def folders(tmp_path, monkeypatch):
    monkeypatch.setenv("HARDLOOK_CACHE", str(tmp_path / "cache"))
    train, test = tmp_path / "train", tmp_path / "test"
    train.mkdir(), test.mkdir()
    for seed in range(4):
        cv2.imwrite(str(train / f"a{seed}.png"), draw(seed))
    for seed in range(10, 13):
        cv2.imwrite(str(test / f"b{seed}.png"), draw(seed))
    return train, test


def list_images(folder):
    return {path.stem: path for path in sorted(folder.iterdir())}


def test_copies_under_other_names_are_found(folders):
    train, test = folders
    assert find_copies(list_images(train), test) == {}
    (train / "same.png").write_bytes((test / "b10.png").read_bytes())
    cv2.imwrite(str(train / "smaller.jpg"), cv2.resize(draw(11), (64, 64), interpolation=cv2.INTER_AREA))
    cv2.imwrite(str(train / "mirrored.png"), draw(12)[:, ::-1])
    assert find_copies(list_images(train), test) == {
        "same": "b10.png", "smaller": "b11.png", "mirrored": "b12.png",
    }  # fmt: skip


def test_copies_among_training_images_alone_are_none(folders):
    train, test = folders
    (train / "twice.png").write_bytes((train / "a0.png").read_bytes())
    assert find_copies(list_images(train), test) == {}


def test_a_list_has_no_pictures(folders, tmp_path):
    (tmp_path / "ids.txt").write_text("a0\n\na1\n")
    assert find_copies(list_images(folders[0]), tmp_path / "ids.txt") == {}
    assert find_copies(list_images(folders[0]), None) == {}
    assert read_excluded(tmp_path / "ids.txt") == {"a0", "a1"} and read_excluded(None) == set()


def test_files_that_are_no_pictures_are_passed_over(folders):
    train, test = folders
    (test / "notes.txt").write_text("x")
    (test / "broken.png").write_bytes(b"")
    (train / "broken.png").write_bytes(b"")
    assert find_copies(list_images(train), test) == {}
    (test / "empty").mkdir()
    with pytest.raises(DataError, match="no image is named here"):
        read_excluded(test / "empty")
