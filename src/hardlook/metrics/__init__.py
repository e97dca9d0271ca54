"""Metrics from arrays: numpy arrays or torch tensors in, numbers out; no files, no models.

Each metric is a pure function; the class beside it only accumulates (update, merge, compute, reset).

>>> from hardlook.metrics import open_miou
>>> round(open_miou([[3, 1], [1, 2]], [[1, 0.5], [0.5, 1]]).open.miou, 3)
0.746
"""

from __future__ import annotations

from hardlook.metrics.confusion import PairCounts, confusion_counts
from hardlook.metrics.detection import Detections, Objects
from hardlook.metrics.mean_iou import MeanIoU
from hardlook.metrics.open_ap import OpenAP, open_average_precision
from hardlook.metrics.open_miou import OpenMeanIoU, open_miou
from hardlook.metrics.open_pq import OpenPQ, open_pq
from hardlook.metrics.panoptic import Segments

__all__ = [
    "Detections",
    "MeanIoU",
    "Objects",
    "OpenAP",
    "OpenMeanIoU",
    "OpenPQ",
    "PairCounts",
    "Segments",
    "confusion_counts",
    "open_average_precision",
    "open_miou",
    "open_pq",
]
