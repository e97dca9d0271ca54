"""Random detection data in COCO's format, rich in ties, crowds and empty images, and pycocotools' view of it."""

from __future__ import annotations

import contextlib
import copy
import io

import numpy as np
from pycocotools import mask as coco_mask
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from hardlook.metrics.detection import Detections, Objects
from hardlook.metrics.open_ap import OpenAP

SIDE = 128


def scene(seed, *, images=4, classes=4, ties=True, masks=False, most=6):
    """(truth, results): the contents of an instances.json and of a results json; category ids are 2, 5, 8, ..."""
    rng = np.random.default_rng(seed)
    categories = [{"id": 2 + 3 * k, "name": f"class {k}"} for k in range(classes)]
    annotations, results = [], []
    for image in range(1, images + 1):
        boxes = [_box(rng) for _ in range(rng.integers(0, most))]
        for box in boxes:
            annotations.append(
                {"id": len(annotations) + 1, "image_id": image, "category_id": _category(rng, classes), "bbox": box,
                 "area": float(box[2] * box[3]), "iscrowd": int(rng.random() < 0.15), **_region(box, masks, rng)}
            )  # fmt: skip
        for _ in range(rng.integers(0, 2 * most)):
            near = boxes and rng.random() < 0.8
            box = _moved(rng, boxes[rng.integers(len(boxes))]) if near else _box(rng)
            score = float(rng.integers(0, 5) / 4 if ties else rng.random())
            results.append(
                {"image_id": image, "category_id": _category(rng, classes), "score": score, **_region(box, masks, rng)}
                | ({} if masks else {"bbox": box})
            )
    pictures = [{"id": i, "width": SIDE, "height": SIDE} for i in range(1, images + 1)]
    # Annotations come in any order, as in real files.
    annotations = [annotations[i] for i in rng.permutation(len(annotations))]
    return {"images": pictures, "annotations": annotations, "categories": categories}, results


def similarity(seed, classes):
    """A random symmetric similarity with ones on the diagonal and some zeros."""
    rng = np.random.default_rng([seed, 1])
    values = np.triu(rng.random((classes, classes)) * (rng.random((classes, classes)) < 0.8), 1)
    return values + values.T + np.eye(classes)


def pycocotools_evaluation(truth, results, iou_type, *, use_categories=True):
    """A COCOeval that has evaluated and, with categories, accumulated and summarised."""
    with contextlib.redirect_stdout(io.StringIO()):
        ours = COCO()
        ours.dataset = copy.deepcopy(truth)
        ours.createIndex()
        theirs = ours.loadRes(copy.deepcopy(results)) if results else COCO()
        evaluation = COCOeval(ours, theirs, iou_type)
        evaluation.params.useCats = int(use_categories)
        evaluation.evaluate()
        if use_categories:
            evaluation.accumulate()
            evaluation.summarize()
    return evaluation


def image_arrays(truth, results, image):
    """(Objects, Detections) of one image, with boxes and, where the data has masks, masks."""
    classes = {category["id"]: k for k, category in enumerate(truth["categories"])}
    objects = [a for a in truth["annotations"] if a["image_id"] == image]
    found = [r for r in results if r["image_id"] == image]
    boxes = {"boxes": [a["bbox"] for a in objects]}
    found_boxes = {"boxes": [r["bbox"] for r in found]} if all("bbox" in r for r in found) else {}
    masked = any("segmentation" in entry for entry in (*objects, *found))
    (picture,) = (one for one in truth["images"] if one["id"] == image)
    federated = {
        name: [classes[one] for one in picture[f"{key}_category_ids"]]
        for name, key in (("negative", "neg"), ("not_exhaustive", "not_exhaustive"))
        if f"{key}_category_ids" in picture
    }
    return (
        Objects(
            [classes[a["category_id"]] for a in objects], area=[a["area"] for a in objects],
            crowd=[bool(a.get("iscrowd")) for a in objects], ids=[a["id"] for a in objects], **federated,
            **boxes, **({"masks": _stack(objects)} if masked else {}),
        ),
        Detections(
            [classes[r["category_id"]] for r in found], [r["score"] for r in found],
            **found_boxes, **({"masks": _stack(found)} if masked else {}),
        ),
    )  # fmt: skip


def accumulated(truth, results, matrix, iou_type, images=None, **options):
    """An OpenAP that has seen the images, all of them or those listed."""
    metric = OpenAP([c["name"] for c in truth["categories"]], matrix, iou_type=iou_type, **options)
    for image in images if images is not None else [picture["id"] for picture in truth["images"]]:
        metric.update(*image_arrays(truth, results, image), image=image)
    return metric


def assert_same_scores(one, other, places=slice(None)):
    """Two results agree in every class, area and threshold; `places` reorders the classes of the second."""
    for kind in ("vanilla", "dagger", "open"):
        for field in ("precision", "recall"):
            ours, theirs = (getattr(getattr(result, kind), field) for result in (one, other))
            np.testing.assert_allclose(ours, theirs[..., places], atol=1e-12, rtol=0)


def _category(rng, classes):
    return int(2 + 3 * rng.integers(classes))


def _box(rng):
    # Multiples of eight make equal overlaps common; the sides straddle the bounds at 32 and 96.
    width, height = rng.choice([8, 16, 32, 40, 96, 120], 2)
    x, y = (8 * rng.integers(0, (SIDE - side) // 8 + 1) for side in (width, height))
    return [float(value) for value in (x, y, width, height)]


def _moved(rng, box):
    x, y, width, height = box
    step = rng.choice([-8, -1, 0, 0, 0, 1, 4], 4)
    width, height = max(2, width + step[2]), max(2, height + step[3])
    x, y = max(0, x + step[0]), max(0, y + step[1])
    return [float(value) for value in (x, y, min(width, SIDE - x), min(height, SIDE - y))]


def _region(box, masks, rng):
    if not masks:
        return {}
    x, y, width, height = (int(value) for value in box)
    mask = np.zeros((SIDE, SIDE), np.uint8, order="F")
    mask[y : y + height, x : x + width] = 1
    # A corner is cut off, so that masks are not boxes.
    cut = int(rng.integers(0, 1 + min(width, height) // 4))
    mask[y : y + cut, x : x + cut] = 0
    encoded = coco_mask.encode(mask)
    return {"segmentation": {"size": [SIDE, SIDE], "counts": encoded["counts"].decode()}}


def _stack(entries):
    masks = [coco_mask.decode(entry["segmentation"]).astype(bool) for entry in entries]
    return np.stack(masks) if masks else np.zeros((0, SIDE, SIDE), bool)
