"""The pictures of a unit: the image, its objects, and the best detections with their scores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.benchmarks.open_ap.dataset import InstanceImage, read_unit
from hardlook.benchmarks.open_ap.kept_detections import frame, unpack
from hardlook.contract.benchmark import Unit
from hardlook.contract.records import Record
from hardlook.contract.sections import Picture
from hardlook.models.roles import LabelMap

PAPER = 238
Drawn = tuple[int, NDArray[np.bool_]]


def pictures_of(unit: Unit, record: Record) -> Sequence[Picture]:
    """What was seen, what is true, what was said: masks, or the frames of boxes where those are scored."""
    content: InstanceImage = read_unit(unit.payload, unit.id, pixels=True)
    objects = content.objects
    assert objects is not None
    names, size = record["names"].split("\n"), (objects.height, objects.width)
    image = content.image if content.image is not None else np.full((*size, 3), PAPER, np.uint8)
    if content.iou == "segm":
        regions = list(objects.masks())
    else:
        regions = [frame(box, *size) for box in objects.boxes.tolist()]
    truth = painted(zip(record["object_labels"], regions, strict=True), size)
    pictures = [Picture("image", image)] if content.image is not None else []
    pictures.append(Picture("truth", image, label_map=truth, label_names=names))
    if record["detections"]:
        kept = unpack(record["detections"])
        # The best is painted last, over the others.
        said = painted(((one.label, one.mask(*size)) for one in reversed(kept)), size)
        scored = [
            " ".join([name, *(f"{one.score:.2f}" for one in kept if one.label == row)])
            for row, name in enumerate(names)
        ]
        pictures.append(Picture("detections", image, label_map=said, label_names=scored))
    return pictures


def painted(regions: Iterable[Drawn], size: tuple[int, int]) -> LabelMap:
    """A label map (height, width), -1 for nothing; a rim keeps neighbours of one label apart.

    >>> left, right = np.zeros((1, 4), bool), np.zeros((1, 4), bool)
    >>> left[:, :2], right[:, 2:] = True, True
    >>> painted([(5, left), (5, right)], (1, 4))
    array([[ 5, -1,  5,  5]], dtype=int32)
    """
    drawn = np.full(size, -1, np.int32)
    cross = np.ones((3, 3), np.uint8)
    for label, region in regions:
        drawn[cv2.dilate(region.astype(np.uint8), cross).astype(bool)] = -1
        drawn[region] = label
    return drawn
