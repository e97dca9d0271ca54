"""The mean over datasets of the means over their instances, with its interval over images.

Every dataset weighs alike, however many instances it has, as in the paper's main table.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hardlook.benchmarks.rclicks.played import Played
from hardlook.stats import bootstrap_scores
from hardlook.stats.intervals import Estimate

Numbers = NDArray[np.float64]


def mean_over_datasets(
    columns: Numbers, table: Played, *, rng: np.random.Generator, resamples: int, level: float = 0.95
) -> tuple[Estimate, ...]:
    """One estimate for each column of `columns` (N, K); entries that are NaN do not count.

    A dataset that has no entry in a column does not count in that column's mean. Images are drawn within datasets.
    """
    names = sorted(set(table.dataset.tolist()))
    here = np.stack([table.dataset == name for name in names], axis=1)
    defined = ~np.isnan(columns)
    values = np.where(defined, columns, 0.0)[:, None] * here[..., None]
    counts = defined[:, None] & here[..., None]
    shape = (2, len(names), columns.shape[1])

    def statistic(totals: Numbers) -> Numbers:
        sums = totals.reshape(len(totals), *shape)
        means = sums[:, 0] / sums[:, 1]
        present = ~np.isnan(means)
        averages: Numbers = np.where(present, means, 0.0).sum(1) / present.sum(1)
        return averages

    return bootstrap_scores(
        np.concatenate([values.reshape(len(values), -1), counts.reshape(len(values), -1)], axis=1),
        statistic,
        rng=rng,
        clusters=[f"{dataset}/{image}" for dataset, image in zip(table.dataset, table.image, strict=True)],
        strata=table.dataset,
        resamples=resamples,
        level=level,
        resampled="image",
    )
