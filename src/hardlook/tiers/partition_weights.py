"""The weights of LCA and HCA from the data: salience times supervised IoU of each partition, as parts of five.

The published table holds shares: each column adds up to 1. No mean over `test_stats.csv` that we tried
gives its numbers; the mean over the queries of the pair lists is nearest, each share within .05. So three readings
stand beside each other: means over masks, over classes of the means over masks, and over pairs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import DataError
from hardlook.randomness import generator
from hardlook.stats import Estimate, bootstrap_scores
from hardlook.tiers.attribute_rows import AttributeRow

ORDER = ("easy_sal", "easy_nsal", "hard_sal", "hard_nsal")
TOTAL = 5.0
_REMEDY = "measure more images with both models, or with a supervised model that misses some"


@dataclass(frozen=True)
class PartitionWeight:
    """One partition under one reading: shares of salience and IoU among the four, and its part of five."""

    partition: str
    masks: int
    salience_share: float
    iou_share: float
    weight: float


def weights_from(salience: NDArray[np.float64], iou: NDArray[np.float64]) -> NDArray[np.float64]:
    """Products of the two, scaled to add up to five; both (..., 4).

    >>> weights_from(np.array([0.45, 0.15, 0.32, 0.08]), np.array([0.37, 0.36, 0.15, 0.13])).round(2)
    array([2.98, 0.97, 0.86, 0.19])
    """
    product = salience * iou
    return np.asarray(TOTAL * product / product.sum(axis=-1, keepdims=True))


def partition_weights(
    rows: Sequence[AttributeRow], partitions: Mapping[str, str], times: Mapping[str, int] | None = None
) -> dict[str, tuple[PartitionWeight, ...]]:
    """Weights under each reading.

    `times` says how often a token is a query, for the mean over pairs. A partition without a measured mask is a
    `DataError`: shares among three say nothing of four.

    >>> rows = [AttributeRow(f"{n}_a", None, 0.5, None, None, 0.5, None, None, "cat", "a") for n in range(4)]
    >>> found = partition_weights(rows, {f"{n}_a": name for n, name in enumerate(ORDER)})
    >>> [one.weight for one in found["mask mean"]]
    [1.25, 1.25, 1.25, 1.25]
    """
    known = _known(rows, partitions)
    found = {}
    for reading in ("mask mean", "class mean", *(("pair mean",) if times else ())):
        means = np.array(
            [_means([row for row in known if partitions[row.filename] == name], reading, times) for name in ORDER]
        )
        if not (means[:, 0] * means[:, 1]).any():
            raise DataError("salience times supervised IoU is 0 in every partition", remedy=_REMEDY)
        shares = means / means.sum(axis=0)
        weights = weights_from(means[:, 0], means[:, 1])
        counts = [sum(partitions[row.filename] == name for row in known) for name in ORDER]
        found[reading] = tuple(
            PartitionWeight(name, counts[place], *map(float, (*shares[place], weights[place])))
            for place, name in enumerate(ORDER)
        )
    return found


def weight_intervals(
    rows: Sequence[AttributeRow], partitions: Mapping[str, str], *, seed: int = 0
) -> dict[str, Estimate]:
    """The weights of the mean over masks, with intervals over images."""
    known = _known(rows, partitions)
    sums = np.zeros((len(known), 4, 3))
    for place, row in enumerate(known):
        sums[place, ORDER.index(partitions[row.filename])] = (1, row.saliou or 0.0, row.iou or 0.0)

    def weights(totals: NDArray[np.float64]) -> NDArray[np.float64]:
        by_partition = totals.reshape(*totals.shape[:-1], 4, 3)
        counts = by_partition[..., :1]
        means = np.divide(by_partition[..., 1:], counts, out=np.zeros_like(by_partition[..., 1:]), where=counts > 0)
        return weights_from(means[..., 0], means[..., 1])

    estimates = bootstrap_scores(
        sums.reshape(len(known), 12),
        weights,
        rng=generator(seed, "partition weights"),
        clusters=[row.image for row in known],
        resampled="image",
        resamples=2000,
    )
    return dict(zip(ORDER, estimates, strict=True))


def _known(rows: Sequence[AttributeRow], partitions: Mapping[str, str]) -> list[AttributeRow]:
    """The rows with a partition and both numbers, some in every partition."""
    placed = [row for row in rows if row.filename in partitions]
    known = [row for row in placed if row.iou is not None and row.saliou is not None]
    if not placed:
        raise DataError(
            f"none of the {len(rows)} masks of the table is among the {len(partitions)} that have a partition",
            remedy="give the table and the pair lists of one dataset",
        )
    filled = {partitions[row.filename] for row in known}
    if empty := [name for name in ORDER if name not in filled]:
        raise DataError(
            f"no mask with a salience and a supervised IoU is {' or '.join(empty)} ({len(placed)} masks have a "
            f"partition, {len(known)} of them both numbers)",
            remedy=_REMEDY,
        )
    return known


def _means(rows: Sequence[AttributeRow], reading: str, times: Mapping[str, int] | None) -> tuple[float, float]:
    values = np.array([(row.saliou, row.iou) for row in rows], np.float64)
    if reading == "class mean":
        names = np.array([row.class_name for row in rows])
        values = np.array([values[names == name].mean(axis=0) for name in dict.fromkeys(names.tolist())])
    weights = np.ones(len(values))
    if reading == "pair mean" and times is not None:
        weights = np.array([times.get(row.filename, 0) for row in rows], np.float64)
    salience, iou = (weights[:, None] * values).sum(axis=0) / weights.sum()
    return float(salience), float(iou)
