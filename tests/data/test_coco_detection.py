from __future__ import annotations

import contextlib
import copy
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from detection_scenes import image_arrays, pycocotools_evaluation, scene, similarity
from pycocotools import mask as coco_mask
from pycocotools.coco import COCO

from hardlook.data import rle
from hardlook.data.coco_detection import InstanceDataset, parse_instances, parse_results, read_instances, read_results
from hardlook.errors import DataError
from hardlook.metrics.detection import Detections, Objects
from hardlook.metrics.open_ap import OpenAP
from hardlook.world.layouts import write_world

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
    dataset = parse_instances(content(SQUARE, crowd))
    (image,) = dataset.images
    expected = np.zeros((5, 6), bool)
    expected[1:3, 1:3] = True
    assert np.array_equal(image.masks(), [expected, expected])
    assert image.crowd.tolist() == [False, True]
    assert image.category_ids.tolist() == [18, 3]
    assert list(dataset.categories) == [3, 18]


def test_boxes_that_are_shares_of_the_image_are_noticed() -> None:
    share, pixel = [0.1, 0.2, 0.5, 1.0], [0, 0, 1, 1]
    with pytest.raises(DataError, match="all numbers of the 2 boxes are between 0 and 1") as caught:
        parse_instances(content({**SQUARE, "bbox": share}, {**SQUARE, "id": 2, "bbox": pixel}), "a.json")
    assert (caught.value.file, "in pixels" in str(caught.value.remedy)) == ("a.json", True)
    truth = parse_instances(content({**SQUARE, "bbox": pixel}))
    rows = [{"image_id": 7, "category_id": 18, "score": 0.5, "bbox": box} for box in (share, pixel, [2, 1, 0.5, 2])]
    with pytest.raises(DataError, match="all numbers of the 2 boxes are between 0 and 1") as caught:
        parse_results(rows[:2], truth, "bbox", "b.json")
    assert caught.value.file == "b.json"
    assert parse_results(rows, truth, "bbox")[7].boxes[0].tolist() == share


def test_images_without_objects_and_objects_without_area_or_mask() -> None:
    (image,) = parse_instances(content()).images
    assert (image.masks().shape, image.boxes.shape, len(image.ids)) == ((0, 5, 6), (0, 4), 0)
    bare = {key: SQUARE[key] for key in ("id", "image_id", "category_id")} | {"bbox": [0, 0, 2, 3]}
    (image,) = parse_instances(content(bare)).images
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
        "invalid annotations",
        "  - duplicate annotation ids: 1",
        "  - boxes that are not x, y, width, height, of annotations: 1, 5",
        "  - unknown image ids: 8",
        "  - unknown category ids: 99",
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
    with pytest.raises(DataError, match="duplicate image ids"):
        parse_instances({**content(), "images": [PICTURE, PICTURE]})


def test_ids_of_categories_and_images_are_whole_numbers_that_come_once() -> None:
    cow = {"id": 18, "name": "cow"}
    with pytest.raises(DataError, match="duplicate category ids: 18"):
        parse_instances({**content(), "categories": [*content()["categories"], cow]})
    with pytest.raises(DataError, match=r"the id 18\.5 is not a whole number"):
        parse_instances({**content(), "categories": [{**cow, "id": 18.5}]})
    with pytest.raises(DataError, match=r"the id 7\.5 is not a whole number"):
        parse_instances({**content(), "images": [{**PICTURE, "id": 7.5}]})
    whole = {**content(), "categories": [{**cow, "id": 18.0}]}
    assert list(parse_instances(whole).categories) == [18]


def test_a_line_break_in_a_name_is_a_space() -> None:
    long = {"id": 18, "name": "traffic\n\tlight"}
    assert parse_instances({**content(), "categories": [long]}).categories == {18: "traffic light"}


def test_a_damaged_polygon_names_its_annotation() -> None:
    (image,) = parse_instances(content({**SQUARE, "segmentation": [["a"] * 6]})).images
    with pytest.raises(DataError, match="not a COCO segmentation") as caught:
        image.masks()
    assert "image 7, annotation 1" in str(caught.value)


def test_reading_leaves_its_input_alone() -> None:
    truth, _ = scene(1, masks=True)
    before = copy.deepcopy(truth)
    for image in parse_instances(truth).images:
        image.masks()
    assert truth == before


ROW = {"image_id": 1, "category_id": 2, "score": 0.5, "bbox": [0, 0, 4, 2]}


@pytest.fixture
def truth() -> InstanceDataset:
    return parse_instances(scene(1)[0])


def read(rows: list[Any], truth: InstanceDataset, folder: Path, iou_type: Any = "bbox") -> Any:
    path = folder / "results.json"
    path.write_text(json.dumps(rows))
    return read_results(path, truth, iou_type)


@pytest.mark.parametrize("masks", [False, True])
def test_files_scored_from_end_to_end_equal_pycocotools(masks: bool, tmp_path: Path) -> None:
    content, rows = scene(21, images=8, masks=masks)
    iou_type: Any = "segm" if masks else "bbox"
    dataset = parse_instances(content)
    results = read(rows, dataset, tmp_path, iou_type)
    matrix = similarity(21, 4)
    metric = OpenAP(list(dataset.categories.values()), matrix, iou_type=iou_type)
    from_arrays = OpenAP(list(dataset.categories.values()), matrix, iou_type=iou_type)
    known = list(dataset.categories)
    for image in dataset.images:
        found = results[image.id]
        classes = np.searchsorted(known, image.category_ids)
        objects = Objects(classes, boxes=image.boxes, area=image.area, crowd=image.crowd)
        boxes = None if masks else found.boxes
        classes = np.searchsorted(known, found.category_ids)
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
    assert results[2].encoded == ()


def test_no_detections_at_all(tmp_path: Path) -> None:
    truth = parse_instances(scene(1, masks=True)[0])
    results = read([], truth, tmp_path, "segm")
    assert results.keys() == {1, 2, 3, 4}
    assert results[1].mask_overlap(truth.images[0]).shape[0] == len(results[1].area("segm")) == 0


def test_a_missing_box_is_that_of_the_mask(truth: InstanceDataset) -> None:
    mask = np.zeros((128, 128), np.uint8, order="F")
    mask[3:9, 2:4] = 1
    encoded = coco_mask.encode(mask)
    row = {**ROW, "bbox": [], "segmentation": {"size": [128, 128], "counts": encoded["counts"].decode()}}
    assert parse_results([row], truth, "bbox")[1].boxes.tolist() == [coco_mask.toBbox(encoded).tolist()]
    found = parse_results([row], truth, "segm")[1]
    assert np.array_equal(rle.decode(found.encoded[0]), mask.astype(bool))
    assert found.area("segm").tolist() == [12]
    polygon = {**ROW, "segmentation": [[2, 3, 4, 3, 4, 9, 2, 9]]}
    assert np.array_equal(rle.decode(parse_results([polygon], truth, "segm")[1].encoded[0]), mask.astype(bool))


def test_coco_results_everything_that_does_not_fit_is_listed_at_once(truth: InstanceDataset, tmp_path: Path) -> None:
    rows: list[Any] = [
        ROW, {**ROW, "image_id": 99}, {**ROW, "image_id": "1"}, {**ROW, "category_id": 1}, {**ROW, "score": None},
        {**ROW, "score": float("nan")}, {**ROW, "bbox": [0, 0, -4, 2]}, {"image_id": 1, "category_id": 2, "score": 1},
        {**ROW, "segmentation": {"size": [2, 2], "counts": "04"}}, "no detection", {**ROW, "image_id": [1]},
        {**ROW, "score": float("inf")}, {**ROW, "score": 10**400},
    ]  # fmt: skip
    with pytest.raises(DataError) as caught:
        read(rows, truth, tmp_path)
    assert str(caught.value).splitlines()[:10] == [
        "detections that do not match the ground truth",
        "  - image ids that are not in the ground truth: 99, '1', [1]",
        "  - category ids that are not in the ground truth: 1",
        "  - no score, at positions: 4",
        "  - scores that are not numbers (NaN), at positions: 5",
        "  - boxes that are not x, y, width, height, at positions: 6",
        "  - no bbox, at positions: 7",
        "  - masks of another size than their image, at positions: 8",
        "  - entries that are not detections, at positions: 9",
        "  - infinite scores, at positions: 11, 12",
    ]
    assert "results.json" in str(caught.value)


def test_masks_are_needed_and_read_only_when_masks_are_scored(truth: InstanceDataset) -> None:
    with pytest.raises(DataError, match="no segmentation, at positions: 0"):
        parse_results([ROW], truth, "segm")
    with pytest.raises(DataError, match="masks that cannot be read, at positions: 0"):
        parse_results([{**ROW, "segmentation": {"size": [128, 128]}}], truth, "segm")
    damaged = {**ROW, "segmentation": {"size": [128, 128], "counts": "!!"}}
    assert len(parse_results([damaged], truth, "bbox")[1].scores) == 1
    with pytest.raises(DataError, match="masks that cannot be read, at positions: 0"):
        parse_results([damaged], truth, "segm")


@pytest.mark.parametrize("text", [" ", "{}", "[1, 2", '[{"image_id": 1,]', "[] []", "[]x"])
def test_what_is_no_list_is_refused(text: str, truth: InstanceDataset, tmp_path: Path) -> None:
    path = tmp_path / "odd.json"
    path.write_text(text)
    with pytest.raises(DataError, match="not a JSON list") as caught:
        read_results(path, truth, "bbox")
    assert "odd.json" in str(caught.value)


def lvis_content(**image: Any) -> dict[str, Any]:
    lists = {"neg_category_ids": [3], "not_exhaustive_category_ids": [18]}
    groups = [{"id": 18, "name": "dog", "frequency": "f"}, {"id": 3, "name": "car", "frequency": "r"}]
    return {**content(SQUARE), "images": [{**PICTURE, **lists, **image}], "categories": groups}


def test_lvis_lists_what_is_absent_and_what_is_not_exhaustive() -> None:
    dataset = parse_instances(lvis_content())
    (image,) = dataset.images
    assert image.negative_ids is not None and image.not_exhaustive_ids is not None
    assert (image.negative_ids.tolist(), image.not_exhaustive_ids.tolist()) == ([3], [18])
    assert dataset.frequencies == {18: "f", 3: "r"}
    (plain,) = parse_instances(content(SQUARE)).images
    assert plain.negative_ids is None and plain.not_exhaustive_ids is None


def test_lvis_has_no_crowds_and_takes_names_of_images_from_their_address() -> None:
    url = "http://images.cocodataset.org/train2017/000000391895.jpg"
    crowded = lvis_content(file_name="", coco_url=url)
    crowded["annotations"] = [{**SQUARE, "iscrowd": 1}]
    (image,) = parse_instances(crowded).images
    assert not image.crowd.any()
    assert image.file_name == "train2017/000000391895.jpg"


@pytest.mark.parametrize(
    ("image", "message"),
    [
        ({"neg_category_ids": [4]}, "unknown category ids in neg_category_ids, in images: 7"),
        ({"not_exhaustive_category_ids": ["18"]}, "unknown category ids in not_exhaustive_category_ids, in images: 7"),
        ({"neg_category_ids": None}, "no list neg_category_ids, which other images have, in images: 7"),
    ],
)
def test_lists_that_lvis_would_not_have_are_an_error(image: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        parse_instances(lvis_content(**image))


def test_a_frequency_that_lvis_does_not_have_is_an_error() -> None:
    truth = lvis_content()
    truth["categories"][0]["frequency"] = "often"
    with pytest.raises(DataError, match="frequencies other than r, c, f, of categories: 18"):
        parse_instances(truth)


@pytest.mark.parametrize("area", [float("nan"), float("inf"), -1])
def test_an_area_is_a_number_of_pixels(area) -> None:
    content = {
        "images": [{"id": 7, "file_name": "a.jpg", "height": 4, "width": 4}],
        "categories": [{"id": 18, "name": "dog"}],
    }
    with pytest.raises(DataError, match="areas that are not numbers of pixels, of annotations"):
        parse_instances({**content, "annotations": [{**SQUARE, "area": area}]})


@pytest.mark.parametrize("crowd", ["0", 2, float("nan"), []])
def test_a_crowd_flag_is_one_or_zero(crowd: Any) -> None:
    with pytest.raises(DataError, match="iscrowd that is neither 1 nor 0, of annotations: 1"):
        parse_instances(content({**SQUARE, "iscrowd": crowd}))
    (image,) = parse_instances(content({**SQUARE, "iscrowd": None}, {**SQUARE, "id": 2, "iscrowd": True})).images
    assert image.crowd.tolist() == [False, True]


@pytest.mark.parametrize(
    ("picture", "annotation", "message"),
    [
        ({"width": 0}, {}, "images whose sides are not above 0"),
        ({"height": 5.5}, {}, "5.5 is not a whole number"),
        ({"id": 2**70}, {"image_id": 2**70}, "ids of images or categories with more than 18 digits"),
        ({}, {"id": 2**70}, "annotation ids with more than 18 digits"),
        ({}, {"id": 1.5}, "1.5 is not a whole number"),
        ({}, {"bbox": [0, 0, 1e200, 1e200]}, "boxes that are not x, y, width, height, of annotations: 1"),
    ],
)
def test_numbers_that_no_record_can_hold_are_refused(picture: Any, annotation: Any, message: str) -> None:
    truth = content({**SQUARE, **annotation})
    truth["images"] = [{**PICTURE, **picture}]
    with pytest.raises(DataError, match=message):
        parse_instances(truth)


def test_one_annotation_id_as_a_number_and_as_a_text_comes_twice() -> None:
    with pytest.raises(DataError, match="duplicate annotation ids: 1"):
        parse_instances(content(SQUARE, {**SQUARE, "id": "1"}))


def test_a_score_is_a_number(truth: InstanceDataset) -> None:
    with pytest.raises(DataError, match="no score, at positions: 0"):
        parse_results([{**ROW, "score": True}], truth, "bbox")


def test_a_byte_order_mark_is_no_content(truth: InstanceDataset, tmp_path: Path) -> None:
    (tmp_path / "results.json").write_bytes(b"\xef\xbb\xbf" + json.dumps([ROW]).encode())
    assert len(read_results(tmp_path / "results.json", truth, "bbox")[1].scores) == 1
