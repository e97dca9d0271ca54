"""Detections answered by a model, or read from a file, with the labels they are written in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hardlook.benchmarks.open_ap.dataset import InstanceImage
from hardlook.contract.benchmark import Unit
from hardlook.data import rle
from hardlook.data.coco_results import ImageDetections
from hardlook.errors import ModelError, OptionError
from hardlook.models.roles import Instances

_REMEDY = "`hardlook check instance-segmenter MODEL` shows what else does not fit"


def answered_detections(units: Sequence[Unit], model: Any) -> list[tuple[ImageDetections, Mapping[int, str]]]:
    """Detections a unit, and what their category ids are called; the images go to the model as one batch."""
    contents: list[InstanceImage] = [unit.payload for unit in units]
    if model is None:
        return [(_stored(content, unit.id), content.spoken) for content, unit in zip(contents, units, strict=True)]
    spoken = dict(enumerate(model.labels))
    answers = model.detect([content.image for content in contents])
    return [
        (_detections(answer, content, len(spoken), unit.id), spoken)
        for answer, content, unit in zip(answers, contents, units, strict=True)
    ]


def _stored(content: InstanceImage, unit: str) -> ImageDetections:
    if content.stored is None:
        remedy = "give --model or --pred"
        raise OptionError("there is neither a model nor a stored prediction", unit=unit, remedy=remedy)
    return content.stored


def _detections(answer: Instances, content: InstanceImage, labels: int, unit: str) -> ImageDetections:
    """The model's answer as a results file would hold it, so that both ways into a score are one."""
    objects = content.objects
    assert objects is not None
    count, size = len(answer.labels), (objects.height, objects.width)
    masks, boxes = np.asarray(answer.masks, bool), np.asarray(answer.boxes, np.float64)
    scores, called = np.asarray(answer.scores, np.float64), np.asarray(answer.labels, np.int64)
    if masks.shape != (count, *size) or boxes.shape != (count, 4) or scores.shape != (count,):
        what = f"{count} labels, masks {masks.shape}, boxes {boxes.shape}, scores {scores.shape}"
        raise ModelError(f"the model answered {what} for an image of {size}", unit=unit, remedy=_REMEDY)
    if count and not (0 <= called.min() <= called.max() < labels):
        raise ModelError(f"the model answered a label outside 0..{labels - 1}", unit=unit, remedy=_REMEDY)
    if not np.isfinite(scores).all() or not np.isfinite(boxes).all():
        raise ModelError("the model answered a score or box that is no number", unit=unit, remedy=_REMEDY)
    sides = np.concatenate([boxes[:, :2], (boxes[:, 2:] - boxes[:, :2]).clip(0)], axis=1)
    counts = tuple(rle.encode(mask)["counts"] for mask in masks) if content.iou == "segm" else ()
    return ImageDetections(objects.id, objects.width, objects.height, called, scores, sides, counts)
