"""The best detections of an image, small enough to keep in its record: for pictures only, never for scores."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.data import rle
from hardlook.data.coco_results import ImageDetections, IouType

MOST_KEPT = 12


@dataclass(frozen=True)
class KeptDetection:
    """A detection to draw: its label, its score, and a run-length encoded mask or x, y, width, height."""

    label: int
    score: float
    region: Any

    def mask(self, height: int, width: int) -> NDArray[np.bool_]:
        """Its pixels (height, width): those of the mask, or the frame of the box."""
        if isinstance(self.region, str):
            return rle.decode({"size": [height, width], "counts": self.region})
        return frame(self.region, height, width)


def frame(box: Sequence[float], height: int, width: int) -> NDArray[np.bool_]:
    """The outline (height, width) of a box, thick enough to be seen in a thumbnail.

    >>> frame([1, 1, 6, 6], 8, 8).astype(int)[:4]
    array([[0, 0, 0, 0, 0, 0, 0, 0],
           [0, 1, 1, 1, 1, 1, 1, 0],
           [0, 1, 1, 1, 1, 1, 1, 0],
           [0, 1, 1, 0, 0, 1, 1, 0]])
    """
    thickness = max(2, round(max(height, width) / 128))
    x0, y0 = round(box[0]), round(box[1])
    x1, y1 = round(box[0] + box[2]), round(box[1] + box[3])
    drawn = np.zeros((height, width), np.uint8)
    cv2.rectangle(drawn, (x0, y0), (x1 - 1, y1 - 1), 1, -1)
    if x1 - x0 > 2 * thickness and y1 - y0 > 2 * thickness:
        cv2.rectangle(drawn, (x0 + thickness, y0 + thickness), (x1 - thickness - 1, y1 - thickness - 1), 0, -1)
    return drawn.astype(bool)


def pack(found: ImageDetections, labels: Sequence[int], iou: IouType) -> bytes:
    """The detections with the highest scores as JSON, best first; `labels` are indices into the record's names."""
    best = np.argsort(-found.scores, kind="stable")[:MOST_KEPT].tolist()
    regions: Sequence[Any] = found.counts if iou == "segm" else found.boxes.tolist()
    rows = [[labels[row], float(found.scores[row]), regions[row]] for row in best]
    return json.dumps(rows, separators=(",", ":")).encode()


def unpack(packed: bytes) -> list[KeptDetection]:
    """Back from `pack`."""
    return [KeptDetection(*row) for row in json.loads(packed)] if packed else []
