from __future__ import annotations

from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from hardlook.data.images import read_image
from hardlook.data.label_maps import read_label_map
from hardlook.data.voc import IGNORE, VOC_CLASSES, open_devkit
from hardlook.errors import DataError
from hardlook.world.layouts import write_world
from hardlook.world.planted import PlantedWorld
from hardlook.world.vocabulary import CONCEPTS


@pytest.fixture(scope="module")
def devkit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_world(tmp_path_factory.mktemp("voc"), "voc", seed=2, count=24)


def test_round_trip_of_the_planted_world(devkit: Path) -> None:
    kit, world = open_devkit(devkit), PlantedWorld(seed=2, count=24)
    assert kit.classes == tuple(label.name for label in CONCEPTS)
    assert kit.splits() == ("train", "val")
    images = {image.id: image for split in kit.splits() for image in kit.images(split)}
    assert (len(kit.ids("train")), len(kit.ids("val")), len(images)) == (18, 6, 24)
    for index, rendered in enumerate(world):
        image = images[f"2026_{index + 1:06d}"]
        assert np.array_equal(read_image(image.path), rendered.image)
        classes = image.read_classes()
        for number, label in enumerate(CONCEPTS, start=1):
            assert np.array_equal(classes == number, rendered.class_mask(label.name))
        objects = read_label_map(image.object_path)
        assert objects.max() == len(rendered.scene.objects)
        for number, thing in enumerate(rendered.scene.objects, start=1):
            assert np.array_equal(objects == number, rendered.mask_of(thing))


def test_border_is_ignored_and_nothing_else_changes(devkit: Path, tmp_path: Path) -> None:
    plain = open_devkit(devkit).image("2026_000001")
    ringed = open_devkit(write_world(tmp_path, "voc", seed=2, count=1, border=1)).image("2026_000001")
    for path in ("class_path", "object_path"):
        one, other = (read_label_map(getattr(image, path)) for image in (plain, ringed))
        ring = other == IGNORE
        assert 0.005 < ring.mean() < 0.2
        assert np.array_equal(one[~ring], other[~ring])


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    kit = open_devkit(write_world(tmp_path / "kit", "voc", count=4, size=(96, 72)))
    with pytest.raises(DataError, match="no split 'test'") as caught:
        kit.ids("test")
    assert "train, val" in str(caught.value.remedy)
    (kit.root / "SegmentationObject" / "2026_000001.png").unlink()
    assert kit.image("2026_000001").object_path is None
    (kit.root / "SegmentationClass" / "2026_000001.png").unlink()
    with pytest.raises(DataError, match="no class mask") as caught:
        kit.image("2026_000001")
    assert caught.value.unit == "2026_000001"
    (kit.root / "JPEGImages" / "2026_000002.png").unlink()
    with pytest.raises(DataError, match="no image '2026_000002'"):
        kit.image("2026_000002")
    listing = kit.root / "ImageSets" / "Segmentation" / "twice.txt"
    listing.write_text("2026_000003\n\n2026_000003\n")
    with pytest.raises(DataError, match="twice"):
        kit.ids("twice")
    (kit.root / "SegmentationClass").rename(kit.root / "SegmentationClassAug")
    assert open_devkit(kit.root).masks == "SegmentationClassAug"
    (kit.root / "SegmentationClassAug").rename(kit.root / "masks")
    with pytest.raises(DataError, match="no folder SegmentationClass"):
        open_devkit(kit.root)
    with pytest.raises(DataError, match="no VOC devkit here"):
        open_devkit(tmp_path / "elsewhere")


@pytest.mark.real
def test_all_real_masks(shared_data: Path) -> None:
    kit = open_devkit(shared_data / "data")
    assert kit.classes == VOC_CLASSES
    images = kit.images("train")
    assert len(images) == 537
    seen = np.zeros(256, int)
    for image in images:
        classes, objects = image.read_classes(), read_label_map(image.object_path)
        seen[np.unique(classes)] += 1
        assert np.array_equal(classes == 0, objects == 0)
        assert np.array_equal(classes == IGNORE, objects == IGNORE)
        with PIL.Image.open(image.path) as picture:
            assert picture.size == (classes.shape[1], classes.shape[0])
    assert seen[1:21].min() >= 34
    assert not seen[21:255].any()


def test_of_two_years_none_is_chosen(tmp_path: Path) -> None:
    kits = [
        write_world(tmp_path / "VOCdevkit" / year, "voc", count=4, size=(96, 72)) for year in ("VOC2007", "VOC2012")
    ]
    for folder in (tmp_path, tmp_path / "VOCdevkit"):
        with pytest.raises(DataError, match=r"2 devkits here: .*VOC2007, .*VOC2012"):
            open_devkit(folder)
    assert open_devkit(kits[1]).root == kits[1]
    (kits[0] / "ImageSets" / "Segmentation").rename(kits[0] / "lists")
    assert open_devkit(tmp_path).root == kits[1]


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path: Path) -> None:
    kit = write_world(tmp_path / "kit", "voc", count=4, size=(96, 72))
    classes, ids = open_devkit(kit).classes, open_devkit(kit).ids("val")
    for file in (kit / "classes.txt", kit / "ImageSets" / "Segmentation" / "val.txt"):
        file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert (open_devkit(kit).classes, open_devkit(kit).ids("val")) == (classes, ids)
