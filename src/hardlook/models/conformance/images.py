"""Contracts of models that answer for every pixel: saliency, semantic, instance and panoptic segmentation.

>>> picture = pictures()["tiny image"]
>>> SALIENCY.find_faults(None, picture, np.full((8, 8), 2, np.float32))
['map: expected values in [0, 1], got 2 at index (0, 0)']
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hardlook.models.conformance.checks import (
    RoleContract,
    describe_difference,
    find_array_faults,
    missing_fields,
    split_answers,
)
from hardlook.models.conformance.probes import Probe, pictures


def _image_probes(model: Any) -> list[Probe]:
    return [Probe(name, image) for name, image in pictures().items()]


def _frame(image: Any) -> dict[str, int]:
    return {"H": image.shape[0], "W": image.shape[1]}


def _label_faults(model: Any) -> list[str]:
    labels = model.labels
    if not isinstance(labels, Sequence) or isinstance(labels, str) or not all(isinstance(name, str) for name in labels):
        return [f"labels: expected a sequence of names, got {type(labels).__name__}"]
    if not labels:
        return ["labels: expected at least one name, got none"]
    twice = sorted({name for name in labels if list(labels).count(name) > 1})
    return [f"labels: expected each name once, got {', '.join(twice)} more often"] if twice else []


def _thing_faults(model: Any) -> list[str]:
    count, flags = len(model.labels), len(model.things)
    wrong = [f"things: expected one flag for each of {count} labels, got {flags}"] if count != flags else []
    return _label_faults(model) + wrong


def _instance_faults(model: Any, image: Any, found: Any) -> list[str]:
    faults = missing_fields(found, "masks", "boxes", "scores", "labels")
    if faults:
        return faults
    count = len(found.scores)
    faults += find_array_faults("masks", found.masks, np.bool_, {"N": count, **_frame(image)})
    faults += find_array_faults("boxes", found.boxes, np.float32, {"N": count, "4": 4})
    faults += find_array_faults("scores", found.scores, np.float32, {"N": count}, 0, 1)
    faults += find_array_faults("labels", found.labels, np.int32, {"N": count}, 0, len(model.labels) - 1)
    return faults or _order_faults(found) + _box_faults(image, found.boxes)


def _order_faults(found: Any) -> list[str]:
    rises = np.flatnonzero(np.diff(found.scores) > 0)
    if not rises.size:
        return []
    at = int(rises[0])
    return [f"scores: expected the best first, got {found.scores[at]:.4g} before {found.scores[at + 1]:.4g}"]


def _box_faults(image: Any, boxes: Any) -> list[str]:
    height, width = image.shape[:2]
    outside = (boxes < 0).any(axis=1) | (boxes > [width, height, width, height]).any(axis=1)
    wrong = outside | (boxes[:, 2] < boxes[:, 0]) | (boxes[:, 3] < boxes[:, 1])
    if not wrong.any():
        return []
    came = boxes[wrong][0].tolist()
    return [f"boxes: expected x0, y0, x1, y1 within {width} x {height}, x0 <= x1, y0 <= y1, got {came}"]


def _instance_difference(first: Any, second: Any) -> str:
    pairs = ((name, getattr(first, name), getattr(second, name)) for name in ("labels", "scores", "boxes", "masks"))
    return next((words for words in (describe_difference(*pair) for pair in pairs) if words), "")


def _segment_faults(model: Any, image: Any, answer: Any) -> list[str]:
    faults = missing_fields(answer, "map", "labels")
    if faults:
        return faults
    faults = find_array_faults("map", answer.map, np.int32, _frame(image), low=0)
    if not isinstance(answer.labels, Mapping):
        return [*faults, f"labels: expected {{segment id: label index}}, got {type(answer.labels).__name__}"]
    unnamed = sorted(set(np.unique(answer.map).tolist()) - {0} - set(answer.labels))
    if unnamed:
        faults.append(f"labels: expected a label for every segment, got none for segment {unnamed[0]}")
    known = range(len(model.labels))
    faults += [
        f"labels: expected an index from 0 to {len(known) - 1}, got {label} for segment {segment}"
        for segment, label in answer.labels.items()
        if label not in known
    ]
    stuff = [label for label in answer.labels.values() if label in known and not model.things[label]]
    faults += [
        f"labels: expected at most one segment of the stuff {model.labels[label]!r}, got {stuff.count(label)}"
        for label in dict.fromkeys(stuff)
        if stuff.count(label) > 1
    ]
    return faults


def _segment_difference(first: Any, second: Any) -> str:
    # Segment ids are names without meaning: what counts is the labels and how many segments there are.
    if sorted(first.labels.values()) != sorted(second.labels.values()):
        return f"labels: segments of {sorted(first.labels.values())} against {sorted(second.labels.values())}"
    return describe_difference("map", _labelled(first), _labelled(second))


def _labelled(answer: Any) -> Any:
    table = {0: -1} | {int(segment): int(label) for segment, label in answer.labels.items()}
    ids, where = np.unique(answer.map, return_inverse=True)
    return np.array([table.get(int(segment), -2) for segment in ids])[where].reshape(answer.map.shape)


SALIENCY = RoleContract(
    input_name="images",
    probes=_image_probes,
    call=lambda model, images: split_answers(model.saliency(images), len(images), "images"),
    find_faults=lambda model, image, answer: find_array_faults("map", answer, np.float32, _frame(image), 0, 1),
    compare=lambda first, second: describe_difference("map", first, second),
)

SEMANTIC = RoleContract(
    input_name="images",
    probes=_image_probes,
    call=lambda model, images: split_answers(model.segment(images), len(images), "images"),
    find_faults=lambda model, image, answer: find_array_faults(
        "map", answer, np.int32, _frame(image), -1, len(model.labels) - 1
    ),
    compare=lambda first, second: describe_difference("map", first, second),
    attribute_faults=_label_faults,
)

INSTANCE = RoleContract(
    input_name="images",
    probes=_image_probes,
    call=lambda model, images: split_answers(model.detect(images), len(images), "images"),
    find_faults=_instance_faults,
    compare=_instance_difference,
    attribute_faults=_label_faults,
)

PANOPTIC = RoleContract(
    input_name="images",
    probes=_image_probes,
    call=lambda model, images: split_answers(model.segment_panoptic(images), len(images), "images"),
    find_faults=_segment_faults,
    compare=_segment_difference,
    attribute_faults=_thing_faults,
)
