"""Our attributes beside the published table's: what is equal, and what only goes the same way.

Blobs and distractors come from the masks alone and must agree. Size and centredness of the published table are one
value an image, whatever the class, so that they cannot be those of the class mask, which the paper describes and we
measure. Salience and supervised IoU come from other models, and are compared by rank.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hardlook.randomness import generator
from hardlook.stats import Estimate, bootstrap_indices, spearman
from hardlook.tiers.attribute_rows import AttributeRow

RANKED = ("saliou", "iou")
EXACT = ("blob_count", "distractor_weight", "area_ratio", "offset_ratio")
NEAR = 1e-6
_RESAMPLES = 2000


@dataclass(frozen=True)
class RankAgreement:
    """Spearman's correlation of one column with the published one, resampled over images; the pairs of values."""

    column: str
    estimate: Estimate
    ours: NDArray[np.float64]
    published: NDArray[np.float64]


@dataclass(frozen=True)
class ExactShare:
    """How many of the shared rows have the published value (within 1e-6), and their rank correlation all the same."""

    column: str
    equal: int
    rows: int
    spearman: float


@dataclass(frozen=True)
class PublishedComparison:
    """The rows that both tables have, column by column."""

    rows: int
    ranked: tuple[RankAgreement, ...]
    exact: tuple[ExactShare, ...]


def compare_with_published(
    ours: Iterable[AttributeRow], published: Iterable[AttributeRow], *, seed: int = 0
) -> PublishedComparison:
    """Compare the rows of equal tokens; a column that one side lacks is left out.

    >>> row = AttributeRow("1_a", None, 0.5, 0.2, 0.9, 0.4, 2, 0.0)
    >>> [share.equal for share in compare_with_published([row], [row]).exact]
    [1, 1, 1, 1]
    """
    theirs = {row.filename: row for row in published}
    pairs = [(row, theirs[row.filename]) for row in ours if row.filename in theirs]
    ranked = [_ranked(column, pairs, seed) for column in RANKED if _values(column, pairs)[0].size]
    exact = []
    for column in EXACT:
        mine, other, _ = _values(column, pairs)
        if mine.size:
            equal = int((np.abs(mine - other) <= NEAR).sum())
            exact.append(ExactShare(column, equal, mine.size, spearman(mine, other)))
    return PublishedComparison(len(pairs), tuple(ranked), tuple(exact))


def _ranked(column: str, pairs: Sequence[tuple[AttributeRow, AttributeRow]], seed: int) -> RankAgreement:
    mine, other, images = _values(column, pairs)
    estimate = bootstrap_indices(
        mine.size,
        lambda places: spearman(mine[places], other[places]),
        rng=generator(seed, "published attributes", column),
        clusters=images,
        resamples=_RESAMPLES,
        resampled="image",
    )
    return RankAgreement(column, estimate, mine, other)


def _values(
    column: str, pairs: Sequence[tuple[AttributeRow, AttributeRow]]
) -> tuple[NDArray[np.float64], NDArray[np.float64], list[str]]:
    both = [(getattr(mine, column), getattr(other, column), mine.image) for mine, other in pairs]
    known = [(mine, other, image) for mine, other, image in both if mine is not None and other is not None]
    return (
        np.array([mine for mine, _, _ in known], np.float64),
        np.array([other for _, other, _ in known], np.float64),
        [image for _, _, image in known],
    )
