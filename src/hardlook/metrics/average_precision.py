"""Average precision and recall as COCO defines them, from a table of matches: hard, or soft under a similarity.

For each class with ground truth, in descending score: a detection that found an object of the class is a true
positive by the similarity of its label; one that bears the label but found another class is a false positive by one
minus the similarity; one that found nothing, a whole one. Recall is over all objects of the class; precision is
interpolated at 101 levels of recall.

>>> from hardlook.metrics.detection_inputs import Detections, Objects
>>> from hardlook.metrics.detection_matching import match_image
>>> from hardlook.metrics.match_table import match_table
>>> image = match_image(Objects([0], area=[9]), Detections([1], [0.9], area=[9]), overlap=[[0.52]])
>>> soft = soft_precision(match_table([image], classes=2), np.array([[1, 0.5], [0.5, 1]]))
>>> round(soft.summary()["AP50"], 6), round(soft.summary()["AP"], 6)
(0.50495, 0.050495)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hardlook.metrics.array_input import Values
from hardlook.metrics.detection_matching import AREA_RANGES, IOU_THRESHOLDS
from hardlook.metrics.match_table import MatchTable
from hardlook.metrics.similarity_matrix import checked_similarity

RECALL_LEVELS = np.linspace(0.0, 1.0, 101)
# Where thresholds .5 and .75 stand among the ten.
_AT_50, _AT_75 = 0, 5
_SHAPE = (len(AREA_RANGES), len(IOU_THRESHOLDS))


@dataclass(frozen=True, eq=False)
class ApTable:
    """Every AP of one kind.

    `precision` and `recall` (4 area ranges, 10 thresholds, K), NaN for a class without objects in the range;
    `few_recall` maps a number of detections an image and class to recall (10, K).
    """

    precision: NDArray[np.float64]
    recall: NDArray[np.float64]
    few_recall: Mapping[int, NDArray[np.float64]] = field(default_factory=dict)

    def per_class(self) -> NDArray[np.float64]:
        """(K,) AP of each class over the ten thresholds, all areas; NaN for a class without objects."""
        return np.asarray(self.precision[0].mean(0))

    def summary(self, classes: Sequence[int] | NDArray[np.int64] | None = None) -> dict[str, float]:
        """COCO's figures, averaged over all classes with objects or over those of them listed; NaN if there is none."""
        chosen = slice(None) if classes is None else np.asarray(classes, np.int64)
        precision, recall = self.precision[..., chosen], self.recall[..., chosen]
        figures = {"AP": precision[0], "AP50": precision[0, _AT_50], "AP75": precision[0, _AT_75]}
        figures |= {f"AP{name[0]}": precision[i] for i, name in enumerate(AREA_RANGES) if i}
        figures |= {f"AR{most}": values[..., chosen] for most, values in sorted(self.few_recall.items())}
        figures |= {"AR": recall[0]} | {f"AR{name[0]}": recall[i] for i, name in enumerate(AREA_RANGES) if i}
        return {name: _mean(values) for name, values in figures.items()}


def vanilla_precision(table: MatchTable) -> ApTable:
    """COCO's AP, as pycocotools: matched within classes, all labels alike strange to each other."""
    few = {most: _recall_of_few(table, most) for most in (1, 10)}
    precision, recall = _accumulated(table, table.by_class, np.eye(table.classes))
    return ApTable(precision, recall, few)


def soft_precision(table: MatchTable, similarity: Values | None = None) -> ApTable:
    """Open AP under a similarity (K, K), row true and column given, or AP-dagger without one: classes pooled."""
    alike = np.eye(table.classes) if similarity is None else checked_similarity(similarity, table.classes)
    return ApTable(*_accumulated(table, table.pooled, alike))


def _accumulated(
    table: MatchTable, matched: NDArray[np.int16], similarity: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    from hardlook.metrics.precision_kernel import accumulate

    objects = np.repeat(table.objects(), len(IOU_THRESHOLDS), axis=0).astype(np.float64)
    precision, recall = np.full(objects.shape, np.nan), np.full(objects.shape, np.nan)
    weights = table.multiplicity[table.image].astype(np.float64)
    alike = np.ascontiguousarray(similarity)
    accumulate(matched, table.labels, weights, objects, alike, RECALL_LEVELS, precision, recall)
    return precision.reshape(*_SHAPE, -1), recall.reshape(*_SHAPE, -1)


def _recall_of_few(table: MatchTable, most: int) -> NDArray[np.float64]:
    """(10, K) recall over all areas when only the best `most` detections of an image and class count."""
    first = table.rank < most
    labels, found = table.labels[first], table.by_class[: len(IOU_THRESHOLDS), first] >= 0
    weights = found * table.multiplicity[table.image[first]]
    hits = np.array([np.bincount(labels, row, minlength=table.classes) for row in weights])
    objects = table.objects()[0].astype(np.float64)
    return np.asarray(np.divide(hits, objects, out=np.full(hits.shape, np.nan), where=objects > 0))


def _mean(values: NDArray[np.float64]) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else float("nan")
