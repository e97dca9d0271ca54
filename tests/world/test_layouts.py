from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import cv2
import numpy as np
import PIL.Image
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from pycocotools import mask as pycocotools_mask

from hardlook import fingerprints
from hardlook.data.class_masks import open_fss
from hardlook.errors import DataError, HardlookError, OptionError
from hardlook.world import signature
from hardlook.world.layouts import (
    LAYOUTS,
    encode_rle,
    make_world,
    save_image,
    save_labels,
    voc_palette,
    write_world,
)
from hardlook.world.planted import VERSION, PlantedWorld
from hardlook.world.vocabulary import CONCEPTS

COUNT, SMALL = 24, (96, 72)


def test_every_scene_lies_under_its_concept_with_its_signature(tmp_path: Path) -> None:
    source = open_fss(write_world(tmp_path, "fss", seed=4, count=COUNT, size=SMALL))
    assert source.classes == tuple(sorted(label.name for label in CONCEPTS))
    world = PlantedWorld(seed=4, count=COUNT, size=SMALL)
    numbers: Counter[str] = Counter()
    for index, rendered in enumerate(world):
        concept = world.concept(index)
        numbers[concept] += 1
        token = f"0_{concept}_{numbers[concept]}"
        assert np.array_equal(source.read_image(token), rendered.image)
        assert np.array_equal(source.read_mask(token).mask, rendered.class_mask(concept))
        assert np.array_equal(signature.read_signature(source.read_image(token)).classes, rendered.classes)
    assert set(numbers.values()) == {COUNT // len(CONCEPTS)}
    assert len(source.tokens()) == COUNT


def test_jpeg_is_for_looks_and_masks_are_black_and_white(tmp_path: Path) -> None:
    write_world(tmp_path, "fss", count=12, size=SMALL, image_format="jpg")
    assert {path.suffix for path in (tmp_path / "cat").iterdir()} == {".jpg", ".png"}
    assert set(np.unique(np.asarray(PIL.Image.open(tmp_path / "cat" / "1.png")))) == {0, 255}
    with pytest.raises(DataError):
        signature.read_signature(open_fss(tmp_path).read_image("0_cat_1"))


def test_ten_images_a_concept_from_120_scenes() -> None:
    world = PlantedWorld(count=120)
    assert set(Counter(world.concept(index) for index in range(120)).values()) == {10}


def test_indexed_png_keeps_indices_and_carries_vocs_colours(tmp_path: Path) -> None:
    labels = np.arange(256, dtype=np.uint8).reshape(16, 16)
    save_labels(tmp_path / "a.png", labels, colours=True)
    stored = PIL.Image.open(tmp_path / "a.png")
    assert stored.mode == "P"
    assert np.array_equal(np.asarray(stored), labels)
    # Hand-computed from the devkit's rule: 1 is aeroplane, 15 person, 255 the border.
    colours = np.asarray(stored.convert("RGB")).reshape(256, 3)
    assert colours[[0, 1, 8, 15, 20, 255]].tolist() == [
        [0, 0, 0], [128, 0, 0], [64, 0, 0], [192, 128, 128], [0, 64, 128], [224, 224, 192],
    ]  # fmt: skip


@pytest.mark.real
def test_palette_equals_the_devkits(shared_data: Path) -> None:
    path = next((shared_data / "data" / "VOCdevkit" / "VOC2012" / "SegmentationClass").glob("*.png"))
    assert PIL.Image.open(path).getpalette() == voc_palette()


def test_a_picture_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="could not be written"):
        save_image(tmp_path / "no such folder" / "a.png", np.zeros((4, 4, 3), np.uint8))


masks = arrays(bool, st.tuples(st.integers(1, 40), st.integers(1, 40)))


@settings(max_examples=150, deadline=None)
@given(mask=masks)
def test_equals_pycocotools(mask: np.ndarray) -> None:
    theirs = pycocotools_mask.encode(np.asfortranarray(mask.astype(np.uint8)))
    assert encode_rle(mask) == {"size": theirs["size"], "counts": theirs["counts"].decode()}


def test_long_runs() -> None:
    mask = np.zeros((300, 400), bool)
    mask[3:250, 100:390] = True
    theirs = pycocotools_mask.encode(np.asfortranarray(mask.astype(np.uint8)))
    assert encode_rle(mask)["counts"] == theirs["counts"].decode()


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_writing_twice_gives_the_same_bytes_and_a_record(layout: str, tmp_path: Path) -> None:
    one = write_world(tmp_path / "one", layout, seed=1, count=6, size=(96, 72))
    two = write_world(tmp_path / "two", layout, seed=1, count=6, size=(96, 72))
    assert fingerprints.hash_data(one) == fingerprints.hash_data(two)
    record = json.loads((one / "world.json").read_text())
    assert (record["version"], record["layout"], record["options"]["seed"]) == (VERSION, layout, 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "two"]


def test_a_foreign_folder_is_refused_and_its_files_survive_overwriting(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(DataError, match="holds other files"):
        write_world(tmp_path, "isegm", count=2, size=(96, 72))
    write_world(tmp_path, "isegm", count=2, size=(96, 72), overwrite=True)
    assert (tmp_path / "thesis.txt").read_text() == "mine"
    assert (tmp_path / "world.json").is_file()


def test_a_world_replaces_a_world_without_leftovers(tmp_path: Path) -> None:
    write_world(tmp_path, "voc", count=3, size=(96, 72))
    with pytest.raises(DataError, match="already holds a planted world"):
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
    assert (signature.read_signature(cv2.imread(str(png))[..., ::-1]).classes == PlantedWorld(count=1)[0].classes).all()
    with pytest.raises(DataError):
        signature.read_signature(cv2.imread(str(jpg))[..., ::-1])


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
    with pytest.raises(DataError, match="a file of this name exists"):
        write_world(tmp_path / "file", "voc")


def test_make_world_takes_the_words_of_the_command(tmp_path: Path) -> None:
    words = {"layout": "fss", "seed": 4, "image_format": "png"}
    made = make_world(tmp_path / "a", scenes=6, width=96, height=64, **words)
    assert made == tmp_path / "a"
    write_world(tmp_path / "b", count=6, size=(96, 64), **words)
    names = sorted(path.relative_to(made) for path in made.rglob("*") if path.is_file())
    assert names and all((made / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in names)
    with pytest.raises(OptionError, match="no layout 'vocs'"):
        make_world(tmp_path / "c", layout="vocs")
    for wrong in ({"scenes": 0}, {"width": 8}):
        with pytest.raises(HardlookError):
            make_world(tmp_path / "c", **wrong)
