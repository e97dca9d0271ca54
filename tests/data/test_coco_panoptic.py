from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

import numpy as np
import pytest
from pycocotools.coco import COCO

from hardlook.data import rle
from hardlook.data.coco_panoptic import PanopticDataset, PanopticImage, decode_ids, encode_ids, read_panoptic
from hardlook.data.images import read_image
from hardlook.data.label_maps import read_label_map
from hardlook.errors import DataError
from hardlook.world.layouts import write_world
from hardlook.world.planted import PlantedWorld
from hardlook.world.vocabulary import BY_CODE, LABELS


def _read(folder: Path) -> PanopticDataset:
    return read_panoptic(folder / "panoptic.json", folder / "panoptic", folder / "images")


def _check_segments(image: PanopticImage) -> np.ndarray:
    """The ids of the PNG, which are those of the JSON with the same areas."""
    ids = decode_ids(read_image(image.segments_path))
    drawn = dict(zip(*np.unique(ids[ids > 0], return_counts=True), strict=True))
    assert drawn == {segment.id: segment.area for segment in image.segments}
    return ids


def _classes(image: PanopticImage, ids: np.ndarray) -> np.ndarray:
    classes = np.zeros(ids.shape, int)
    for segment in image.segments:
        classes[ids == segment.id] = segment.category_id
    return classes


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_world(tmp_path_factory.mktemp("coco"), "coco-panoptic", seed=2, count=24)


def test_round_trip_of_the_planted_world(folder: Path) -> None:
    dataset = _read(folder)
    assert {c.id: (c.name, c.thing) for c in dataset.categories.values()} == {
        label.code: (label.name, label.thing) for label in LABELS
    }
    for image, rendered in zip(dataset.images, PlantedWorld(seed=2, count=24), strict=True):
        assert np.array_equal(read_image(image.path), rendered.image)
        ids = _check_segments(image)
        assert np.array_equal(_classes(image, ids), rendered.classes)
        semantic = read_label_map(folder / "semantic" / f"{image.id:012d}.png")
        assert np.array_equal(semantic, rendered.classes)
        truth = rendered.classes.astype(int) * 4 + rendered.instances
        assert len({(a, b) for a, b in zip(ids.ravel().tolist(), truth.ravel().tolist(), strict=True) if a}) == len(
            image.segments
        )
        for segment in image.segments:
            rows, columns = np.nonzero(ids == segment.id)
            x, y, width, height = segment.box
            assert (columns.min(), rows.min()) == (x, y)
            assert (columns.max() + 1, rows.max() + 1) == (x + width, y + height)


def test_pycocotools_reads_the_instances(folder: Path) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO(str(folder / "instances.json"))
    assert len(coco.getCatIds()) == 12
    for index, rendered in enumerate(PlantedWorld(seed=2, count=24)):
        annotations = coco.loadAnns(coco.getAnnIds(imgIds=index + 1))
        assert len(annotations) == len(rendered.scene.objects)
        for annotation, thing in zip(annotations, rendered.scene.objects, strict=True):
            assert BY_CODE[annotation["category_id"]].name == thing.concept
            mask = rendered.mask_of(thing)
            assert np.array_equal(coco.annToMask(annotation).astype(bool), mask)
            assert rle.encode(mask) == annotation["segmentation"]
            assert list(rle.to_box(annotation["segmentation"])) == annotation["bbox"]
            assert annotation["area"] == mask.sum()


def test_ids_survive_their_colours() -> None:
    ids = np.array([[0, 255, 256], [65535, 65536, 2**24 - 1]], np.int32)
    assert np.array_equal(decode_ids(encode_ids(ids)), ids)


def test_bad_files_are_refused(folder: Path, tmp_path: Path) -> None:
    content = json.loads((folder / "panoptic.json").read_text())
    (tmp_path / "text.json").write_text("{")
    (tmp_path / "keys.json").write_text(json.dumps({"images": []}))
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "categories.json").write_text(json.dumps({**content, "categories": content["categories"][:3]}))
    for name, words in (
        ("text.json", "not JSON"), ("keys.json", "panoptic format"), ("list.json", "panoptic format"),
        ("categories.json", "unknown categories"), ("none.json", "does not exist"),
    ):  # fmt: skip
        with pytest.raises(DataError, match=words) as caught:
            read_panoptic(tmp_path / name, folder / "panoptic", folder / "images")
        assert name in str(caught.value)
    with pytest.raises(DataError, match="24 files are missing"):
        read_panoptic(folder / "panoptic.json", folder / "panoptic", tmp_path)


@pytest.mark.real
def test_real_coco(shared_data: Path) -> None:
    folder = shared_data / "data" / "coco100"
    dataset = _read(folder)
    assert (len(dataset.images), len(dataset.categories)) == (100, 133)
    segments = {image.id: _check_segments(image) for image in dataset.images}
    for image in dataset.images[:10]:
        ids = segments[image.id]
        assert read_image(image.path).shape == (*ids.shape, 3)
        semantic = read_label_map(folder / "semantic" / f"{image.id:012d}.png")
        assert np.array_equal(_classes(image, ids), semantic)
