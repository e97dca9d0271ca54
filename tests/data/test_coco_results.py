from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from detection_scenes import image_arrays, pycocotools_evaluation, scene, similarity
from pycocotools import mask as coco_mask

from hardlook.data.coco_instances import InstanceDataset, instances_from
from hardlook.data.coco_results import read_results, results_from
from hardlook.errors import DataError
from hardlook.metrics.detection_inputs import Detections, Objects
from hardlook.metrics.open_ap import OpenAP

ROW = {"image_id": 1, "category_id": 2, "score": 0.5, "bbox": [0, 0, 4, 2]}


@pytest.fixture
def truth() -> InstanceDataset:
    return instances_from(scene(1)[0])


def read(rows: list[Any], truth: InstanceDataset, folder: Path, iou_type: Any = "bbox") -> Any:
    path = folder / "results.json"
    path.write_text(json.dumps(rows))
    return read_results(path, truth, iou_type)


@pytest.mark.parametrize("masks", [False, True])
def test_files_scored_from_end_to_end_equal_pycocotools(masks: bool, tmp_path: Path) -> None:
    content, rows = scene(21, images=8, masks=masks)
    iou_type: Any = "segm" if masks else "bbox"
    dataset = instances_from(content)
    results = read(rows, dataset, tmp_path, iou_type)
    matrix = similarity(21, 4)
    metric = OpenAP(list(dataset.categories.values()), matrix, iou_type=iou_type)
    from_arrays = OpenAP(list(dataset.categories.values()), matrix, iou_type=iou_type)
    for image in dataset.images:
        found = results[image.id]
        objects = Objects(
            dataset.class_indices(image.category_ids), boxes=image.boxes, area=image.area, crowd=image.crowd
        )
        boxes = None if masks else found.boxes
        classes = dataset.class_indices(found.category_ids)
        detections = Detections(classes, found.scores, boxes=boxes, area=found.area(iou_type))
        metric.update(objects, detections, image=image.id, overlap=found.mask_overlap(image) if masks else None)
        from_arrays.update(*image_arrays(content, rows, image.id), image=image.id)
    theirs = pycocotools_evaluation(content, rows, iou_type).stats
    assert metric.compute().summary()["vanilla"]["AP"] == pytest.approx(theirs[0], abs=1e-9)
    assert metric.compute().summary()["vanilla"]["ARl"] == pytest.approx(theirs[11], abs=1e-9)
    assert metric.compute().summary() == from_arrays.compute().summary()


def test_every_image_has_its_detections_in_file_order(truth: InstanceDataset, tmp_path: Path) -> None:
    rows = [{**ROW, "score": 0.1}, {**ROW, "image_id": 3}, {**ROW, "score": 0.9}]
    results = read(rows, truth, tmp_path)
    assert [len(results[image].scores) for image in (1, 2, 3, 4)] == [2, 0, 1, 0]
    assert results[1].scores.tolist() == [0.1, 0.9]
    assert results[2].boxes.shape == (0, 4)
    assert results[2].masks().shape == (0, 128, 128)


def test_no_detections_at_all(tmp_path: Path) -> None:
    truth = instances_from(scene(1, masks=True)[0])
    results = read([], truth, tmp_path, "segm")
    assert results.keys() == {1, 2, 3, 4}
    assert results[1].mask_overlap(truth.images[0]).shape[0] == len(results[1].area("segm")) == 0


def test_a_missing_box_is_that_of_the_mask(truth: InstanceDataset) -> None:
    mask = np.zeros((128, 128), np.uint8, order="F")
    mask[3:9, 2:4] = 1
    encoded = coco_mask.encode(mask)
    row = {**ROW, "bbox": [], "segmentation": {"size": [128, 128], "counts": encoded["counts"].decode()}}
    assert results_from([row], truth, "bbox")[1].boxes.tolist() == [coco_mask.toBbox(encoded).tolist()]
    found = results_from([row], truth, "segm")[1]
    assert np.array_equal(found.masks()[0], mask.astype(bool))
    assert found.area("segm").tolist() == [12]
    polygon = {**ROW, "segmentation": [[2, 3, 4, 3, 4, 9, 2, 9]]}
    assert np.array_equal(results_from([polygon], truth, "segm")[1].masks()[0], mask.astype(bool))


def test_everything_that_does_not_fit_is_listed_at_once(truth: InstanceDataset, tmp_path: Path) -> None:
    rows: list[Any] = [
        ROW, {**ROW, "image_id": 99}, {**ROW, "image_id": "1"}, {**ROW, "category_id": 1}, {**ROW, "score": None},
        {**ROW, "score": float("nan")}, {**ROW, "bbox": [0, 0, -4, 2]}, {"image_id": 1, "category_id": 2, "score": 1},
        {**ROW, "segmentation": {"size": [2, 2], "counts": "04"}}, "no detection", {**ROW, "image_id": [1]},
    ]  # fmt: skip
    with pytest.raises(DataError) as caught:
        read(rows, truth, tmp_path)
    assert str(caught.value).splitlines()[:9] == [
        "detections that do not fit the truth",
        "  - image ids that the truth has not: 99, '1', [1]",
        "  - category ids that the truth has not: 1",
        "  - no score, at positions: 4",
        "  - scores that are no numbers (NaN), at positions: 5",
        "  - boxes that are not x, y, width, height, at positions: 6",
        "  - no bbox, at positions: 7",
        "  - masks of another size than their image, at positions: 8",
        "  - entries that are no detections, at positions: 9",
    ]
    assert "results.json" in str(caught.value)


def test_masks_are_needed_and_read_only_when_masks_are_scored(truth: InstanceDataset) -> None:
    with pytest.raises(DataError, match="no segmentation, at positions: 0"):
        results_from([ROW], truth, "segm")
    with pytest.raises(DataError, match="masks that cannot be read, at positions: 0"):
        results_from([{**ROW, "segmentation": {"size": [128, 128]}}], truth, "segm")
    damaged = {**ROW, "segmentation": {"size": [128, 128], "counts": "!!"}}
    assert len(results_from([damaged], truth, "bbox")[1].scores) == 1
    with pytest.raises(DataError, match=r"damaged|run-length"):
        results_from([damaged], truth, "segm")[1].area("segm")


@pytest.mark.parametrize("text", [" ", "{}", "[1, 2", '[{"image_id": 1,]', "[] []", "[]x"])
def test_what_is_no_list_is_refused(text: str, truth: InstanceDataset, tmp_path: Path) -> None:
    path = tmp_path / "odd.json"
    path.write_text(text)
    with pytest.raises(DataError, match="not a JSON list") as caught:
        read_results(path, truth, "bbox")
    assert "odd.json" in str(caught.value)
