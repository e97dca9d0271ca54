"""What one of two processes of a distributed validation does: its share of the batches, and the scores of all.

Run as `work(rank, folder)` in two processes at once. Each writes its answers to FOLDER/RANK.json, numbers by their
bits.
"""

import json
import os
import warnings
from datetime import timedelta
from pathlib import Path

import numpy as np
import torch
import torch.distributed
from detection_scenes import accumulated
from torchmetrics import MetricCollection
from training_batches import (
    CATEGORY_IDS,
    CLASSES,
    LABELS,
    MANY,
    SIMILARITY,
    THINGS,
    detection_dicts,
    label_maps,
    panoptic_maps,
    plain_pq,
)

from hardlook import metrics
from hardlook.torchmetrics import MeanIoU, OpenAP, OpenMeanIoU, OpenPQ, gather_metric

# Images of the two processes: unequal numbers, and with ids one that comes twice.
IMAGES = (range(0, 4), range(4, 6))
REPEATED = (range(0, 4), range(3, 6))
MANY_LABELS = [f"label {k}" for k in range(MANY)]


def half_alike(true, called):
    """A similarity of very many labels."""
    return np.where(true == called, 1.0, 0.5)


def maps():
    return label_maps(31, images=6)


def many_maps():
    return label_maps(32, MANY, images=6)


def panoptic():
    return panoptic_maps(33, images=6)


def detections(masks, image_ids=True):
    return detection_dicts(34, masks=masks, image_ids=image_ids, images=6)


def new_ap(**options):
    return OpenAP(LABELS, SIMILARITY, category_ids=CATEGORY_IDS, **options)


def exact(scores):
    """Scores as text that keeps every bit."""
    scores = scores if isinstance(scores, dict) else {"": scores}
    return {name: float(value).hex() for name, value in scores.items()}


def share(data, images):
    """The predictions and targets of some images."""
    return [data[-2][images.start : images.stop], data[-1][images.start : images.stop]]


def work(rank, folder):
    """Take part in the group, compute everything, write the answers."""
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=2, timeout=timedelta(seconds=60)
    )
    answers = compute_answers(rank)
    Path(folder, f"{rank}.json").write_text(json.dumps(answers))
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


def compute_answers(rank):
    mine, answers = IMAGES[rank], {}
    semantic = MetricCollection({"mean": MeanIoU(CLASSES), "open": OpenMeanIoU(LABELS, SIMILARITY)})
    semantic.update(*share(maps(), range(mine.start, mine.start + 1)))
    answers["early"] = exact(semantic.compute())
    for k in mine[1:]:  # what was computed for all does not stay in the state of one
        semantic.update(*share(maps(), range(k, k + 1)))
    answers["semantic"] = exact(semantic.compute())

    stepwise = OpenMeanIoU(LABELS, SIMILARITY, dist_sync_on_step=True)
    answers["step"] = exact(stepwise(*share(maps(), mine)))

    many = OpenMeanIoU(MANY_LABELS, half_alike)
    segments, boxes = OpenPQ(LABELS, SIMILARITY, THINGS), new_ap(iou_type="bbox")
    if rank == 1:  # the first process has no data
        many.update(*many_maps())
        segments.update(*panoptic())
        boxes.update(*detections(False)[1:])
    answers |= {"many": exact(many.compute()), "segments": exact(segments.compute()), "boxes": exact(boxes.compute())}
    if rank == 0:
        boxes.update(*detections(False)[1:])
    answers["local"] = exact(boxes.build_metric().compute().summary()["open"])

    masks = new_ap(iou_type="segm")
    for k in mine:
        masks(*share(detections(True, image_ids=False), range(k, k + 1)))
    answers["masks"] = exact(masks.compute())
    repeated = new_ap(iou_type="bbox")
    repeated.update(*share(detections(False), REPEATED[rank]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        answers["repeated"] = exact(repeated.compute())
    answers["warnings"] = [str(one.message) for one in caught]

    preds, target = share(maps(), mine)
    plain = metrics.OpenMeanIoU(LABELS, SIMILARITY)
    plain.update(target, preds)
    before = plain.confusion.sum()
    answers["plain"] = exact(gather_metric(plain).compute().open.__dict__ | {"per_class": 0})
    answers["unchanged"] = bool(plain.confusion.sum() == before)
    by_function = metrics.OpenMeanIoU(LABELS, lambda true, called: SIMILARITY[true, called])  # which does not pickle
    by_function.update(target, preds)
    answers["function"] = gather_metric(by_function).compute().open.miou.hex()

    truth, results = detections(False)[0]
    boxes = accumulated(truth, results, SIMILARITY, "bbox", [k + 1 for k in mine])
    answers["plain boxes"] = exact(gather_metric(boxes).compute().summary()["open"])
    segments = gather_metric(plain_pq(*share(panoptic(), mine)))
    answers["plain segments"] = exact(segments.compute().open.all.__dict__)

    other = MeanIoU(CLASSES, ignore=255 if rank else -5)
    try:
        other.update(target.clamp(max=CLASSES - 1), target.clamp(max=CLASSES - 1))
        other.compute()
    except Exception as error:
        answers["other settings"] = type(error).__name__
    return answers
