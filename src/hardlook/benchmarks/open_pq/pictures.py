"""The pictures of a unit: image, true segments and predicted ones, with blank seams between segments."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hardlook.benchmarks.open_pq.unit_files import read_unit
from hardlook.benchmarks.semantic_images.pictures import PAPER, decode_map
from hardlook.contract.benchmark import Unit
from hardlook.contract.records import Record
from hardlook.contract.sections import Picture
from hardlook.metrics.panoptic_matching import Segments
from hardlook.models.roles import LabelMap

# Pixels of an image's longer side for one pixel of seam: what a report's small picture can still show.
_SEAM = 256


def drawn_labels(segment_map: LabelMap, segments: Segments) -> LabelMap:
    """(H, W) int32 labels of a map of segment ids, -1 for void and for the seams, so that instances stay apart.

    >>> drawn_labels(np.array([[7, 7, 9, 9, 0]], np.int32), Segments([7, 9], [2, 2])).tolist()
    [[2, -1, 2, -1, -1]]
    """
    ids, classes = np.asarray(segments.ids, np.int64), np.asarray(segments.classes, np.int64)
    order = np.argsort(ids)
    labels = np.full(segment_map.shape, -1, np.int32)
    if len(ids):
        place = np.searchsorted(ids[order], segment_map).clip(max=len(ids) - 1)
        known = ids[order][place] == segment_map
        labels[known] = classes[order][place][known]
    for width in range(1, 1 + max(1, max(segment_map.shape) // _SEAM)):
        labels[:, :-width][segment_map[:, width:] != segment_map[:, :-width]] = -1
        labels[:-width][segment_map[width:] != segment_map[:-width]] = -1
    return labels


def pictures_of(unit: Unit, record: Record) -> Sequence[Picture]:
    """What was seen, what is true, what was said."""
    content = read_unit(unit.payload, unit.id)
    assert content.truth.map is not None
    names = record["names"].split("\n")
    truth = drawn_labels(content.truth.map, content.truth.segments)
    image = content.image if content.image is not None else np.full((*truth.shape, 3), PAPER, np.uint8)
    pictures = [Picture("true segments", image, label_map=truth, label_names=names)]
    if content.image is not None:
        pictures.insert(0, Picture("image", image))
    if record["prediction"]:
        predicted = decode_map(record["prediction"])
        pictures.append(Picture("predicted segments", image, label_map=predicted, label_names=names))
    return pictures
