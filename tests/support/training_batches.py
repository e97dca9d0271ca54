"""Random batches as a training loop has them, and the metrics of hardlook.metrics on the same data in one pass."""

import numpy as np
import torch
from detection_scenes import accumulated, image_arrays, scene, similarity

from hardlook import metrics

CLASSES = 4
LABELS = [f"class {k}" for k in range(CLASSES)]
SIMILARITY = similarity(3, CLASSES)
THINGS = [True, True, False, False]
CATEGORY_IDS = [2 + 3 * k for k in range(CLASSES)]  # those of the scenes
MANY = 1500  # more classes than a table of counts has


def label_maps(seed, classes=CLASSES, images=3, shape=(6, 7), ignore=255):
    """(preds, target) label ids (N, H, W), with ignored pixels and predictions that are no label."""
    rng = np.random.default_rng(seed)
    target = rng.integers(0, classes, (images, *shape))
    preds = np.where(rng.random(target.shape) < 0.6, target, rng.integers(-1, classes + 1, target.shape))
    target[rng.random(target.shape) < 0.1] = ignore
    return torch.from_numpy(preds), torch.from_numpy(target)


def panoptic_maps(seed, images=3, void_predictions=True):
    """(preds, target) (N, 8, 9, 2) of category and instance ids; 255 is void."""
    rng = np.random.default_rng(seed)
    blocks = rng.integers(0, 6, (images, 4, 3)).repeat(2, 1).repeat(3, 2)
    category, instance = rng.integers(0, CLASSES, (images, 6)), rng.integers(-3, 40, (images, 6))
    rows = np.arange(images)[:, None, None]
    target = np.stack([category[rows, blocks], instance[rows, blocks]], -1)
    preds = target.copy()
    changed = rng.random(blocks.shape) < 0.15
    preds[changed] = target[:, ::-1][changed]
    renamed = rng.random((images, 6)) < 0.3
    preds[..., 0] = np.where(renamed[rows, blocks], (preds[..., 0] + 1) % CLASSES, preds[..., 0])
    target[rng.random(blocks.shape) < 0.1, 0] = 255
    if void_predictions:
        preds[rng.random(blocks.shape) < 0.1, 0] = 255
    return torch.from_numpy(preds), torch.from_numpy(target)


def detection_dicts(seed, *, masks=False, image_ids=True, images=4, ties=True):
    """(scene, preds, target): a scene of `detection_scenes` and its lists of dictionaries, boxes as x, y, x, y."""
    truth, results = scene(seed, images=images, classes=CLASSES, masks=masks, ties=ties)
    preds, target = [], []
    for picture in truth["images"]:
        objects, found = image_arrays(truth, results, picture["id"])
        for dictionaries, given in ((preds, found), (target, objects)):
            values = {"labels": torch.tensor([CATEGORY_IDS[k] for k in given.classes], dtype=torch.int64)}
            if given.boxes is not None:
                corners = torch.tensor(given.boxes, dtype=torch.float32)
                values["boxes"] = torch.cat([corners[:, :2], corners[:, :2] + corners[:, 2:]], dim=1)
            if masks:
                empty = given.masks is None or not len(given.masks)
                values["masks"] = torch.zeros((0, 4, 4), dtype=torch.bool) if empty else torch.from_numpy(given.masks)
            dictionaries.append(values)
        preds[-1]["scores"] = torch.tensor(found.scores, dtype=torch.float64)
        target[-1] |= {"iscrowd": torch.tensor(objects.crowd), "area": torch.tensor(objects.area)}
        if image_ids:
            target[-1]["image_id"] = torch.tensor([picture["id"]])
    return (truth, results), preds, target


def flatten_ap(result):
    """The figures of an OpenApResult under the names of the metric for training."""
    prefixes = {"open": "open-", "dagger": "dagger-", "vanilla": ""}
    return {
        prefixes[kind] + name.lower(): value
        for kind, figures in result.summary().items()
        for name, value in figures.items()
    }


def plain_ap(*scenes, iou_type="bbox"):
    """The figures of `hardlook.metrics.OpenAP` on the scenes, images in order."""
    metric = metrics.OpenAP(LABELS, SIMILARITY, iou_type=iou_type)
    for truth, results in scenes:
        for image in accumulated(truth, results, SIMILARITY, iou_type)._images.values():
            metric.add_images({len(metric._images): image})
    return flatten_ap(metric.compute())


def plain_pq(preds, target):
    """`hardlook.metrics.OpenPQ` on the maps, segments listed one by one."""
    metric = metrics.OpenPQ(LABELS, SIMILARITY, THINGS)
    for called, true in zip(preds.numpy(), target.numpy(), strict=True):
        sides = []
        for side in (true, called):
            segments = {}
            ids = np.zeros(side.shape[:2], np.int64)
            for place in np.ndindex(ids.shape):
                category, instance = side[place].tolist()
                if category != 255:
                    key = category, instance if THINGS[category] else 0
                    ids[place] = segments.setdefault(key, len(segments) + 1)
            sides += [ids, metrics.Segments(list(segments.values()), [category for category, _ in segments])]
        metric.update(*sides)
    return metric


def same(ours, expected):
    """Whether tensors and numbers are equal to the last bit, NaN to NaN, under the same names."""
    if not isinstance(ours, dict):
        ours, expected = {"": ours}, {"": expected}
    assert ours.keys() == expected.keys()
    for value in ours.values():
        assert value.dtype == torch.float64
        assert value.ndim == 0
    values = np.array([float(value) for value in ours.values()]), np.array([float(expected[name]) for name in ours])
    return np.array_equal(*values, equal_nan=True)
