"""Detections and segments at the image's size, from dictionaries of boxes or from queries of transformers' networks.

>>> shape = Prepared({}, (1, 4), (1, 4), (1, 4))
>>> answer = {"boxes": np.array([[1, 0, 3, 1]]), "labels": np.array([1]), "scores": np.array([0.5])}
>>> [found] = read_detections([answer], [shape], ClassNames.of(["cat", "dog"]), MaskReading())
>>> found.masks.astype(int).tolist(), found.boxes.tolist(), found.labels.tolist()
([[[0, 1, 1, 0]]], [[1.0, 0.0, 3.0, 1.0]], [1])
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.models.roles import Instances, LabelMap, Segments
from hardlook.models.wrapping.class_names import ClassNames
from hardlook.models.wrapping.outputs import (
    MaskReading,
    Queries,
    check_numbers,
    find_queries,
    fit_maps,
    get_field,
    like,
    output_error,
    resize_nearest,
    sigmoid,
    to_array,
)
from hardlook.models.wrapping.preprocessing import Prepared, Size

OVERLAP = 0.8
"""Share of a query's own pixels that it must win to become a panoptic segment, as in MaskFormer."""

DETECTIONS = 100
"""Detections of networks that give every query a score for every class: the best of an image."""

_AT_ONCE = 16  # masks that are enlarged at a time: a hundred of a large photograph would take gigabytes


def read_detections(
    raw: Any,
    prepared: Sequence[Prepared],
    names: ClassNames,
    reading: MaskReading,
    things: Sequence[bool] | None = None,
) -> list[Instances]:
    """One `Instances` per image, from dictionaries of boxes, or from queries with masks or boxes."""
    if (queries := find_queries(raw)) is not None:
        found = [_detect_by_queries(queries, place, one, names, reading) for place, one in enumerate(prepared)]
    else:
        answers = _list_dictionaries(raw)
        if answers is None or len(answers) != len(prepared):
            raise output_error(raw, "instance-segmenter")
        found = [_read_dictionary(answers[place], one, names, reading) for place, one in enumerate(prepared)]
    return [_make_instances(*one, names, things) for one in found]


def read_segments(
    raw: Any, prepared: Sequence[Prepared], names: ClassNames, things: Sequence[bool], reading: MaskReading
) -> list[Segments]:
    """One `Segments` per image, from queries with masks, or from maps of segments with their classes."""
    if (queries := find_queries(raw)) is not None and queries.masks is not None:
        return [_segment_by_queries(queries, place, one, names, things, reading) for place, one in enumerate(prepared)]
    answers = [raw] if isinstance(raw, Mapping) else raw
    known = isinstance(answers, Sequence) and all(get_field(one, "segments_info") is not None for one in answers)
    if not known or len(answers) != len(prepared):
        raise output_error(raw, "panoptic-segmenter")
    return [_relabel_segments(answers[place], one, names, things) for place, one in enumerate(prepared)]


def _fit_queries(queries: Queries, place: int, one: Prepared, chosen: NDArray[Any]) -> Iterator[NDArray[np.float32]]:
    """Mask probabilities (n, H, W) of the chosen queries of an image, a few at a time."""
    for start in range(0, len(chosen), _AT_ONCE):
        some = chosen[start : start + _AT_ONCE].tolist()
        check_numbers(queries.masks[place][some], "the network's output of masks")
        yield sigmoid(to_array(fit_maps(queries.masks[place][some][None], one))[0])


Found = tuple[NDArray[np.bool_], NDArray[np.float32], NDArray[np.float32], NDArray[np.intp]]
"""Masks (n, H, W), boxes (n, 4), scores (n,) and classes (n,) of one image."""


def _detect_by_queries(queries: Queries, place: int, one: Prepared, names: ClassNames, reading: MaskReading) -> Found:
    """The best pairs of query and class; with masks alone their score counts too, as in Mask2Former."""
    scores, single = queries.score_classes(place, names)
    if single and queries.boxes is not None:
        which, classes = np.arange(len(scores)), scores.argmax(axis=1)
        best = scores.max(axis=1)
    else:
        flat = scores.ravel()
        kept = np.argsort(-flat, kind="stable")[: len(scores) if queries.boxes is None else min(DETECTIONS, flat.size)]
        which, classes, best = kept // scores.shape[1], kept % scores.shape[1], flat[kept]
    boxes = None if queries.boxes is None else _scale_relative(queries.boxes[place][which], one)
    if queries.masks is None:
        assert boxes is not None
        return fill_boxes(boxes, one.image_size), boxes, best, classes
    distinct, order = np.unique(which, return_inverse=True)
    parts, certainty = [np.zeros((0, *one.image_size), bool)], [np.zeros(0, np.float32)]
    for soft in _fit_queries(queries, place, one, distinct):
        hard = soft > reading.threshold
        parts.append(hard)
        certainty.append((soft * hard).sum(axis=(1, 2)) / (hard.sum(axis=(1, 2)) + np.float32(1e-6)))
    masks = np.concatenate(parts)[order]
    if boxes is None:
        boxes, best = find_boxes(masks), best * np.concatenate(certainty)[order]
    drawn = masks.any(axis=(1, 2))
    return masks[drawn], boxes[drawn], best[drawn], classes[drawn]


def _segment_by_queries(
    queries: Queries, place: int, one: Prepared, names: ClassNames, things: Sequence[bool], reading: MaskReading
) -> Segments:
    """Queries that are sure of their class share the pixels by class score x mask probability, as in MaskFormer."""
    scores, single = queries.score_classes(place, names)
    none = 1 - scores.sum(axis=1) if single else np.zeros(len(scores), np.float32)
    best, labels = scores.max(axis=1), names.to_labels(scores.argmax(axis=1))
    kept = np.flatnonzero((best > none) & (best > reading.threshold) & (labels >= 0))
    segment_map = np.zeros(one.image_size, np.int32)
    if not len(kept):
        return Segments(segment_map, {})
    soft = np.concatenate(list(_fit_queries(queries, place, one, kept)))
    winner = (soft * best[kept, None, None]).argmax(axis=0)
    drawn: dict[int, int] = {}
    for index, query in enumerate(kept.tolist()):
        own = soft[index] >= reading.threshold
        won = winner == index
        part = won & own
        if not part.any() or won.sum() < OVERLAP * own.sum():
            continue
        _draw_segment(segment_map, drawn, part, int(labels[query]), things)
    return Segments(segment_map, drawn)


def _draw_segment(
    segment_map: LabelMap, drawn: dict[int, int], part: NDArray[np.bool_], label: int, things: Sequence[bool]
) -> None:
    """Add a segment; a stuff label has one segment, which grows."""
    earlier = next((segment for segment, known in drawn.items() if known == label), None)
    segment = earlier if earlier is not None and not things[label] else len(drawn) + 1
    segment_map[part] = segment
    drawn[segment] = label


def _relabel_segments(answer: Any, one: Prepared, names: ClassNames, things: Sequence[bool]) -> Segments:
    segment_map, drawn = np.zeros(one.image_size, np.int32), dict[int, int]()
    ids = get_field(answer, "segmentation")
    if ids is None:
        return Segments(segment_map, drawn)
    ids = to_array(ids)
    if ids.shape != one.image_size:
        ids = resize_nearest(ids, one)
    for info in get_field(answer, "segments_info"):
        label = int(names.to_labels(np.array(info.get("label_id", info.get("category_id")))))
        part = ids == info["id"]
        if label >= 0 and part.any():
            _draw_segment(segment_map, drawn, part, label, things)
    return Segments(segment_map, drawn)


def _list_dictionaries(raw: Any) -> Sequence[Any] | None:
    """One dictionary of boxes per image; scripted detectors give them after the losses."""
    if isinstance(raw, tuple) and len(raw) == 2 and isinstance(raw[0], Mapping) and isinstance(raw[1], list):
        raw = raw[1]
    answers = [raw] if isinstance(raw, Mapping) else raw
    if not isinstance(answers, list | tuple):
        return None
    known = all(isinstance(one, Mapping) and {"boxes", "labels", "scores"} <= set(one) for one in answers)
    return answers if known else None


def _read_dictionary(answer: Mapping[str, Any], one: Prepared, names: ClassNames, reading: MaskReading) -> Found:
    """Boxes and masks in the input's pixels at the image's size; without masks, boxes are filled."""
    scores, classes = to_array(answer["scores"]).reshape(-1), to_array(answer["labels"]).reshape(-1)
    boxes = to_array(answer["boxes"])
    expected = (len(scores), 4)
    if not boxes.size:
        boxes = boxes.reshape(0, 4)
    if boxes.shape != expected or classes.shape != scores.shape or not np.array_equal(classes, classes.astype(np.intp)):
        raise output_error(answer, "instance-segmenter")
    boxes = _scale_boxes(boxes, one)
    soft = answer.get("masks")
    if soft is None:
        return fill_boxes(boxes, one.image_size), boxes, scores, classes.astype(np.intp)
    if soft.ndim == 3:
        soft = soft[:, None]
    if soft.ndim != 4 or soft.shape[1] != 1 or soft.shape[0] != len(scores):
        raise output_error(answer, "instance-segmenter")
    parts = [np.zeros((0, *one.image_size), bool)]
    for start in range(0, len(scores), _AT_ONCE):
        some = soft[start : start + _AT_ONCE]
        values = reading.to_probabilities(to_array(some), "a mask of the network")
        parts.append(to_array(fit_maps(like(values, some), one))[:, 0] > reading.threshold)
    return np.concatenate(parts), boxes, scores, classes.astype(np.intp)


def _make_instances(
    masks: NDArray[np.bool_],
    boxes: NDArray[np.float32],
    scores: NDArray[np.float32],
    classes: NDArray[np.intp],
    names: ClassNames,
    things: Sequence[bool] | None,
) -> Instances:
    labels = names.to_labels(classes)
    kept = labels >= 0
    if things is not None and len(labels):
        kept &= np.asarray(things, bool)[labels]
    order = np.flatnonzero(kept)[np.argsort(-scores[kept], kind="stable")]
    height, width = masks.shape[1:]
    limits = np.array([width, height, width, height], np.float32)
    return Instances(
        masks[order],
        np.clip(boxes[order], 0, limits).astype(np.float32),
        scores[order].astype(np.float32),
        labels[order],
    )


def _scale_boxes(boxes: NDArray[np.float32], one: Prepared) -> NDArray[np.float32]:
    (height, width), (rows, columns) = one.image_size, one.content_size
    factor = np.array([width / columns, height / rows] * 2, np.float32)
    return np.asarray(boxes * factor, np.float32)


def _scale_relative(boxes: NDArray[np.float32], one: Prepared) -> NDArray[np.float32]:
    """Boxes of centre, width and height as shares of the image, as x0, y0, x1, y1 in its pixels."""
    height, width = one.image_size
    half = boxes[:, 2:] / 2
    corners = np.concatenate([boxes[:, :2] - half, boxes[:, :2] + half], axis=1)
    return np.asarray(corners * np.array([width, height] * 2, np.float32), np.float32)


def fill_boxes(boxes: NDArray[np.float32], size: Size) -> NDArray[np.bool_]:
    """Masks (N, H, W) of boxes (N, 4): the pixels whose centres lie in them.

    >>> fill_boxes(np.array([[0.4, 0, 2.6, 1]], np.float32), (2, 4))[0].astype(int).tolist()
    [[1, 1, 1, 0], [0, 0, 0, 0]]
    """
    x, y = np.arange(size[1]) + 0.5, np.arange(size[0]) + 0.5
    columns = (x >= boxes[:, :1]) & (x < boxes[:, 2:3])
    rows = (y >= boxes[:, 1:2]) & (y < boxes[:, 3:4])
    return np.asarray(rows[:, :, None] & columns[:, None, :])


def find_boxes(masks: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Boxes (N, 4) around masks (N, H, W): x0, y0, x1, y1 with the far edge exclusive; 0 for an empty mask.

    >>> find_boxes(np.array([[[0, 1, 1], [0, 1, 0]]], bool)).tolist()
    [[1.0, 0.0, 3.0, 2.0]]
    """
    edges = []
    for axis in (1, 2):  # columns, then rows, that a mask touches
        touched = np.asarray(masks.any(axis=axis))
        near, far = touched.argmax(axis=1), touched.shape[1] - touched[:, ::-1].argmax(axis=1)
        edges.append((near, np.where(touched.any(axis=1), far, 0)))
    (left, right), (top, bottom) = edges
    return np.stack([left, top, right, bottom], axis=1).astype(np.float32)
