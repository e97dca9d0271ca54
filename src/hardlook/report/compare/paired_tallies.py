"""The scores of several models on the same units: values, common resamples, and p-values from common swaps.

All models are scored on the same resamples, so that the difficulty of the units cancels in the differences. The
p-values come from a paired permutation test that swaps clusters of units between two models; all scores and all pairs
of models share the same swaps. Where scores are functions of sums, k models need only k - 1 matrix products: how a swap
changes the sums of models i and j follows from how it changes each of them against the first model.

The number of swaps depends on the cost. Scores that are functions of sums get 9,999 swaps. A tally that is `costly`,
such as that of an AP, gets 999 swaps, or every possible swap where there are fewer. A p-value from random
swaps is at least 1 / (swaps + 1), and Holm's correction multiplies it by the size of the family, so that a large family
needs more swaps. Of a million units, groups are swapped in place of single ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardlook.errors import RunError
from hardlook.harness.stats.bootstrap import apply_statistic
from hardlook.harness.stats.intervals import Interval, Method, too_often_undefined
from hardlook.harness.stats.jackknife import Spread, SpreadMeter, add_variances, jackknife_bounds
from hardlook.harness.stats.paired import EXACT_CLUSTERS, SwapCounts, count_swaps, draw_swaps, is_exact
from hardlook.harness.stats.resampling import draw_multiplicities
from hardlook.harness.tally import (
    MAX_RESAMPLED_CLUSTERS,
    Entry,
    SeedTally,
    SumTally,
    Tally,
    count_clusters,
    group_many_clusters,
    has_many_clusters,
    is_costly,
    leave_clusters_out,
)
from hardlook.randomness import generator
from hardlook.report.formatting import pluralize

SWAPS, COSTLY_SWAPS = 9_999, 999
# More clusters than `MAX_RESAMPLED_CLUSTERS` are swapped and resampled in this many groups.
SWAPPED_GROUPS = 10_000
# A jackknife interval takes no bound from resamples: they show how often a score is undefined, for which these do.
COSTLY_RESAMPLES = 200
Numbers = NDArray[np.float64]
Pair = tuple[int, int]
DifferencesAfterSwaps = Callable[[Numbers], Mapping[Pair, Numbers]]


@dataclass(frozen=True)
class SwapPlan:
    """`swaps` random swaps, or every possible one where there are at most `exact_up_to` clusters."""

    swaps: int = SWAPS
    exact_up_to: int = EXACT_CLUSTERS

    def count_swaps(self, clusters: int) -> int:
        """The number of swaps that are made for this number of clusters."""
        return count_swaps(clusters, self.swaps, self.exact_up_to)


def plan_swaps(tally: Tally, requested: int | None, comparisons: int, alpha: float) -> SwapPlan:
    """The plan for one tally; `requested` is the user's number of swaps and overrides the default.

    By default, where swaps are cheap, there are at least 2 * `comparisons` / `alpha`: the smallest possible p-value is
    then below `alpha` after Holm's correction. `comparisons` is the number of comparisons of headline scores.
    """
    if is_costly(tally):
        swaps = requested or COSTLY_SWAPS
        return SwapPlan(swaps, min(swaps.bit_length() - 1, EXACT_CLUSTERS))
    return SwapPlan(requested or max(SWAPS, 2 * math.ceil(comparisons / alpha)))


def describe_costly_swaps(tallies: Sequence[Tally], requested: int | None, plans: Sequence[SwapPlan]) -> list[str]:
    """Notes on very many clusters, and on the smaller number of swaps of costly scores, unless the user chose it."""
    costly = [plan for tally, plan in zip(tallies, plans, strict=True) if is_costly(tally)]
    many = [tally for tally in tallies if has_many_clusters(tally)]
    notes = [
        f"There are more than {MAX_RESAMPLED_CLUSTERS:,} {pluralize(one.resampled)}: they are swapped and resampled in "
        f"{SWAPPED_GROUPS:,} groups."
        for one in many[:1]
    ]
    if requested is not None or not costly:
        return notes
    noun = next(tally.resampled for tally in tallies if is_costly(tally))
    return [
        *notes,
        f"Some scores are not functions of sums and take long: their p-values come from {costly[0].swaps:,} random "
        f"swaps, or from all swaps where there are at most {costly[0].exact_up_to} {pluralize(noun)}. `--swaps` sets "
        "another number.",
    ]


@dataclass(frozen=True, eq=False)
class PairedTally:
    """One tally of k models: `values` (k, entries), `replicates` (k, resamples, entries), p-values by pair of models.

    `spreads` say how scores and differences change without each cluster. `wider` has the standard errors (entries,) of
    other draws, for pairs that have such.
    `clusters` counts what is drawn and swapped, and `resampled` names it. `swaps` counts the swaps that were made:
    every possible one where `exact`.
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
    spreads: Mapping[Pair, Spread] = field(default_factory=dict)
    method: Method = "percentile"
    wider: Mapping[Pair, Numbers] = field(default_factory=dict)

    def summarize_difference(self, i: int, j: int) -> tuple[Numbers, Numbers, Numbers]:
        """Standard error, low and high of the difference of models i and j, each (entries,); NaN where unknown."""
        with np.errstate(invalid="ignore"):
            difference = self.replicates[i] - self.replicates[j]
            value = self.values[i] - self.values[j]
        first, second = (np.array([entry.range for entry in self.entries[place]]).reshape(-1, 2) for place in (i, j))
        return self._summarize(
            difference, value, (i, j), np.stack([first[:, 0] - second[:, 1], first[:, 1] - second[:, 0]], axis=1)
        )

    def summarize_score(self, i: int) -> tuple[Numbers, Numbers, Numbers]:
        """Standard error, low and high of the scores of model i, each (entries,); NaN where unknown."""
        return self._summarize(self.replicates[i], self.values[i], (i, i), [entry.range for entry in self.entries[i]])

    def _summarize(
        self, replicates: Numbers, values: Numbers, pair: Pair, ranges: ArrayLike
    ) -> tuple[Numbers, Numbers, Numbers]:
        error, low, high = summarize_replicates(replicates, self.level)
        spread = self.spreads.get(pair)
        if spread is None or not len(replicates):
            return error, low, high
        undefined = np.isnan(low)
        rests_on = [
            max(self.count_clusters(self.entries[place][column]) for place in pair) for column in range(len(values))
        ]
        low, high = jackknife_bounds(values, spread, self.level, ranges, rests_on)
        error = np.where(np.isfinite(spread.standard_error), spread.standard_error, error)
        return error, np.where(undefined, np.nan, low), np.where(undefined, np.nan, high)

    def count_clusters(self, entry: Entry) -> int:
        """How many clusters a score rests on."""
        return self.clusters if entry.clusters is None else entry.clusters

    def find_p_values(self, i: int, j: int) -> Numbers:
        """(entries,): p-values of the permutation test; where more than clusters was drawn, the larger one of two.

        Swaps of clusters know nothing of other seeds, nor of other images that tasks could have shared: a difference
        must then pass the t test that counts those draws as well.
        """
        swapped = self.p_values[i, j]
        if (i, j) not in self.wider:
            return swapped
        tested = self.spreads[i, j].p_values(self.values[i] - self.values[j])
        return np.where(np.isnan(tested), swapped, np.maximum(swapped, tested))

    def find_freedom(self, i: int, j: int) -> Numbers:
        """(entries,): the degrees of freedom of the standard errors of a difference; infinite where not measured."""
        spread = self.spreads.get((i, j))
        return np.full(self.values.shape[1], np.inf) if spread is None else spread.freedom * spread.tails

    def find_fixed_error(self, i: int, j: int) -> Numbers:
        """(entries,): the standard error of draws other than that of clusters, which more clusters do not reduce."""
        return self.wider.get((i, j), np.zeros(self.values.shape[1]))

    def make_interval(self, low: float, high: float, clusters: int) -> Interval | None:
        """The interval with these bounds; None where one is NaN or there are fewer than two clusters."""
        interval = Interval(float(low), float(high), self.level, self.method, clusters, self.resampled)
        return interval if clusters > 1 and interval.defined else None


def pair_tallies(
    tallies: Sequence[Tally],
    *,
    plan: SwapPlan,
    resamples: int,
    level: float,
    seed: int,
    advance: Callable[[int], None] | None = None,
    method: Method = "percentile",
) -> PairedTally:
    """Compare the tallies of several models on the same units; `advance` is called with each number of swaps made.

    `method` is that of the intervals: "jackknife" or "percentile". Where more than clusters was drawn (seeds, images
    that tasks share), it is always the first, since resamples of clusters do not know of those draws.
    """
    check_same_scores(tallies)
    everything = count_clusters(tallies[0])
    # Swapping a group is swapping all its clusters: some of the possible swaps, and so still a test of the same level.
    tallies = [group_many_clusters(tally, SWAPPED_GROUPS) for tally in tallies]
    first = tallies[0]
    n, exact = first.clusters.n, is_exact(first.clusters.n, plan.exact_up_to)
    pairs = list(combinations(range(len(tallies)), 2))
    values = np.stack([tally.values()[0] for tally in tallies])
    counts = {}
    for i, j in pairs:
        with np.errstate(invalid="ignore"):
            counts[i, j] = SwapCounts(values[i] - values[j], np.maximum(np.abs(values[i]), np.abs(values[j])))
    # Not a SoftTally, whose sums must not be subtracted.
    of_sums = all(type(tally) is SumTally for tally in tallies)
    swapped_differences = _make_sum_swapper(tallies, pairs) if of_sums else _make_unit_swapper(tallies, pairs)
    for mask in draw_swaps(n, plan.swaps, generator(seed, "swaps", *first.key), plan.exact_up_to):
        for pair, differences in swapped_differences(mask).items():
            counts[pair].add(differences)
        if advance is not None:
            advance(len(mask))
    draws = {pair: list_wider_draws(tallies, pair) for pair in pairs} if n > 1 else {}
    if method == "jackknife" and is_costly(first):
        resamples = min(resamples, COSTLY_RESAMPLES)
    wider = {pair: np.sqrt(sum(variance for variance, _ in parts)) for pair, parts in draws.items() if parts}
    spreads = measure_spreads(tallies, values, pairs) if method == "jackknife" or wider else {}
    return PairedTally(
        entries=tuple(tally.entries for tally in tallies),
        values=values,
        replicates=_compute_replicates(tallies, resamples, seed),
        p_values={pair: count.p_values(exact=exact) for pair, count in counts.items()},
        level=level,
        clusters=everything,
        resampled=first.resampled,
        swaps=plan.count_swaps(n),
        exact=exact,
        spreads=spreads,
        method="jackknife" if wider else method,
        wider=wider,
    )


def measure_spreads(tallies: Sequence[Tally], values: Numbers, pairs: Sequence[Pair]) -> dict[Pair, Spread]:
    """How much the scores of each model, under (i, i), and the difference of each pair change without each cluster.

    Other draws (see `list_wider_draws`) add their variance, which leaving clusters out cannot show.
    """
    if not tallies[0].clusters.can_vary:
        return {}
    sizes, blocks = leave_clusters_out(tallies)
    meters = {(i, i): SpreadMeter(values[i], sizes) for i in range(len(tallies))}
    with np.errstate(invalid="ignore"):
        meters |= {(i, j): SpreadMeter(values[i] - values[j], sizes) for i, j in pairs}
        for block in blocks:
            for (i, j), meter in meters.items():
                meter.add(block[i] if i == j else block[i] - block[j])
    return {pair: add_variances(meter.measure(), list_wider_draws(tallies, pair)) for pair, meter in meters.items()}


def list_wider_draws(tallies: Sequence[Tally], pair: Pair) -> list[tuple[Numbers, Numbers | float]]:
    """The variances, with degrees of freedom, of draws other than that of clusters: of seeds, and of shared images."""
    chosen = [tallies[place] for place in sorted(set(pair))]
    parts: list[tuple[Numbers, Numbers | float]] = [
        one.measure_seeds() for one in chosen if isinstance(one, SeedTally) and len(one.members) > 1
    ]
    # Of a method with several seeds the first run shows how much its images matter.
    shares = [getattr(one.members[0] if isinstance(one, SeedTally) else one, "shares", ()) for one in chosen]
    if not all(shares):
        return parts
    found = []
    for same in zip(*shares, strict=True):
        if any(one is None for one in same):
            found.append((0.0, 1.0))
        else:
            found.append((same[0].minus(same[1]) if len(same) == 2 else same[0]).measure())
    variance, freedom = (np.array(column) for column in zip(*found, strict=True))
    return [*parts, (variance, freedom)]


def check_same_scores(tallies: Sequence[Tally]) -> None:
    """Raise an error for tallies that do not hold the same scores of the same clusters."""
    first, *others = tallies
    names = [(entry.name, entry.slice) for entry in first.entries]
    for other in others:
        same_names = [(entry.name, entry.slice) for entry in other.entries] == names
        n, others_n = count_clusters(first), count_clusters(other)
        if not same_names or n != others_n or not np.array_equal(first.clusters.codes, other.clusters.codes):
            raise RunError(
                f"the runs do not have the same scores of the same units: one has {len(first.entries)} scores of "
                f"{n} clusters, the other {len(other.entries)} of {others_n}",
                remedy="compare runs of the same data with the same options",
            )


def summarize_replicates(replicates: Numbers, level: float) -> tuple[Numbers, Numbers, Numbers]:
    """Standard error and percentile bounds of each column (resamples, entries), from its finite values.

    >>> error, low, high = summarize_replicates(np.array([[0.0, np.nan], [1.0, np.nan], [2.0, np.nan]]), 0.5)
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
        if len(defined) > 1 and not too_often_undefined(len(replicates) - len(defined), len(replicates), level):
            low[column], high[column] = np.quantile(defined, quantiles)
    return error, low, high


def _compute_replicates(tallies: Sequence[Tally], resamples: int, seed: int) -> Numbers:
    first = tallies[0]
    if not first.clusters.can_vary:
        resamples = 0
    replicates = np.empty((len(tallies), resamples, len(first.entries)))
    done = 0
    for block in draw_multiplicities(first.clusters, resamples, generator(seed, *first.key)):
        for place, tally in enumerate(tallies):
            replicates[place, done : done + len(block)] = tally.values(block)
        done += len(block)
    return replicates


def _make_unit_swapper(tallies: Sequence[Tally], pairs: Sequence[Pair]) -> DifferencesAfterSwaps:
    """A function that computes the differences after swaps by scoring the units again with swapped answers."""

    def differences(mask: Numbers) -> dict[Pair, Numbers]:
        with np.errstate(invalid="ignore"):
            return {(i, j): tallies[i].mixed(tallies[j], mask) - tallies[j].mixed(tallies[i], mask) for i, j in pairs}

    return differences


def _make_sum_swapper(tallies: Sequence[Any], pairs: Sequence[Pair]) -> DifferencesAfterSwaps:
    """A function that computes the same differences from the sums alone."""
    shapes = {tally.sums.shape for tally in tallies}
    if len(shapes) > 1:
        raise RunError(
            f"the runs do not add up the same columns: {' and '.join(str(shape) for shape in sorted(shapes))}",
            remedy="compare runs of the same data with the same options and the same vocabulary",
        )
    sums = [tally.cluster_sums for tally in tallies]
    totals = [tally.totals[None] for tally in tallies]
    against_first = [one - sums[0] for one in sums[1:]]

    def differences(mask: Numbers) -> dict[Pair, Numbers]:
        products = [np.zeros_like(totals[0]), *(mask @ one for one in against_first)]
        result = {}
        for i, j in pairs:
            change = products[j] - products[i]
            with np.errstate(invalid="ignore"):
                first = apply_statistic(tallies[i].statistic, totals[i] + change)
                result[i, j] = first - apply_statistic(tallies[j].statistic, totals[j] - change)
        return result

    return differences
