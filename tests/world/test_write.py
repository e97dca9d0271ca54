from __future__ import annotations

import json
from pathlib import Path

import cv2
import pytest

from hardlook import fingerprint
from hardlook.errors import DataError, OptionError
from hardlook.world import signature
from hardlook.world.planted import VERSION, PlantedWorld
from hardlook.world.write import LAYOUTS, write_world


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_writing_twice_gives_the_same_bytes_and_a_record(layout: str, tmp_path: Path) -> None:
    one = write_world(tmp_path / "one", layout, seed=1, count=6, size=(96, 72))
    two = write_world(tmp_path / "two", layout, seed=1, count=6, size=(96, 72))
    assert fingerprint.of_data(one, full=True) == fingerprint.of_data(two, full=True)
    record = json.loads((one / "world.json").read_text())
    assert (record["version"], record["layout"], record["options"]["seed"]) == (VERSION, layout, 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "two"]


def test_a_foreign_folder_is_refused_and_its_files_survive_overwriting(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(DataError, match="something else"):
        write_world(tmp_path, "isegm", count=2, size=(96, 72))
    write_world(tmp_path, "isegm", count=2, size=(96, 72), overwrite=True)
    assert (tmp_path / "thesis.txt").read_text() == "mine"
    assert (tmp_path / "world.json").is_file()


def test_a_world_replaces_a_world_without_leftovers(tmp_path: Path) -> None:
    write_world(tmp_path, "voc", count=3, size=(96, 72))
    with pytest.raises(DataError, match="lies here already"):
        write_world(tmp_path, "isegm", count=2, size=(96, 72))
    write_world(tmp_path, "isegm", count=2, size=(96, 72), overwrite=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["boundary_GT", "data_GT", "world.json"]
    write_world(tmp_path, "isegm", count=1, size=(96, 72), overwrite=True)
    assert [path.name for path in (tmp_path / "data_GT").iterdir()] == ["000001.png"]


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(world: PlantedWorld, directory: Path, image_format: str) -> None:
        (directory / "data_GT").mkdir()
        raise OSError("disk full")

    monkeypatch.setitem(LAYOUTS, "isegm", (fail, LAYOUTS["isegm"][1]))
    with pytest.raises(OSError, match="disk full"):
        write_world(tmp_path / "world", "isegm", count=1)
    assert list((tmp_path / "world").iterdir()) == []
    assert [path.name for path in tmp_path.iterdir()] == ["world"]


def test_png_carries_the_signature_and_jpeg_does_not(tmp_path: Path) -> None:
    png = write_world(tmp_path / "png", "isegm", count=1) / "data_GT" / "000001.png"
    jpg = write_world(tmp_path / "jpg", "isegm", count=1, image_format="jpg") / "data_GT" / "000001.jpg"
    assert (signature.read(cv2.imread(str(png))[..., ::-1]).classes == PlantedWorld(count=1)[0].classes).all()
    with pytest.raises(DataError):
        signature.read(cv2.imread(str(jpg))[..., ::-1])


def test_concept_context_subjects_are_salient_by_default(tmp_path: Path) -> None:
    record = json.loads((write_world(tmp_path, "concept-context", count=2) / "world.json").read_text())
    assert record["options"]["salient"] is True


def test_unknown_options_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="no layout 'zip'"):
        write_world(tmp_path, "zip")
    with pytest.raises(OptionError, match="no image format 'gif'"):
        write_world(tmp_path, "voc", image_format="gif")
    with pytest.raises(OptionError, match="border"):
        write_world(tmp_path, "isegm", border=2)
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="a file of this name"):
        write_world(tmp_path / "file", "voc")
