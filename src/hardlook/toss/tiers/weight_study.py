"""The weights of LCA and HCA from data: salience times supervised IoU of each partition, as parts of five.

The published table holds shares: each column adds up to 1. No mean over `test_stats.csv` that we tried gives its
numbers; the mean over the queries of the pair lists is nearest, each share within .05. So three readings are given:
means over masks, over classes of the means over masks, and over pairs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.data.toss_pairs import list_pair_files, read_pairs
from hardlook.errors import DataError
from hardlook.harness.rounding import format_fixed
from hardlook.harness.sections import Dot, DotChart, Section, Table
from hardlook.harness.stats import Estimate, bootstrap_scores
from hardlook.randomness import generator
from hardlook.report.estimates import estimate_to_json, make_estimate_dot
from hardlook.toss.published import read_numbers
from hardlook.toss.tiers.attributes import AttributeRow, assign_partitions, read_attributes

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


def scale_weights(salience: NDArray[np.float64], iou: NDArray[np.float64]) -> NDArray[np.float64]:
    """Products of the two, scaled to add up to five; both (..., 4).

    >>> scale_weights(np.array([0.45, 0.15, 0.32, 0.08]), np.array([0.37, 0.36, 0.15, 0.13])).round(2)
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
    known = _select_measured(rows, partitions)
    members = {name: [row for row in known if partitions[row.filename] == name] for name in ORDER}
    found = {}
    for reading in ("mask mean", "class mean", *(("pair mean",) if times else ())):
        means = np.array([_compute_means(own, reading, times) for own in members.values()])
        if not (means[:, 0] * means[:, 1]).any():
            raise DataError("salience times supervised IoU is 0 in every partition", remedy=_REMEDY)
        shares = means / means.sum(axis=0)
        weights = scale_weights(means[:, 0], means[:, 1])
        found[reading] = tuple(
            PartitionWeight(name, len(members[name]), *map(float, (*shares[place], weights[place])))
            for place, name in enumerate(ORDER)
        )
    return found


def weight_intervals(
    rows: Sequence[AttributeRow], partitions: Mapping[str, str], *, seed: int = 0
) -> dict[str, Estimate]:
    """The weights of the mean over masks, with intervals over images."""
    known = _select_measured(rows, partitions)
    sums = np.zeros((len(known), 4, 3))
    for place, row in enumerate(known):
        sums[place, ORDER.index(partitions[row.filename])] = (1, row.saliou or 0.0, row.iou or 0.0)

    def weights(totals: NDArray[np.float64]) -> NDArray[np.float64]:
        by_partition = totals.reshape(*totals.shape[:-1], 4, 3)
        counts = by_partition[..., :1]
        means = np.divide(by_partition[..., 1:], counts, out=np.zeros_like(by_partition[..., 1:]), where=counts > 0)
        return scale_weights(means[..., 0], means[..., 1])

    estimates = bootstrap_scores(
        sums.reshape(len(known), 12),
        weights,
        rng=generator(seed, "partition weights"),
        clusters=[row.image for row in known],
        # A partition that is not drawn has the weight 0: the weights jump.
        method="percentile",
        resampled="image",
        resamples=2000,
    )
    return dict(zip(ORDER, estimates, strict=True))


def _select_measured(rows: Sequence[AttributeRow], partitions: Mapping[str, str]) -> list[AttributeRow]:
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


def _compute_means(rows: Sequence[AttributeRow], reading: str, times: Mapping[str, int] | None) -> tuple[float, float]:
    values = np.array([(row.saliou, row.iou) for row in rows], np.float64)
    if reading == "class mean":
        names = np.array([row.class_name for row in rows])
        values = np.array([values[names == name].mean(axis=0) for name in dict.fromkeys(names.tolist())])
    weights = np.ones(len(values))
    if reading == "pair mean" and times is not None:
        weights = np.array([times.get(row.filename, 0) for row in rows], np.float64)
    salience, iou = (weights[:, None] * values).sum(axis=0) / weights.sum()
    return float(salience), float(iou)


def read_list_partitions(folder: Path) -> tuple[dict[str, str], dict[str, int]]:
    """The partition of each query of a TOSS folder's tier 1, and how often it is a query."""
    pairs = [pair for file in list_pair_files(folder) if file.tier == 1 for pair in read_pairs(file).pairs]
    if not pairs:
        raise DataError("no pairs of tier 1 here", file=folder, remedy="give a TOSS folder with tier 1")
    return {pair.query: pair.split for pair in pairs}, Counter(pair.query for pair in pairs)


def run_weight_study(attributes: Path, folder: Path | None, *, seed: int) -> tuple[list[Section], dict[str, Any]]:
    """The weights that follow from a table: with partitions by threshold, or from the lists of a TOSS `folder`."""
    rows = read_attributes(attributes)
    partitions, times = read_list_partitions(folder) if folder else (assign_partitions(rows), None)
    try:
        weights = partition_weights(rows, partitions, times)
    except DataError as error:
        raise error.at(file=attributes) from None
    sections, document = build_weight_page(weights, weight_intervals(rows, partitions, seed=seed))
    known = {row.filename for row in rows}
    document["rows_without_a_partition"] = len(known - set(partitions))
    document["queries_without_a_row"] = len(set(partitions) - known)
    document["summary"] += (
        f" {document['rows_without_a_partition']} of {len(known)} masks of the table have no partition"
        f"{f'; {extra} queries of the lists have no row' if (extra := document['queries_without_a_row']) else ''}."
    )
    return sections, document


def build_weight_page(
    found: Mapping[str, Sequence[PartitionWeight]], intervals: Mapping[str, Estimate]
) -> tuple[list[Section], dict[str, Any]]:
    """Weights under every reading, the published ones beside, and how far each reading is from them."""
    published = read_numbers().weights
    gaps = {
        reading: max(
            max(abs(one.salience_share - published[one.partition].salience) for one in weights),
            max(abs(one.iou_share - published[one.partition].supervised_miou) for one in weights),
        )
        for reading, weights in found.items()
    }
    nearest = min(gaps, key=lambda reading: gaps[reading])
    dots = [make_estimate_dot(name, intervals[name], "mask mean, with interval") for name in ORDER]
    dots += [Dot(name, published[name].proportion, group="published proportion") for name in ORDER]
    dots += [Dot(name, published[name].adjusted, group="published weight") for name in ORDER]
    rows = []
    for reading, weights in found.items():
        for one in weights:
            theirs = published[one.partition]
            shares = (one.salience_share, theirs.salience, one.iou_share, theirs.supervised_miou)
            rows.append((reading, one.partition, one.masks, *shares, one.weight, theirs.proportion, theirs.adjusted))
    columns = (
        "reading", "partition", "masks", "salience", "published", "IoU", "published",
        "product", "published", "taken",
    )  # fmt: skip
    listed = ", ".join(f"{name} {format_fixed(intervals[name].value, 2)}" for name in ORDER)
    printed = ", ".join(f"{published[name].proportion:g}" for name in ORDER)
    taken = ", ".join(f"{published[name].adjusted:g}" for name in ORDER)
    summary = (
        f"Salience times supervised IoU gives {listed} as parts of five; published {printed}, taken as {taken}. The "
        f"reading `{nearest}` is nearest: its shares differ from the published by up to "
        f"{format_fixed(gaps[nearest], 2)}."
    )
    section = Section(
        "Weights",
        "Each partition weighs by how salient and how easy its masks are. The published columns are shares that add up "
        "to 1; the released scores use .5, not .25, for the last weight.",
        [
            DotChart("Weights, parts of five", "Intervals over images.", dots, "weight"),
            Table(
                "Readings",
                "Shares of salience and of IoU, and their product as parts of five.",
                columns,
                rows,
                decimals=3,
            ),
        ],
    )
    document = {
        "schema": "hardlook.study-weights/1",
        "summary": summary,
        "readings": {reading: [asdict(one) for one in weights] for reading, weights in found.items()},
        "largest_difference_of_shares": gaps,
        "weights": {name: estimate_to_json(one, ("value", "low", "high", "n")) for name, one in intervals.items()},
        "published": {name: asdict(published[name]) for name in ORDER},
    }
    return [section], document
