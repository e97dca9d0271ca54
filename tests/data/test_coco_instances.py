from __future__ import annotations

import contextlib
import copy
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from detection_scenes import scene
from pycocotools.coco import COCO

from hardlook.data.coco_instances import instances_from, read_instances
from hardlook.errors import DataError
from hardlook.world.write import write_world

PICTURE = {"id": 7, "file_name": "a.jpg", "width": 6, "height": 5}
SQUARE = {
    "id": 1, "image_id": 7, "category_id": 18, "bbox": [1, 1, 2, 2], "area": 4, "iscrowd": 0,
    "segmentation": [[1, 1, 3, 1, 3, 3, 1, 3]],
}  # fmt: skip


def content(*annotations: dict[str, Any]) -> dict[str, Any]:
    categories = [{"id": 18, "name": "dog"}, {"id": 3, "name": "car"}]
    return {"images": [PICTURE], "categories": categories, "annotations": list(annotations)}


def test_objects_of_the_planted_world_equal_pycocotools(tmp_path: Path) -> None:
    path = write_world(tmp_path, "coco-panoptic", seed=2, count=12) / "instances.json"
    dataset = read_instances(path)
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO(str(path))
    assert dataset.categories == {i: coco.cats[i]["name"] for i in sorted(coco.getCatIds())}
    assert [image.id for image in dataset.images] == coco.getImgIds()
    assert sum(len(image.ids) for image in dataset.images) == len(coco.anns) > 0
    for image in dataset.images:
        theirs = coco.loadAnns(coco.getAnnIds(imgIds=image.id))
        assert image.ids.tolist() == [a["id"] for a in theirs]
        assert image.category_ids.tolist() == [a["category_id"] for a in theirs]
        assert image.boxes.tolist() == [a["bbox"] for a in theirs]
        assert image.area.tolist() == [a["area"] for a in theirs]
        for mask, annotation in zip(image.masks(), theirs, strict=True):
            assert np.array_equal(mask, coco.annToMask(annotation).astype(bool))


def test_polygons_runs_and_crowds_are_decoded() -> None:
    runs = {"size": [5, 6], "counts": [6, 2, 3, 2, 17]}
    crowd = {**SQUARE, "id": 2, "segmentation": runs, "iscrowd": 1, "category_id": 3}
    dataset = instances_from(content(SQUARE, crowd))
    (image,) = dataset.images
    expected = np.zeros((5, 6), bool)
    expected[1:3, 1:3] = True
    assert np.array_equal(image.masks(), [expected, expected])
    assert image.crowd.tolist() == [False, True]
    assert dataset.class_indices(image.category_ids).tolist() == [1, 0]
    assert list(dataset.categories) == [3, 18]


def test_images_without_objects_and_objects_without_area_or_mask() -> None:
    (image,) = instances_from(content()).images
    assert (image.masks().shape, image.boxes.shape, len(image.ids)) == ((0, 5, 6), (0, 4), 0)
    bare = {key: SQUARE[key] for key in ("id", "image_id", "category_id")} | {"bbox": [0, 0, 2, 3]}
    (image,) = instances_from(content(bare)).images
    assert image.area.tolist() == [6]
    with pytest.raises(DataError, match="annotation 1 has no segmentation"):
        image.masks()


def test_everything_that_does_not_fit_is_listed_at_once(tmp_path: Path) -> None:
    path = tmp_path / "instances.json"
    entries = [
        SQUARE, {**SQUARE, "bbox": [0, 0, -1, 2]}, {**SQUARE, "id": 3, "image_id": 8},
        {**SQUARE, "id": 4, "category_id": 99}, {**SQUARE, "id": 5, "bbox": [0, 0, float("nan"), 2]},
        {**SQUARE, "id": 6, "segmentation": {"size": [6, 5], "counts": "0"}},
    ]  # fmt: skip
    path.write_text(json.dumps(content(*entries)))
    with pytest.raises(DataError) as caught:
        read_instances(path)
    assert str(caught.value).splitlines()[:6] == [
        "annotations that do not fit",
        "  - annotation ids that come twice: 1",
        "  - boxes that are not x, y, width, height, of annotations: 1, 5",
        "  - unknown image ids: 8",
        "  - category ids that are not listed: 99",
        "  - masks of another size than their image, of annotations: 6",
    ]
    assert "instances.json" in str(caught.value)


def test_other_files_are_refused(tmp_path: Path) -> None:
    for name, text, words in (
        ("cut.json", "{", "not JSON"), ("list.json", "[]", "instance format"),
        ("keys.json", '{"images": []}', "categories"),
    ):  # fmt: skip
        (tmp_path / name).write_text(text)
        with pytest.raises(DataError, match=words) as caught:
            read_instances(tmp_path / name)
        assert name in str(caught.value)
    with pytest.raises(DataError, match="image ids that come twice"):
        instances_from({**content(), "images": [PICTURE, PICTURE]})


def test_a_damaged_polygon_names_its_annotation() -> None:
    (image,) = instances_from(content({**SQUARE, "segmentation": [["a"] * 6]})).images
    with pytest.raises(DataError, match="not a COCO segmentation") as caught:
        image.masks()
    assert "image 7, annotation 1" in str(caught.value)


def test_reading_leaves_its_input_alone() -> None:
    truth, _ = scene(1, masks=True)
    before = copy.deepcopy(truth)
    for image in instances_from(truth).images:
        image.masks()
    assert truth == before
