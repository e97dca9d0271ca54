from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

import numpy as np
import pytest
from pycocotools.coco import COCO

from hardlook.data import rle
from hardlook.data.coco_panoptic import PanopticDataset, decode_ids, encode_ids, read_panoptic
from hardlook.data.label_maps import read_label_map
from hardlook.errors import DataError
from hardlook.world.layouts import write_world
from hardlook.world.planted import PlantedWorld
from hardlook.world.vocabulary import BY_CODE, LABELS


def _read(folder: Path) -> PanopticDataset:
    return read_panoptic(folder / "panoptic.json", folder / "panoptic", folder / "images")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_world(tmp_path_factory.mktemp("coco"), "coco-panoptic", seed=2, count=24)


def test_round_trip_of_the_planted_world(folder: Path) -> None:
    dataset = _read(folder)
    assert {c.id: (c.name, c.thing) for c in dataset.categories.values()} == {
        label.code: (label.name, label.thing) for label in LABELS
    }
    for image, rendered in zip(dataset.images, PlantedWorld(seed=2, count=24), strict=True):
        assert image.problems() == []
        assert np.array_equal(image.read(), rendered.image)
        assert np.array_equal(image.read_classes(), rendered.classes)
        semantic = read_label_map(folder / "semantic" / f"{image.id:012d}.png")
        assert np.array_equal(semantic, rendered.classes)
        ids = image.read_segments()
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


def test_what_does_not_fit_is_listed(folder: Path, tmp_path: Path) -> None:
    content = json.loads((folder / "panoptic.json").read_text())
    segments = content["annotations"][0]["segments_info"]
    segments[0]["area"] += 5
    dropped = segments.pop()
    segments.append({**dropped, "id": 77})
    (tmp_path / "changed.json").write_text(json.dumps(content))
    problems = read_panoptic(tmp_path / "changed.json", folder / "panoptic", folder / "images").images[0].problems()
    assert problems == [
        f"segment {dropped['id']} is drawn but not listed",
        "segment 77 is listed but not drawn",
        f"segment {segments[0]['id']} covers {segments[0]['area'] - 5} pixels, its area says {segments[0]['area']}",
    ]
    content["images"][0]["width"] = 3
    (tmp_path / "narrow.json").write_text(json.dumps(content))
    with pytest.raises(DataError, match="the JSON says 3x120"):
        read_panoptic(tmp_path / "narrow.json", folder / "panoptic", folder / "images").images[0].read_segments()


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
    assert {image.id: image.problems() for image in dataset.images if image.problems()} == {}
    for image in dataset.images[:10]:
        assert image.read().shape == (image.height, image.width, 3)
        assert np.array_equal(image.read_classes(), read_label_map(folder / "semantic" / f"{image.id:012d}.png"))
