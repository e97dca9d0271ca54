"""Listings of folders, kept while the folder does not change."""

import os

from hardlook import file_hashes
from hardlook.data.class_masks import source
from hardlook.data.class_masks.source import FolderListing


def test_files_that_come_and_go_within_one_tick_of_the_clock_are_seen(tmp_path):
    # A folder's modification time has steps of some milliseconds: many of these changes share one.
    for number in range(40):
        (tmp_path / f"{number}.png").touch()
        assert list(FolderListing(tmp_path)) == sorted(map(str, range(number + 1)))
    for number in range(40):
        (tmp_path / f"{number}.png").unlink()
        assert str(number) not in FolderListing(tmp_path)


def test_a_folder_that_does_not_change_is_listed_once(tmp_path, monkeypatch):
    (tmp_path / "a.png").touch()
    scanned = []
    monkeypatch.setattr(source.os, "scandir", lambda folder, scan=os.scandir: scanned.append(folder) or scan(folder))
    monkeypatch.setattr(file_hashes.time, "time_ns", lambda: tmp_path.stat().st_mtime_ns + 3_000_000_000)
    for _ in range(3):
        assert list(FolderListing(tmp_path)) == ["a"]
    assert len(scanned) == 1
