"""The mean over datasets of the means over their instances, as sums over images.

Every dataset weighs alike, however many instances it has, as in the paper's main table.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hardlook.benchmarks.rclicks.played import Played
from hardlook.contract.tally import Entry, SumTally

Numbers = NDArray[np.float64]


def tally_datasets(columns: Numbers, table: Played, entries: Sequence[Entry], key: tuple[str, ...]) -> SumTally:
    """One score for each column of `columns` (N, K); cells that are NaN do not count.

    A dataset without a cell in a column does not count in that column's mean. Images are drawn within datasets.
    """
    names = sorted(set(table.dataset.tolist()))
    here = np.stack([table.dataset == name for name in names], axis=1)
    defined = ~np.isnan(columns)
    values = np.where(defined, columns, 0.0)[:, None] * here[..., None]
    counts = defined[:, None] & here[..., None]
    shape = (2, len(names), columns.shape[1])

    def statistic(totals: Numbers) -> Numbers:
        sums = totals.reshape(len(totals), *shape)
        # Asked of the counts: where another run has nothing, sums may keep a rounding error in place of 0.
        present = sums[:, 1] > 0
        means = np.divide(sums[:, 0], sums[:, 1], out=np.zeros_like(sums[:, 0]), where=present)
        averages: Numbers = means.sum(1) / present.sum(1)
        return averages

    return SumTally(
        tuple(entries),
        np.concatenate([values.reshape(len(values), -1), counts.reshape(len(values), -1)], axis=1),
        statistic,
        key,
        "image",
        [f"{dataset}/{image}" for dataset, image in zip(table.dataset, table.image, strict=True)],
        table.dataset,
    )
