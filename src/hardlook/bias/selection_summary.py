"""What a selection did to a training set: which classes it kept, and how often test classes stand in what remains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hardlook.bias.class_folds import ClassSplit
from hardlook.bias.selection import Coverage, Selection
from hardlook.bias.shares import share_of
from hardlook.randomness import generator
from hardlook.stats import Estimate, bootstrap_indices, bootstrap_score, ratio

ALL, KEPT, DROPPED = "all training images", "kept", "dropped"


@dataclass(frozen=True)
class ClassKept:
    """The training images that hold a class: how many, and the share that is kept."""

    name: str
    tested: bool
    images: int
    kept: Estimate


@dataclass(frozen=True)
class SelectionSummary:
    """The median of K, the share kept a class, and the share of images that hold a test class, by part.

    `dropped_more` is that share among the dropped images minus that among the kept ones; NaN where one part is empty.
    Intervals of shares are Wilson's, with the threshold held; those of the median and the difference resample images.
    """

    median: Estimate | None
    classes: tuple[ClassKept, ...]
    holding_test: dict[str, Estimate]
    dropped_more: Estimate


def summarise_selection(
    rows: Sequence[Coverage], selection: Selection, split: ClassSplit, *, seed: int = 0, resamples: int = 2000
) -> SelectionSummary:
    """The numbers of a selection; classes that no training image holds are left out.

    >>> rows = [Coverage("a", 4, 4, ("cat",)), Coverage("b", 4, 1, ("cat", "car"))]
    >>> from hardlook.bias.selection import select
    >>> summary = summarise_selection(rows, select(rows), ClassSplit(("cat",), ("car",), ""), resamples=50)
    >>> [(one.name, one.kept.value) for one in summary.classes], summary.holding_test["dropped"].value
    ([('cat', 0.5), ('car', 0.0)], 1.0)
    """
    shares = np.array([row.share for row in rows if row.salient])
    kept = np.isin([row.image for row in rows], selection.kept)
    test = set(split.test)
    holds_test = np.array([bool(test & set(row.classes)) for row in rows])

    median = None
    if len(shares):
        median = bootstrap_indices(
            len(shares),
            lambda units: float(np.median(shares[units])),
            rng=generator(seed, "selection", "median"),
            resamples=resamples,
            resampled="image",
        )
    classes = []
    for name in (*split.training, *split.test):
        holding = np.array([name in row.classes for row in rows])
        if holding.any():
            classes.append(
                ClassKept(
                    name, name in test, int(holding.sum()), share_of(int(kept[holding].sum()), int(holding.sum()))
                )
            )
    parts = {ALL: np.ones(len(rows), bool), KEPT: kept, DROPPED: ~kept}
    holding_test = {
        name: share_of(int(holds_test[part].sum()), int(part.sum())) for name, part in parts.items() if part.any()
    }
    sums = np.stack([holds_test & ~kept, ~kept, holds_test & kept, kept], axis=1)
    more = bootstrap_score(
        sums,
        lambda totals: ratio(totals[..., :2]) - ratio(totals[..., 2:]),
        rng=generator(seed, "selection", "difference"),
        resamples=resamples,
        resampled="image",
    )
    return SelectionSummary(median, tuple(classes), holding_test, more)
