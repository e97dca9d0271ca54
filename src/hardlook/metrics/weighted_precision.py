"""Every AP of one table of matches under many weightings of its images, each to the last bit as if made alone.

A bootstrap or a permutation test weighs the same images a thousand times. What no weighting changes is made once: for
each area range and threshold the detections that can matter. Those that are ignored never do, nor does a detection
that found nothing once its class has had its last hit. That leaves a sixth to a half of the table.

>>> from hardlook.metrics.detection_inputs import Detections, Objects
>>> from hardlook.metrics.detection_matching import match_image
>>> from hardlook.metrics.match_table import match_table
>>> good = match_image(Objects([0], area=[9]), Detections([0], [0.9], area=[9]), overlap=[[1.0]])
>>> bad = match_image(Objects([0], area=[9]), Detections([1], [0.8], area=[9]), overlap=[[1.0]])
>>> precision = WeightedPrecision(match_table([good, bad], classes=2), [[1, 0.5], [0.5, 1]])
>>> [round(float(precision.result(weights).open.per_class()[0]), 3) for weights in ([1, 1], [2, 0], [0, 2])]
[0.752, 1.0, 0.505]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardlook.metrics.array_input import Values
from hardlook.metrics.average_precision import RECALL_LEVELS, ApTable
from hardlook.metrics.detection_matching import AREA_RANGES, IOU_THRESHOLDS, UNMATCHED
from hardlook.metrics.match_table import MatchTable
from hardlook.metrics.open_ap import OpenApResult
from hardlook.metrics.similarity_matrix import checked_similarity


@dataclass(frozen=True, eq=False)
class Counting:
    """The detections that can matter, setting after setting: `places` in the table and the class each `found`.

    Setting p has those from `starts[p]` to `starts[p + 1]`.
    """

    starts: NDArray[np.int64]
    places: NDArray[np.int32]
    found: NDArray[np.int16]


def counting_detections(matched: NDArray[np.int16], labels: NDArray[np.int16], classes: int) -> Counting:
    """Those of `matched` (P, N), as a table of matches holds them, with `labels` (N,).

    >>> counting_detections(np.array([[-1, 0, -2, -1]], np.int16), np.array([0, 0, 0, 0], np.int16), 1).places
    array([0, 1], dtype=int32)
    """
    places, found = [np.zeros(0, np.int32)], [np.zeros(0, np.int16)]
    for row in matched:
        hits = np.flatnonzero(row >= 0)
        last = np.full(classes, -1)
        last[row[hits]] = hits  # ascending, so that the last one stays
        kept = np.flatnonzero((row >= 0) | ((row == UNMATCHED) & (np.arange(len(row)) < last[labels])))
        places.append(kept.astype(np.int32))
        found.append(row[kept])
    starts = np.cumsum([len(part) for part in places])
    return Counting(starts, np.concatenate(places), np.concatenate(found))


class WeightedPrecision:
    """Open AP, AP-dagger and COCO's AP of the images of `table` under `similarity` (K, K), for any weighting.

    `ranges` is how many of the area ranges are worked out, from 1, all areas, to 4; in others all figures are NaN.
    """

    def __init__(self, table: MatchTable, similarity: Values, ranges: int = len(AREA_RANGES)) -> None:
        if not 1 <= ranges <= len(AREA_RANGES):
            raise ValueError(f"ranges: expected 1 to {len(AREA_RANGES)} area ranges, got {ranges}")
        self.table = table
        self._settings = ranges * len(IOU_THRESHOLDS)
        self._similarity = np.ascontiguousarray(checked_similarity(similarity, table.classes))
        self._by_class = counting_detections(table.by_class, table.labels, table.classes)
        self._pooled = counting_detections(table.pooled, table.labels, table.classes)

    def result(self, multiplicity: ArrayLike) -> OpenApResult:
        """The scores where image i counts `multiplicity[i]` times, (images,) whole numbers.

        They equal those of `open_average_precision` on the weighted table, without recall of few detections.
        """
        weighted = self.table.weighted(multiplicity)
        objects = weighted.objects()
        weights = weighted.multiplicity[weighted.image].astype(np.float64)
        identity = np.eye(self.table.classes)
        return OpenApResult(
            vanilla=self._precision(self._by_class, weights, objects, identity),
            dagger=self._precision(self._pooled, weights, objects, identity),
            open=self._precision(self._pooled, weights, objects, self._similarity),
            objects=objects,
        )

    def _precision(
        self,
        counting: Counting,
        weights: NDArray[np.float64],
        objects: NDArray[np.int64],
        similarity: NDArray[np.float64],
    ) -> ApTable:
        from hardlook.metrics.weighted_precision_kernel import accumulate_counting

        by_setting = np.repeat(objects, len(IOU_THRESHOLDS), axis=0).astype(np.float64)
        precision, recall = np.full(by_setting.shape, np.nan), np.full(by_setting.shape, np.nan)
        most = self._settings
        accumulate_counting(
            counting.starts[: most + 1], counting.places, counting.found, self.table.labels, weights,
            by_setting[:most], similarity, RECALL_LEVELS, precision[:most], recall[:most],
        )  # fmt: skip
        shape = len(AREA_RANGES), len(IOU_THRESHOLDS), -1
        return ApTable(precision.reshape(shape), recall.reshape(shape))
