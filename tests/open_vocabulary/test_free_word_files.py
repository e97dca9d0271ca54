"""Stored predictions in free words: phrases beside numbered maps, in COCO's results, and in panoptic JSON."""

import json

import cv2
import numpy as np
import pytest

from hardlook.data.coco_detection import read_instances, read_phrased_results
from hardlook.data.coco_panoptic import encode_ids
from hardlook.errors import DataError
from hardlook.harness.runs.launch import launch
from hardlook.open_vocabulary.pq.annotations import read_phrased_annotations
from hardlook.similarity.label_sets import load_label_set
from hardlook.similarity.labels import label_text

TRUTH = np.array([[0, 0, 1, 1]] * 4, np.uint8)  # car, sky


def run(name, folder, **given):
    out = folder / f"run-{len(list(folder.glob('run-*')))}"
    result = launch(name, out=out, given={"resamples": 0, "compare": (), "pred_words": "free", **given})
    assert not len(result.scored.failures), result.scored.failures
    return result.scored.scorecard


@pytest.fixture
def maps(tmp_path):
    """Two images of car and sky; the first is called right in other words, the second in part."""
    for folder in ("gt", "pred"):
        (tmp_path / folder).mkdir()
        for name in ("a", "b"):
            cv2.imwrite(str(tmp_path / folder / f"{name}.png"), TRUTH)
    (tmp_path / "labels.csv").write_text("name,synset\ncar,car.n.01\nsky,sky.n.01\n")
    return tmp_path


def score_maps(maps, phrases, **more):
    (maps / "pred" / "phrases.json").write_text(json.dumps(phrases))
    given = {"gt": maps / "gt", "pred": maps / "pred", "labels": str(maps / "labels.csv"), **more}
    return run("open-miou", maps, **given)


def test_maps_with_phrases(maps):
    found = score_maps(maps, {"a": ["an automobile", "the skies"], "b": ["a motor vehicle", "sky"]})
    # Half of the car's pixels have the hypernym, path similarity .5; sky is right everywhere.
    assert found.get("open-iou", **{"class": "car"}).value == pytest.approx(0.75)
    assert found.get("open-miou").value == pytest.approx((0.75 + 1) / 2)
    assert found.get("miou").value == pytest.approx((0.5 + 1) / 2)


def test_numbers_may_be_stated(maps):
    cv2.imwrite(str(maps / "pred" / "a.png"), TRUTH * 7 + 3)
    found = score_maps(maps, {"a": {"3": "cars", "10": "sky"}, "b": {"0": "car", "1": "sky"}})
    assert found.get("miou").value == 1


def test_one_based_maps_count_phrases_from_one(maps):
    for name in ("a", "b"):
        cv2.imwrite(str(maps / "pred" / f"{name}.png"), TRUTH + 1)
    found = score_maps(maps, {"a": ["cars", "sky"], "b": ["car", "sky"]}, pred_numbering="one-based")
    assert found.get("miou").value == 1


def test_a_number_without_a_phrase_is_wrong_and_counted(maps):
    found = score_maps(maps, {"a": ["car"], "b": ["car", "sky"]})
    assert found.get("iou", **{"class": "sky"}).value == pytest.approx(0.5)
    assert any("a number that is no label" in note.what for note in found.noted)
    found = score_maps(maps, {"b": ["car", "sky"]})
    assert found.get("miou").value == pytest.approx(0.5)


def test_phrases_of_images_that_are_not_there(maps):
    with pytest.raises(DataError, match=r"2 images have phrases and no truth: a\.png, b\.png") as error:
        score_maps(maps, {"a.png": ["car", "sky"], "b.png": ["car", "sky"]})
    assert "phrases.json" in str(error.value) and "without the suffix" in error.value.remedy


def test_two_phrases_of_one_number(maps):
    with pytest.raises(DataError, match="two phrases have one number") as error:
        score_maps(maps, {"a": {"0": "car", "00": "truck", "1": "sky"}, "b": ["car", "sky"]})
    assert error.value.unit == "a"


def test_maps_without_phrases(maps):
    with pytest.raises(DataError, match=r"there is no phrases.json") as error:
        run("open-miou", maps, gt=maps / "gt", pred=maps / "pred", labels=str(maps / "labels.csv"))
    assert "a red car" in error.value.remedy


@pytest.fixture
def objects(tmp_path):
    """An image with a car and a dog, and where results go."""
    truth = {
        "images": [{"id": 7, "file_name": "a.jpg", "width": 40, "height": 20}],
        "categories": [{"id": 1, "name": "car"}, {"id": 2, "name": "dog"}],
        "annotations": [
            {"id": 1, "image_id": 7, "category_id": 1, "bbox": [0, 0, 10, 10], "area": 100, "iscrowd": 0},
            {"id": 2, "image_id": 7, "category_id": 2, "bbox": [20, 0, 10, 10], "area": 100, "iscrowd": 0},
        ],
    }
    (tmp_path / "truth.json").write_text(json.dumps(truth))
    (tmp_path / "labels.csv").write_text("name,synset\ncar,car.n.01\ndog,dog.n.01\n")
    return tmp_path


def make_detection(phrase, x, score):
    return {"image_id": 7, "phrase": phrase, "score": score, "bbox": [x, 0, 10, 10]}


def score_objects(objects, rows):
    (objects / "results.json").write_text(json.dumps(rows))
    given = {"gt": objects / "truth.json", "pred": objects / "results.json", "labels": str(objects / "labels.csv")}
    return run("open-ap", objects, iou="bbox", **given)


def test_detections_with_phrases(objects):
    found = score_objects(objects, [make_detection("red automobiles", 0, 0.9), make_detection("a puppy", 20, 0.8)])
    assert found.get("ap", **{"class": "car"}).value == pytest.approx(1)
    assert found.get("ap", **{"class": "dog"}).value == 0
    # A puppy is one step below a dog: recall stops at .5, so 51 of 101 points are reached.
    assert found.get("open-ap", **{"class": "dog"}).value == pytest.approx(51 / 101)


def test_the_order_of_detections_changes_nothing(objects):
    rows = [make_detection("zebra", 20, 0.8), make_detection("automobile", 0, 0.9), make_detection("a puppy", 20, 0.7)]
    first = score_objects(objects, rows)
    assert str(score_objects(objects, rows[::-1]).scores) == str(first.scores)
    numbers, _ = read_phrased_results(objects / "results.json", read_instances(objects / "truth.json"), "bbox")
    assert numbers == {0: "a puppy", 1: "automobile", 2: "zebra"}


@pytest.mark.parametrize("phrase", [None, 3, ["dog"]])
def test_detections_without_a_phrase(objects, phrase):
    rows = [make_detection("dog", 0, 0.9), make_detection(phrase, 0, 0.9), "dog"]
    with pytest.raises(DataError, match=r"no phrase, at positions: 1, 2"):
        score_objects(objects, rows)


@pytest.fixture
def segments(tmp_path):
    """An image with a car, a crowd of cars, and sky."""
    ids = np.zeros((10, 10), np.int32)
    ids[:4], ids[4:8], ids[8:] = 1, 2, 3
    content = {
        "images": [{"id": 5, "file_name": "a.jpg", "width": 10, "height": 10}],
        "categories": [{"id": 1, "name": "car", "isthing": 1}, {"id": 2, "name": "sky", "isthing": 0}],
        "annotations": [
            {
                "image_id": 5,
                "file_name": "a.png",
                "segments_info": [
                    {"id": 1, "category_id": 1, "iscrowd": 0},
                    {"id": 2, "category_id": 1, "iscrowd": 1},
                    {"id": 3, "category_id": 2, "iscrowd": 0},
                ],
            }
        ],
    }
    (tmp_path / "truth.json").write_text(json.dumps(content))
    (tmp_path / "labels.csv").write_text("name,synset,isthing\ncar,car.n.01,1\nsky,sky.n.01,0\n")
    for folder in ("truth", "results"):
        (tmp_path / folder).mkdir()
        cv2.imwrite(str(tmp_path / folder / "a.png"), encode_ids(ids)[..., ::-1])
    return tmp_path


def score_segments(segments, *said):
    info = [{"id": row, "phrase": phrase, "isthing": thing} for row, (phrase, thing) in enumerate(said, 1)]
    rows = {"annotations": [{"image_id": 5, "file_name": "a.png", "segments_info": info}]}
    (segments / "results.json").write_text(json.dumps(rows))
    given = {"gt": segments / "truth.json", "pred": segments / "results.json", "labels": str(segments / "labels.csv")}
    return run("open-pq", segments, **given)


def test_segments_with_phrases(segments):
    # The second lies on a crowd of cars: whatever word for a car excuses it.
    found = score_segments(segments, ("an automobile", 1), ("motorcars", 1), ("the grey sky", 0))
    assert found.get("pq").value == found.get("open-pq").value == 1
    assert found.left_out[0].what == "predicted segments" and found.left_out[0].count == 1


def test_a_thing_that_is_called_stuff(segments):
    found = score_segments(segments, ("a motor vehicle", 0), ("car", 1), ("sky", 0))
    assert found.get("open-pq", **{"class": "car"}).value == 0
    found = score_segments(segments, ("a motor vehicle", 1), ("car", 1), ("sky", 0))
    assert found.get("open-pq", **{"class": "car"}).value == pytest.approx(0.5 / (0.5 + 0.5 / 2))
    assert found.get("open-pq").value == pytest.approx((2 / 3 + 1) / 2)  # no further class in the mean


@pytest.mark.parametrize("segment", [{"id": 1}, {"id": 1, "phrase": "car"}, {"id": 1, "phrase": 3, "isthing": 1}])
def test_segments_without_words(tmp_path, segment):
    file = tmp_path / "results.json"
    file.write_text(json.dumps([{"image_id": 5, "segments_info": [segment]}]))
    with pytest.raises(DataError, match="segments without phrase or isthing, in images: 5") as error:
        read_phrased_annotations(file)
    assert "phrase (a text) and isthing" in error.value.remedy


@pytest.mark.parametrize("content", ["{}", "3", '[{"image_id": 5}]', '[{"segments_info": 3}]', "["])
def test_damaged_panoptic_files(tmp_path, content):
    file = tmp_path / "results.json"
    file.write_text(content)
    with pytest.raises(DataError):
        read_phrased_annotations(file)


@pytest.mark.real
def test_the_truth_of_coco_in_plain_words(tmp_path, shared_data):
    folder = shared_data / "data" / "coco100"
    truth, labels = json.loads((folder / "panoptic.json").read_text()), load_label_set("coco133")
    truth["annotations"] = truth["annotations"][:12]
    said = {one["id"]: (label_text(labels.find(one["name"])), one["isthing"]) for one in truth["categories"]}
    answers = [
        {
            **row,
            "segments_info": [
                {
                    "id": one["id"],
                    "phrase": f"the {said[one['category_id']][0]}",
                    "isthing": said[one["category_id"]][1],
                }
                for one in row["segments_info"]
            ],
        }
        for row in truth["annotations"]
    ]
    for name, content in (("truth", truth), ("answers", answers)):
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    masks = {"gt_masks": folder / "panoptic", "pred_masks": folder / "panoptic", "labels": "coco133"}
    found = run("open-pq", tmp_path, gt=tmp_path / "truth.json", pred=tmp_path / "answers.json", **masks)
    # `tree` is tree-merged by its sense; kinds of walls and floors that WordNet does not have are near their kin.
    assert found.get("pq").value > 0.9 and found.get("open-pq").value > 0.97
    assert {one.slice["label"] for one in found.scores if one.name == "said-in"} >= {"tree-merged", "sky-other-merged"}
