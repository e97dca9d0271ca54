"""OpenAP of training loops equals hardlook.metrics bit for bit; its vanilla AP is torchmetrics' and pycocotools'."""

import pickle
import sys
import types

import numpy as np
import pytest

pytest.importorskip("torchmetrics", reason="needs the extra torchmetrics")
import torch
from detection_scenes import accumulated, image_arrays, pycocotools_evaluation
from lvis_scenes import lvis_scene
from torchmetrics import MetricCollection
from torchmetrics.detection import mean_ap
from training_batches import CATEGORY_IDS, LABELS, SIMILARITY, detection_dicts, flatten_ap, plain_ap, same

from hardlook import metrics
from hardlook.errors import DataError, OptionError
from hardlook.metrics import detection
from hardlook.torchmetrics import OpenAP

REGIONS = pytest.mark.parametrize("iou_type", ["bbox", "segm"])


def make_metric(iou_type="bbox", **options):
    return OpenAP(LABELS, SIMILARITY, iou_type=iou_type, **{"category_ids": CATEGORY_IDS, **options})


@REGIONS
def test_batches_by_update_and_forward_equal_one_pass(iou_type):
    data, preds, target = detection_dicts(5, masks=iou_type == "segm", images=6)
    expected = plain_ap(data, iou_type=iou_type)
    by_update, by_forward = make_metric(iou_type), make_metric(iou_type)
    for part in (slice(0, 1), slice(1, 4), slice(4, 6)):
        by_update.update(preds[part], target[part])
        images = [one["id"] for one in data[0]["images"][part]]
        alone = flatten_ap(accumulated(*data, SIMILARITY, iou_type, images).compute())
        assert same(by_forward(preds[part], target[part]), alone)
    assert expected["open-ap"] > 0
    assert same(by_update.compute(), expected)
    assert same(by_forward.compute(), expected)
    by_update.reset()
    by_update.update(preds[:1], target[:1])
    assert same(by_update.compute(), flatten_ap(accumulated(*data, SIMILARITY, iou_type, [1]).compute()))


def make_mean_average_precision(iou_type, monkeypatch):
    """torchmetrics' metric, which asks torchvision for nothing but the conversion of boxes to x, y, width, height."""
    if not mean_ap._TORCHVISION_AVAILABLE:
        operators = types.ModuleType("torchvision.ops")
        operators.box_convert = lambda boxes, in_fmt, out_fmt: torch.cat([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]], 1)
        monkeypatch.setitem(sys.modules, "torchvision", types.ModuleType("torchvision"))
        monkeypatch.setitem(sys.modules, "torchvision.ops", operators)
        monkeypatch.setattr(mean_ap, "_TORCHVISION_AVAILABLE", True)
    return mean_ap.MeanAveragePrecision(iou_type=iou_type)


@REGIONS
def test_vanilla_figures_are_those_of_torchmetrics_and_pycocotools(iou_type, monkeypatch):
    data, preds, target = detection_dicts(8, masks=iou_type == "segm", images=8, ties=False)
    ours = make_metric(iou_type)
    ours.update(preds, target)
    scores = ours.compute()
    summary = pycocotools_evaluation(*data, iou_type).stats
    names = ["ap", "ap50", "ap75", "aps", "apm", "apl", "ar1", "ar10", "ar", "ars", "arm", "arl"]
    for name, value in zip(names, summary, strict=True):
        assert float(scores[name]) == pytest.approx(np.nan if value == -1 else value, abs=1e-12, nan_ok=True)
    theirs = make_mean_average_precision(iou_type, monkeypatch)
    theirs.update(preds, target)
    figures = theirs.compute()
    of_theirs = ["map", "map_50", "map_75", "map_small", "map_medium", "map_large"]
    of_theirs += ["mar_1", "mar_10", "mar_100", "mar_small", "mar_medium", "mar_large"]
    for name, their_name in zip(names, of_theirs, strict=True):
        value = float(figures[their_name])
        assert float(scores[name]) == pytest.approx(np.nan if value == -1 else value, abs=1e-6, nan_ok=True)
    assert 0 < float(scores["ap"]) < float(scores["open-ap"]) < 1


def test_ids_make_the_order_of_images_irrelevant():
    data, preds, target = detection_dicts(5, images=6)
    expected, turned = plain_ap(data), make_metric()
    turned.update(preds[::-1], target[::-1])
    assert same(turned.compute(), expected)
    in_order = make_metric()
    in_order.update(preds, [{name: one[name] for name in one if name != "image_id"} for one in target])
    assert same(in_order.compute(), expected)


def test_merged_pickled_cloned_and_restored_states_go_on():
    data, preds, target = detection_dicts(6, images=5)
    expected = plain_ap(data)
    parts = make_metric(), make_metric()
    parts[0].update(preds[:2], target[:2])
    parts[1].update(preds[2:4], target[2:4])
    parts[0].merge_state(parts[1])
    again = pickle.loads(pickle.dumps(parts[0]))
    cloned = parts[0].clone()
    parts[0].persistent(True)
    restored = make_metric()
    restored.load_state_dict(parts[0].state_dict())
    for metric in (parts[0], again, cloned, restored):
        metric.update(preds[4:], target[4:])
        assert same(metric.to("cpu").half().compute(), expected)


@pytest.mark.parametrize(("box_format", "change"), [
    ("xywh", lambda box: torch.cat([box[:, :2], box[:, 2:] - box[:, :2]], 1)),
    ("cxcywh", lambda box: torch.cat([(box[:, :2] + box[:, 2:]) / 2, box[:, 2:] - box[:, :2]], 1)),
])  # fmt: skip
def test_boxes_in_other_formats(box_format, change):
    data, preds, target = detection_dicts(7)
    for one in (*preds, *target):
        one["boxes"] = change(one["boxes"])
    metric = make_metric(box_format=box_format)
    metric.update(preds, target)
    assert same(metric.compute(), plain_ap(data))


def test_soft_masks_with_a_channel_as_torchvision_returns_them():
    data, preds, target = detection_dicts(5, masks=True)
    for one in preds:
        one["masks"] = (one["masks"].float() * 0.4 + 0.3)[:, None]
    metric = make_metric("segm")
    metric.update(preds, target)
    assert same(metric.compute(), plain_ap(data, iou_type="segm"))


@pytest.mark.parametrize("values", [[0.2, torch.nan], [-2.0, 3.0], [0.0, 255.0]], ids=["nan", "logits", "bytes"])
def test_soft_masks_that_are_no_probabilities_are_refused(values):
    _, preds, target = detection_dicts(5, masks=True, images=1)
    soft = torch.tensor(values)[preds[0]["masks"].long()]
    metric = make_metric("segm")
    with pytest.raises(DataError, match="masks: expected probabilities"):
        metric.update([{**preds[0], "masks": soft}], target)
    metric.update([{**preds[0], "masks": preds[0]["masks"].double()}], target)


def test_masks_that_are_compared_on_their_device_give_the_same(monkeypatch):
    data, preds, target = detection_dicts(9, masks=True, images=6)
    monkeypatch.setattr(detection, "is_on_device", lambda *arrays: all(hasattr(one, "detach") for one in arrays))
    monkeypatch.setattr("hardlook.torchmetrics.open_ap.is_on_device", detection.is_on_device)
    metric = make_metric("segm")
    metric.update(preds, target)
    assert same(metric.compute(), plain_ap(data, iou_type="segm"))


def test_class_sets_federated_images_and_limits():
    truth, results = lvis_scene(3)
    labels, ids = [one["name"] for one in truth["categories"]], [one["id"] for one in truth["categories"]]
    matrix = np.eye(len(labels)) * 0.5 + 0.5
    options = {"iou_type": "bbox", "max_detections": 5, "class_sets": {"few": [0, 1]}, "category_ids": ids}
    plain, metric = metrics.OpenAP(labels, matrix, **options), OpenAP(labels, matrix, box_format="xywh", **options)
    for picture in truth["images"]:
        objects, found = image_arrays(truth, results, picture["id"])
        plain.update(objects, found, image=picture["id"])
        target = {
            "boxes": objects.boxes, "labels": np.array(ids)[objects.classes], "area": objects.area,
            "iscrowd": objects.crowd, "image_id": picture["id"], "negative": np.array(ids)[objects.negative],
            "not_exhaustive": np.array(ids)[objects.not_exhaustive],
        }  # fmt: skip
        preds = {"boxes": found.boxes, "labels": np.array(ids)[found.classes], "scores": found.scores}
        metric.update([preds], [target])
    assert same(metric.compute(), flatten_ap(plain.compute()))
    few = metric.build_metric().compute("few").summary(), plain.compute("few").summary()
    np.testing.assert_array_equal(*(list(one["open"].values()) for one in few))


def test_a_collection_of_boxes_and_masks_keeps_two_states():
    _, preds, target = detection_dicts(5, masks=True)
    for one in preds:
        one["boxes"] = torch.tensor([[0.0, 0, 9, 9]]).repeat(len(one["labels"]), 1)
    nothing = [{"labels": torch.zeros(0).long(), "boxes": torch.zeros(0, 4), "masks": torch.zeros(0, 4, 4).bool(),
                "scores": torch.zeros(0)}]  # fmt: skip
    collection = MetricCollection({"boxes": make_metric("bbox"), "masks": make_metric("segm")})
    collection.update(nothing, [{**nothing[0], "image_id": 99}])
    assert len(collection.compute_groups) == 2
    collection.update(preds, target)
    scores = collection.compute()
    alone = make_metric("segm")
    alone.update(preds, target)
    assert float(scores["masks_open-ap"]) == float(alone.compute()["open-ap"]) != float(scores["boxes_open-ap"])


def test_without_images_everything_is_undefined():
    metric = make_metric()
    with pytest.warns(UserWarning, match="called before the ``update`` method"):
        scores = metric.compute()
    assert all(np.isnan(float(value)) for value in scores.values())


def change(preds, target, **changes):
    """Both dictionaries with some values replaced; None takes one away."""
    answer = []
    for given, side in ((preds, "preds"), (target, "target")):
        new = {name: value for name, value in given.items() if changes.get(f"{side}_{name}", 0) is not None}
        new |= {key.partition("_")[2]: value for key, value in changes.items() if key.startswith(side)}
        answer.append({name: value for name, value in new.items() if value is not None})
    return answer


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"preds_scores": None}, "preds: expected labels, scores, boxes, got no scores"),
        ({"target_boxes": None}, "target: expected labels, boxes, got no boxes"),
        ({"preds_labels": torch.tensor([3])}, "preds, labels: 3 is none of the category ids 2 to 11"),
        ({"target_labels": torch.tensor([2.0])}, "target, labels: expected integers, got float32"),
        ({"preds_boxes": torch.tensor([[9.0, 9, 3, 3]])}, "sides that are not negative"),
        ({"preds_boxes": torch.zeros(2, 4)}, r"boxes: expected shape \(1, 4\), got \(2, 4\)"),
        ({"preds_scores": torch.tensor([torch.nan])}, "scores: expected finite numbers, got nan"),
        ({"target_iscrowd": torch.tensor([2])}, "crowd: expected true or false, got 2"),
        ({"target_image_id": torch.tensor([1, 2])}, "image_id: expected one whole number"),
    ],
)
def test_bad_input_is_named_with_image_and_remedy_and_leaves_the_state(changes, words):
    data, preds, target = detection_dicts(5)
    metric = make_metric()
    metric.update(preds, target)
    box = torch.tensor([[1.0, 1, 5, 5]])
    good = {"boxes": box, "labels": torch.tensor([2]), "scores": torch.tensor([0.5])}, {
        "boxes": box, "labels": torch.tensor([2]), "image_id": 50,
    }  # fmt: skip
    bad = change(*good, **changes)
    with pytest.raises(DataError, match=words) as error:
        metric.update([good[0], bad[0]], [{**good[1], "image_id": 51}, bad[1]])
    assert error.value.remedy
    assert "50" in error.value.unit or "image 1" in error.value.unit
    assert same(metric.compute(), plain_ap(data))


def test_lists_of_unequal_length_and_single_dictionaries_are_errors():
    _, preds, target = detection_dicts(5)
    for given in ((preds[:1], target), (preds[0], target[0])):
        with pytest.raises(DataError, match="as many dictionaries of predictions as of targets"):
            make_metric().update(*given)


def test_an_image_twice_is_an_error_that_names_reset():
    _, preds, target = detection_dicts(5)
    metric = make_metric()
    for _ in range(2):
        metric.update(preds, target)
    with pytest.raises(DataError, match="added twice") as error:
        metric.compute()
    assert "reset" in error.value.remedy
    del target[0]["image_id"]
    metric.reset()
    metric.update(preds, target)
    with pytest.raises(DataError, match="some images have an image_id and others none"):
        metric.compute()


def test_bad_options_are_named():
    with pytest.raises(OptionError, match="expected iou_type segm or bbox"):
        OpenAP(LABELS, SIMILARITY, iou_type="masks")
    with pytest.raises(OptionError, match="category_ids: expected 4 ascending ids"):
        make_metric(category_ids=[3, 2, 1, 0])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@REGIONS
def test_on_a_gpu_the_value_is_the_same(iou_type):
    data, preds, target = detection_dicts(5, masks=iou_type == "segm", images=6)
    moved = [[{name: value.cuda() for name, value in one.items()} for one in part] for part in (preds, target)]
    for device in ("cpu", "cuda"):
        metric = make_metric(iou_type).to(device)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            metric.update(*moved)
        assert same(metric.compute(), plain_ap(data, iou_type=iou_type))
