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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hardlook.harness.scorecard import Score, make_score
from hardlook.harness.stats.bootstrap import (
    MAX_GROUPS,
    Statistic,
    apply_statistic,
    assign_groups,
    group_clusters,
    leave_each_out,
)
from hardlook.harness.stats.intervals import Estimate, Method, ResamplingPlan, summarise
from hardlook.harness.stats.jackknife import UNBOUNDED, Range, Spread, SpreadMeter
from hardlook.harness.stats.resampling import (
    Clusters,
    Labels,
    draw_multiplicities,
    exact_totals,
    find_clusters,
    finite_rows,
    is_sparse,
)
from hardlook.harness.stats.shared_draws import ImageShares
from hardlook.randomness import generator

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Entry:
    """One score of a tally, over `n` units; a score of no units is left out.

    `n` counts the units that the score uses, `clusters` the clusters that they are in, where those are not all of
    them. `rests_on` counts what else the score is made from, such as classes. `reason` says why a score is undefined.
    `range` holds the lowest and highest value that the score can have, infinite where there is none.
    """

    name: str
    n: int
    slice: Mapping[str, str] = field(default_factory=dict)
    reading: str = ""
    comparable: str = ""
    clusters: int | None = None
    rests_on: Mapping[str, int] = field(default_factory=dict)
    reason: str = ""
    range: Range = UNBOUNDED


SHARE: Range = (0.0, 1.0)
DIFFERENCE: Range = (-1.0, 1.0)  # of two shares


def with_ranges(entries: Iterable[Entry], other: Mapping[str, Range] | None = None) -> tuple[Entry, ...]:
    """The entries with the ranges of their scores: by name those in `other`, else from 0 to 1.

    >>> [entry.range for entry in with_ranges([Entry("miou", 3), Entry("gain", 3)], {"gain": DIFFERENCE})]
    [(0.0, 1.0), (-1.0, 1.0)]
    """
    return tuple(replace(entry, range=(other or {}).get(entry.name, SHARE)) for entry in entries)


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
    `shares` holds for each entry what the images that rows share contribute, or None: comparisons then cover their
    draw as well. It is empty where rows share nothing.
    """

    entries: tuple[Entry, ...]
    sums: Any
    statistic: Statistic
    key: tuple[str | int, ...]
    resampled: str
    labels: Labels | None = None
    strata: Labels | None = None
    shares: tuple[ImageShares | None, ...] = ()

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
        if weights is None:
            return apply_statistic(self.statistic, self.totals[None])
        parts = self._split(weights)
        return np.concatenate([apply_statistic(self.statistic, part @ self.cluster_sums) for part in parts])

    def _split(self, weights: Numbers) -> list[Numbers]:
        """The rows of weights in blocks whose totals fit into memory, where very many columns need it."""
        rows = max(1, MAX_TOTALS // self.sums.shape[1])
        # Totals of dense sums are one product, whose last digit could depend on its size.
        if not is_sparse(self.sums) or len(weights) <= rows:
            return [weights]
        return [weights[start : start + rows] for start in range(0, len(weights), rows)]

    @cached_property
    def totals(self) -> Numbers:
        """(columns,): the sums over all rows, exact but for one rounding, so that no order decides a digit."""
        return exact_totals(finite_rows(self.sums, "sums"))

    def mixed(self, other: SumTally, swaps: Numbers) -> Numbers:
        """(m, entries): the scores with some clusters taken from `other`."""
        if self.sums.shape != other.sums.shape or not np.array_equal(self.clusters.codes, other.clusters.codes):
            raise ValueError(
                f"expected sums of the same rows and columns, got {self.sums.shape} and {other.sums.shape}"
            )
        parts = self._split(swaps)
        return np.concatenate([apply_statistic(self.statistic, self._mix_sums(other, part)) for part in parts])

    def _mix_sums(self, other: SumTally, swaps: Numbers) -> Any:
        return self.totals[None] + swaps @ (other.cluster_sums - self.cluster_sums)


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


@dataclass(frozen=True, eq=False)
class GroupedTally(SumTally):
    """Sums of so many clusters that those of groups are kept in their place: `sums` has a row for each group.

    Cluster i is in group i modulo their number, as where clusters are left out in groups (`assign_groups`). `count`
    counts the clusters, and `exact` (columns,) has their totals. `soft` where sums are not whole numbers.
    """

    count: int = 0
    exact: Numbers = field(default_factory=lambda: np.empty(0))
    soft: bool = False

    @property
    def totals(self) -> Numbers:
        """(columns,): the sums over all clusters."""
        return self.exact

    def as_groups(self) -> SumTally:
        """The tally of the groups, each as if it were a cluster."""
        kind = SoftTally if self.soft else SumTally
        return kind(self.entries, self.sums, self.statistic, self.key, self.resampled)


@dataclass(frozen=True, eq=False)
class SeedTally:
    """The mean scores of one method trained with several seeds: `members` are the tallies of its runs.

    >>> from hardlook.harness.stats import ratio
    >>> one, other = (np.array([[right, 4], [3, 4]]) for right in (1, 3))
    >>> seeds = [SumTally((Entry("accuracy", 8),), sums, ratio, ("example",), "image") for sums in (one, other)]
    >>> SeedTally(tuple(seeds)).values().tolist()
    [[0.625]]
    """

    members: tuple[Tally, ...]

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The scores, which are the same in all members; each over the units of the member that has most."""
        best = (
            max(same, key=lambda entry: entry.n) for same in zip(*(one.entries for one in self.members), strict=True)
        )
        return tuple(best)

    @property
    def key(self) -> tuple[str | int, ...]:
        """The names of the draws."""
        return self.members[0].key

    @property
    def resampled(self) -> str:
        """What is drawn."""
        return self.members[0].resampled

    @property
    def clusters(self) -> Clusters:
        """Which cluster each row is in."""
        return self.members[0].clusters

    @property
    def costly(self) -> bool:
        """Whether a member takes long."""
        return any(is_costly(one) for one in self.members)

    def values(self, weights: Numbers | None = None) -> Numbers:
        """(m, entries): the means of the members' scores."""
        mean: Numbers = np.mean([one.values(weights) for one in self.members], axis=0)
        return mean

    def mixed(self, other: Any, swaps: Numbers) -> Numbers:
        """(m, entries): the mean over every pair of a member with a member of `other`."""
        others = other.members if isinstance(other, SeedTally) else (other,)
        mean: Numbers = np.mean([one.mixed(two, swaps) for one in self.members for two in others], axis=0)
        return mean

    def measure_seeds(self) -> tuple[Numbers, int]:
        """(entries,): the variance of the means from seed to seed, and its degrees of freedom; of several members."""
        values = np.concatenate([one.values() for one in self.members])
        return values.var(axis=0, ddof=1) / len(values), len(values) - 1


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
    interval: Method = "jackknife"


MAX_RESAMPLED_CLUSTERS = 50_000

# Totals of sparse sums that are made together: 32 MB of float64.
MAX_TOTALS = 2**22

# Of a tally that takes long, clusters are left out in this many groups.
COSTLY_GROUPS = 50


def is_costly(tally: Tally) -> bool:
    """Whether the tally declares that each weighting of its units takes long."""
    return bool(getattr(tally, "costly", False))


def count_clusters(tally: Tally) -> int:
    """The number of clusters, also where only groups of them are kept."""
    if isinstance(tally, SeedTally):
        return count_clusters(tally.members[0])
    return tally.count if isinstance(tally, GroupedTally) else tally.clusters.n


def has_many_clusters(tally: Tally) -> bool:
    """Whether its clusters are so many that groups of them are drawn and swapped."""
    one = tally.members[0] if isinstance(tally, SeedTally) else tally
    return isinstance(one, SumTally) and count_clusters(one) > MAX_RESAMPLED_CLUSTERS


def group_many_clusters(tally: Tally, groups: int) -> Tally:
    """The tally with about so many groups in place of clusters where there are very many, or the tally itself."""
    if not has_many_clusters(tally):
        return tally
    if isinstance(tally, SeedTally):
        return SeedTally(tuple(group_many_clusters(one, groups) for one in tally.members))
    if isinstance(tally, GroupedTally):
        return tally.as_groups()
    assert isinstance(tally, SumTally)
    sums, sizes = group_clusters(tally.cluster_sums, tally.clusters.sizes, groups)
    return replace(tally, sums=sums, labels=None, strata=np.repeat(np.arange(len(sizes)), sizes))


def leave_clusters_out(tallies: Sequence[Tally]) -> tuple[NDArray[np.int64], Iterator[list[Numbers]]]:
    """The number of groups of clusters in each stratum, and the scores of each tally without each group, in blocks.

    All tallies have the same clusters. A group is one cluster where there are few of them, so that a spread takes no
    longer than the resamples.
    """
    if any(isinstance(tally, SeedTally) for tally in tallies):
        parts = [tally.members if isinstance(tally, SeedTally) else (tally,) for tally in tallies]
        ends = np.cumsum([len(part) for part in parts])
        sizes, blocks = leave_clusters_out([one for part in parts for one in part])
        return sizes, ([np.mean(part, axis=0) for part in np.split(np.array(block), ends[:-1])] for block in blocks)
    of_sums = [tally for tally in tallies if isinstance(tally, SumTally)]
    if len(of_sums) == len(tallies):
        grouped = [group_clusters(one.cluster_sums, one.clusters.sizes, MAX_GROUPS) for one in of_sums]
        pairs = zip(of_sums, grouped, strict=True)
        left_out = [leave_each_out(one.statistic, sums, sizes) for one, (sums, sizes) in pairs]
        return grouped[0][1], map(list, zip(*left_out, strict=True))
    codes, sizes = assign_groups(tallies[0].clusters.sizes, COSTLY_GROUPS)
    masks = ((codes != group)[None].astype(np.float64) for group in range(int(sizes.sum())))
    return sizes, ([tally.values(kept) for tally in tallies] for kept in masks)


def measure_spread(tally: Tally) -> Spread:
    """How much each score changes when clusters are left out."""
    sizes, blocks = leave_clusters_out([tally])
    meter = SpreadMeter(tally.values()[0], sizes)
    for (scores,) in blocks:
        meter.add(scores)
    return meter.measure()


def count_own_clusters(tally: Tally) -> list[int]:
    """The number of clusters that each score rests on, as far as its entry says so."""
    n = count_clusters(tally)
    return [min(n, max(entry.n, 1)) if entry.clusters is None else entry.clusters for entry in tally.entries]


def score_tally(tally: Tally, options: DrawOptions) -> list[Score]:
    """Every entry that has units, with its interval, and those that have none for a reason, as undefined."""
    estimates = estimate_tally(tally, options)
    pairs = zip(tally.entries, estimates, strict=True)
    return [_score(entry, estimate) for entry, estimate in pairs if entry.n or entry.reason]


def estimate_tally(tally: Tally, options: DrawOptions) -> Sequence[Estimate]:
    """An estimate for each entry, all from the same resamples."""
    method: Method = getattr(options, "interval", "jackknife")
    # A spread groups clusters by itself.
    grouped = tally if method == "jackknife" else group_many_clusters(tally, MAX_GROUPS)
    clusters = grouped.clusters
    plan = ResamplingPlan(
        rng=generator(options.seed, *tally.key),
        clusters=clusters,
        resamples=options.resamples if clusters.can_vary else 0,
        level=options.level,
        method=method,
        resampled=tally.resampled,
    )
    # A jackknife interval needs no resamples; with so many clusters the standard error is that of the jackknife too.
    drawn = 0 if method == "jackknife" and count_clusters(tally) > MAX_RESAMPLED_CLUSTERS else plan.resamples
    replicates = [np.empty((0, len(tally.entries)))]
    replicates += [grouped.values(block) for block in draw_multiplicities(clusters, drawn, plan.rng)]
    left_out: Numbers | Spread | None = None
    if plan.resamples and method == "jackknife":
        left_out = measure_spread(tally)
    elif plan.resamples and method == "bca":
        places = np.arange(clusters.n)
        left_out = np.concatenate([grouped.values((places != one)[None].astype(np.float64)) for one in places])
    ranges = [entry.range for entry in tally.entries]
    rests_on = count_own_clusters(tally)
    estimates = summarise(plan, tally.values()[0], np.concatenate(replicates), left_out, ranges, rests_on)
    if (count := count_clusters(tally)) > clusters.n:
        estimates = tuple(replace(one, interval=replace(one.interval, n=count)) for one in estimates)
    if drawn < plan.resamples and isinstance(left_out, Spread):
        errors = left_out.standard_error.tolist()
        estimates = tuple(replace(one, standard_error=error) for one, error in zip(estimates, errors, strict=True))
        # A score that rests on k of many clusters would be undefined in a share of exp(-k) of the resamples.
        return [
            replace(one, interval=replace(one.interval, low=math.nan, high=math.nan))
            if math.exp(-clusters_behind) > 1 - options.level
            else one
            for one, clusters_behind in zip(estimates, rests_on, strict=True)
        ]
    return estimates


def _score(entry: Entry, estimate: Estimate) -> Score:
    if entry.clusters is not None:
        # All entries are drawn together; each has its own number of clusters, and a single cluster has no interval.
        own = replace(estimate.interval, n=entry.clusters)
        own = own if entry.clusters > 1 else replace(own, low=math.nan, high=math.nan)
        estimate = replace(estimate, interval=own)
    names = ("slice", "reading", "comparable", "rests_on", "reason")
    return make_score(entry.name, estimate, entry.n, **{name: getattr(entry, name) for name in names})
