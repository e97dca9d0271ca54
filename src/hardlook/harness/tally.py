"""Tallies: scores as functions of sums, from which values, intervals and paired comparisons are all computed.

A benchmark states the sums and the scores that follow from the totals. The units can then get other weights: a
bootstrap draws weights, and a permutation test takes some clusters from another model.

>>> from hardlook.harness.stats import ratio
>>> hits = SumTally((Entry("accuracy", 4),), np.array([[1, 1], [0, 1], [1, 1], [1, 1]]), ratio, ("example",), "image")
>>> score_tally(hits, Draws(seed=0, resamples=100))[0].value
0.75
>>> misses = replace(hits, sums=np.array([[1, 1], [1, 1], [0, 1], [1, 1]]))
>>> hits.mixed(misses, np.array([[0, 1, 0, 0]])).tolist()
[[1.0]]
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hardlook.harness.scorecard import Score, make_score
from hardlook.harness.stats.bootstrap import Statistic, apply_statistic
from hardlook.harness.stats.intervals import Estimate, ResamplingPlan, summarise
from hardlook.harness.stats.resampling import Clusters, Labels, draw_multiplicities, find_clusters, finite_rows
from hardlook.randomness import generator

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Entry:
    """One score of a tally, over `n` units; a score of no units is left out.

    `clusters` is the number of clusters that the score is about, where those are not all of them.
    """

    name: str
    n: int
    slice: Mapping[str, str] = field(default_factory=dict)
    reading: str = ""
    comparable: str = ""
    clusters: int | None = None


class Tally(Protocol):
    """Several scores of the same units, computed under any weights of these units.

    `key` names the draws (see `randomness.generator`); equal keys, clusters and seeds draw equal resamples, so that
    two models get the same ones. `resampled` names what is drawn.
    """

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The scores, in the order of the columns of `values`."""
        ...

    @property
    def key(self) -> tuple[str | int, ...]:
        """The names of the draws."""
        ...

    @property
    def resampled(self) -> str:
        """What is drawn: image, task, query image."""
        ...

    @property
    def clusters(self) -> Clusters:
        """Which cluster each row is in; clusters are what is drawn, and swapped between models."""
        ...

    def values(self, weights: Numbers | None = None) -> Numbers:
        """(m, entries): the scores where cluster i counts `weights[:, i]` times, whole numbers; once each for None."""
        ...

    def mixed(self, other: Any, swaps: Numbers) -> Numbers:
        """(m, entries): the scores with the clusters at which `swaps` (m, clusters) is 1 taken from `other`."""
        ...


@dataclass(frozen=True, eq=False)
class SumTally:
    """Scores that are functions of sums over rows.

    `sums` (rows, columns) is dense or sparse. `statistic` maps totals (m, columns) to (m, entries), NaN where
    undefined. `labels` names the cluster of each row, `strata` the stratum that clusters are drawn within. Two runs
    can be compared when the sums of both have the same rows and columns, so neither may depend on the predictions.
    """

    entries: tuple[Entry, ...]
    sums: Any
    statistic: Statistic
    key: tuple[str | int, ...]
    resampled: str
    labels: Labels | None = None
    strata: Labels | None = None

    @cached_property
    def clusters(self) -> Clusters:
        """Which cluster each row is in."""
        return find_clusters(self.sums.shape[0], self.labels, self.strata)

    @cached_property
    def cluster_sums(self) -> Any:
        """(clusters, columns), dense or sparse as the sums are."""
        return self.clusters.sum(finite_rows(self.sums, "sums"))

    def values(self, weights: Numbers | None = None) -> Numbers:
        """(m, entries): the scores under these weights of the clusters."""
        totals = self.cluster_sums.sum(axis=0)[None] if weights is None else weights @ self.cluster_sums
        return apply_statistic(self.statistic, totals)

    def mixed(self, other: SumTally, swaps: Numbers) -> Numbers:
        """(m, entries): the scores with some clusters taken from `other`."""
        if self.sums.shape != other.sums.shape or not np.array_equal(self.clusters.codes, other.clusters.codes):
            raise ValueError(
                f"expected sums of the same rows and columns, got {self.sums.shape} and {other.sums.shape}"
            )
        return apply_statistic(self.statistic, self._mix_sums(other, swaps))

    def _mix_sums(self, other: SumTally, swaps: Numbers) -> Any:
        return self.cluster_sums.sum(axis=0)[None] + swaps @ (other.cluster_sums - self.cluster_sums)


class SoftTally(SumTally):
    """Sums that are not whole numbers: with clusters of another run they are added up anew, at twice the work.

    A class counts in a mean where its sum is above 0. Subtracting floats leaves 1e-17 where 0 should be, and the
    quotient of two such residues can be any number.

    >>> from hardlook.harness.stats import ratio
    >>> ours = np.array([[0.1, 0.1], [0.2, 0.2], [0.3, 0.3]])
    >>> tally = SoftTally((Entry("share", 3),), ours, ratio, ("example",), "image")
    >>> tally.mixed(replace(tally, sums=0 * ours), np.ones((1, 3)))
    array([[nan]])
    """

    def _mix_sums(self, other: SumTally, swaps: Numbers) -> Any:
        return (1 - swaps) @ self.cluster_sums + swaps @ other.cluster_sums


class DrawOptions(Protocol):
    """The options of intervals, which every benchmark has."""

    @property
    def seed(self) -> int:
        """The seed of the draws."""
        ...

    @property
    def resamples(self) -> int:
        """How many; 0 for values alone."""
        ...

    @property
    def level(self) -> float:
        """The level of the intervals."""
        ...


@dataclass(frozen=True)
class Draws:
    """The options of intervals on their own, without a benchmark's."""

    seed: int = 0
    resamples: int = 2_000
    level: float = 0.95


def score_tally(tally: Tally, options: DrawOptions) -> list[Score]:
    """Every entry that has units, with its interval."""
    estimates = estimate_tally(tally, options)
    return [_score(entry, estimate) for entry, estimate in zip(tally.entries, estimates, strict=True) if entry.n]


def estimate_tally(tally: Tally, options: DrawOptions) -> Sequence[Estimate]:
    """An estimate for each entry, all from the same resamples."""
    clusters = tally.clusters
    plan = ResamplingPlan(
        rng=generator(options.seed, *tally.key),
        clusters=clusters,
        resamples=options.resamples if clusters.can_vary else 0,
        level=options.level,
        method="percentile",
        resampled=tally.resampled,
    )
    replicates = [np.empty((0, len(tally.entries)))]
    replicates += [tally.values(block) for block in draw_multiplicities(clusters, plan.resamples, plan.rng)]
    return summarise(plan, tally.values()[0], np.concatenate(replicates), None)


def _score(entry: Entry, estimate: Estimate) -> Score:
    if entry.clusters is not None:
        # All entries are drawn together; each has its own number of clusters, and a single cluster has no interval.
        own = replace(estimate.interval, n=entry.clusters)
        own = own if entry.clusters > 1 else replace(own, low=math.nan, high=math.nan)
        estimate = replace(estimate, interval=own)
    return make_score(
        entry.name, estimate, entry.n, slice=entry.slice, reading=entry.reading, comparable=entry.comparable
    )
