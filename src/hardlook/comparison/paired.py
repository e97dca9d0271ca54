"""Several models on the same units: values, common resamples and common swaps of one tally.

All models meet the same resamples, so what is hard for all of them cancels in the difference. All scores and all pairs
meet the same swaps of clusters. Where scores are functions of sums, k models need k - 1 matrix products, since what a
swap moves from one model to another is the difference of what it moves from the first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.comparison.swap_plan import SwapPlan
from hardlook.contract.tally import Entry, SumTally, Tally
from hardlook.errors import RunError
from hardlook.randomness import generator
from hardlook.stats.bootstrap import apply_statistic
from hardlook.stats.resampling import multiplicities
from hardlook.stats.swap_counts import SwapCounts, is_exact, swaps_of

Numbers = NDArray[np.float64]
Pair = tuple[int, int]
DifferenceOfSwaps = Callable[[Numbers], Mapping[Pair, Numbers]]


@dataclass(frozen=True, eq=False)
class PairedTally:
    """What one tally says of k models: `values` (k, entries), `replicates` (k, resamples, entries), p-values by pair.

    `clusters` counts what is drawn and swapped, and `resampled` names it. `swaps` counts the swaps that were tried, all
    there are where `exact`.
    """

    entries: tuple[tuple[Entry, ...], ...]
    values: Numbers
    replicates: Numbers
    p_values: Mapping[Pair, Numbers]
    level: float
    clusters: int
    resampled: str
    swaps: int
    exact: bool

    @property
    def pairs(self) -> list[Pair]:
        """All pairs of models, by their places."""
        return list(self.p_values)

    def spread(self, i: int, j: int) -> tuple[Numbers, Numbers, Numbers]:
        """Standard error, low and high of the difference of models i and j, each (entries,); NaN where unknown."""
        with np.errstate(invalid="ignore"):
            apart = self.replicates[i] - self.replicates[j]
        return spread_of(apart, self.level)


def pair_tallies(
    tallies: Sequence[Tally],
    *,
    plan: SwapPlan,
    resamples: int,
    level: float,
    seed: int,
    advance: Callable[[int], None] | None = None,
) -> PairedTally:
    """Compare the tallies of several models of the same units; `advance` is told how many swaps are done."""
    check_alike(tallies)
    first = tallies[0]
    pairs = list(combinations(range(len(tallies)), 2))
    values = np.stack([tally.values()[0] for tally in tallies])
    return PairedTally(
        entries=tuple(tally.entries for tally in tallies),
        values=values,
        replicates=_replicates(tallies, resamples, seed),
        p_values=_p_values(tallies, values, pairs, plan, seed, advance),
        level=level,
        clusters=first.clusters.n,
        resampled=first.resampled,
        swaps=plan.tried(first.clusters.n),
        exact=is_exact(first.clusters.n, plan.exact_up_to),
    )


def check_alike(tallies: Sequence[Tally]) -> None:
    """Refuse tallies that do not hold the same scores of the same clusters."""
    first = tallies[0]
    names = [(entry.name, entry.slice) for entry in first.entries]
    for other in tallies[1:]:
        alike = [(entry.name, entry.slice) for entry in other.entries] == names
        if not alike or not np.array_equal(first.clusters.codes, other.clusters.codes):
            raise RunError(
                f"the runs do not have the same scores of the same units: one has {len(first.entries)} scores of "
                f"{first.clusters.n} clusters, the other {len(other.entries)} of {other.clusters.n}",
                remedy="compare runs of the same data with the same options",
            )


def spread_of(replicates: Numbers, level: float) -> tuple[Numbers, Numbers, Numbers]:
    """Standard error and percentile bounds of each column (resamples, entries), from its finite values.

    >>> error, low, high = spread_of(np.array([[0.0, np.nan], [1.0, np.nan], [2.0, np.nan]]), 0.5)
    >>> error[0], low[0], high[0], bool(np.isnan(low[1]))
    (np.float64(1.0), np.float64(0.5), np.float64(1.5), True)
    """
    columns = replicates.shape[1]
    error, low, high = (np.full(columns, np.nan) for _ in range(3))
    quantiles = [(1 - level) / 2, (1 + level) / 2]
    whole = np.isfinite(replicates).all(axis=0) & (len(replicates) > 1)
    if whole.any():
        kept = replicates if whole.all() else replicates[:, whole]
        error[whole] = kept.std(axis=0, ddof=1)
        low[whole], high[whole] = np.quantile(kept, quantiles, axis=0)
    for column in np.flatnonzero(~whole):
        defined = replicates[np.isfinite(replicates[:, column]), column]
        if len(defined) > 1:
            error[column] = defined.std(ddof=1)
            low[column], high[column] = np.quantile(defined, quantiles)
    return error, low, high


def _replicates(tallies: Sequence[Tally], resamples: int, seed: int) -> Numbers:
    first = tallies[0]
    if not first.clusters.can_vary:
        resamples = 0
    found = np.empty((len(tallies), resamples, len(first.entries)))
    done = 0
    for block in multiplicities(first.clusters, resamples, generator(seed, *first.key)):
        for place, tally in enumerate(tallies):
            found[place, done : done + len(block)] = tally.values(block)
        done += len(block)
    return found


def _p_values(
    tallies: Sequence[Tally],
    values: Numbers,
    pairs: Sequence[Pair],
    plan: SwapPlan,
    seed: int,
    advance: Callable[[int], None] | None,
) -> dict[Pair, Numbers]:
    first = tallies[0]
    counts = {}
    for i, j in pairs:
        with np.errstate(invalid="ignore"):
            counts[i, j] = SwapCounts(values[i] - values[j], np.maximum(np.abs(values[i]), np.abs(values[j])))
    of_sums = all(isinstance(tally, SumTally) for tally in tallies)
    differences = _of_sums(tallies, pairs) if of_sums else _of_mixtures(tallies, pairs)
    n = first.clusters.n
    for mask in swaps_of(n, plan.swaps, generator(seed, "swaps", *first.key), plan.exact_up_to):
        for pair, found in differences(mask).items():
            counts[pair].add(found)
        if advance is not None:
            advance(len(mask))
    return {pair: count.p_values(exact=is_exact(n, plan.exact_up_to)) for pair, count in counts.items()}


def _of_mixtures(tallies: Sequence[Tally], pairs: Sequence[Pair]) -> DifferenceOfSwaps:
    def differences(mask: Numbers) -> dict[Pair, Numbers]:
        with np.errstate(invalid="ignore"):
            return {(i, j): tallies[i].mixed(tallies[j], mask) - tallies[j].mixed(tallies[i], mask) for i, j in pairs}

    return differences


def _of_sums(tallies: Sequence[Any], pairs: Sequence[Pair]) -> DifferenceOfSwaps:
    shapes = {tally.sums.shape for tally in tallies}
    if len(shapes) > 1:
        raise RunError(
            f"the runs do not add up the same columns: {' and '.join(str(shape) for shape in sorted(shapes))}",
            remedy="compare runs of the same data with the same options and the same vocabulary",
        )
    sums = [tally.cluster_sums for tally in tallies]
    totals = [one.sum(axis=0)[None] for one in sums]
    moved = [one - sums[0] for one in sums[1:]]

    def differences(mask: Numbers) -> dict[Pair, Numbers]:
        products = [np.zeros_like(totals[0]), *(mask @ one for one in moved)]
        found = {}
        for i, j in pairs:
            change = products[j] - products[i]
            with np.errstate(invalid="ignore"):
                mine = apply_statistic(tallies[i].statistic, totals[i] + change)
                found[i, j] = mine - apply_statistic(tallies[j].statistic, totals[j] - change)
        return found

    return differences
