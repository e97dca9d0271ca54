"""The tallies of very many units, added up from those of parts of their records.

Up to `MAX_RESAMPLED_CLUSTERS` rows of a tally are kept as they are. Beyond that, intervals and tests leave out, draw
and swap groups of clusters, so that the sums of the groups are enough: memory does not grow with the number of units.
The result is that of one tally of all records, bit for bit.

>>> from hardlook.harness.stats import ratio
>>> parts = ([[1, 1], [0, 1]], [[1, 1], [1, 1]])
>>> adder = TallyAdder()
>>> for part in parts:
...     adder.add([SumTally((Entry("accuracy", 2),), np.array(part), ratio, ("example",), "image")])
>>> (accuracy,) = adder.tallies()
>>> accuracy.values().tolist(), accuracy.entries[0].n
([[0.75]], 4)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import HardlookError
from hardlook.harness.stats.bootstrap import MAX_GROUPS
from hardlook.harness.stats.resampling import finite_rows, is_sparse
from hardlook.harness.tally import MAX_RESAMPLED_CLUSTERS, Entry, GroupedTally, SoftTally, SumTally, Tally

Numbers = NDArray[np.float64]


class TallyAdder:
    """Adds up tallies of parts; `groups` are kept of a tally of more than `MAX_RESAMPLED_CLUSTERS` rows."""

    def __init__(self, groups: int = MAX_GROUPS) -> None:
        self.groups = groups
        self._added: list[_AddedTally] = []

    def add(self, tallies: Sequence[Tally]) -> None:
        """Add the tallies of the next part of the records."""
        checked = [_check_additive(tally) for tally in tallies]
        if not self._added:
            self._added = [_AddedTally(tally, self.groups) for tally in checked]
        if [one.identity for one in self._added] != [_identify(tally) for tally in checked]:
            raise _not_additive("the tallies of one part of the records have other scores than those of another")
        for one, tally in zip(self._added, checked, strict=True):
            one.add(tally)

    def tallies(self) -> list[SumTally]:
        """The tallies of everything that was added."""
        return [one.total() for one in self._added]


class _AddedTally:
    """One tally of all parts so far."""

    def __init__(self, first: SumTally, groups: int) -> None:
        self.first, self.identity, self.groups = first, _identify(first), groups
        self.n = [0] * len(first.entries)
        self.reasons = [entry.reason for entry in first.entries]
        self.count = 0
        self.rows: list[Numbers] | None = []
        self.grouped: Numbers = np.zeros((groups, first.sums.shape[1]))
        self.totals = [ExactSum() for _ in range(first.sums.shape[1])]

    def add(self, tally: SumTally) -> None:
        sums = finite_rows(tally.sums, "sums")
        self.n = [n + entry.n for n, entry in zip(self.n, tally.entries, strict=True)]
        # A score that is undefined in one part, for want of units, is defined where another part has some.
        reasons = zip(self.reasons, tally.entries, strict=True)
        self.reasons = [reason if reason == entry.reason else "" for reason, entry in reasons]
        for total, column in zip(self.totals, sums.T, strict=True):
            total.add(column)
        self._group(sums)
        self.count += len(sums)
        if self.rows is not None and self.count <= MAX_RESAMPLED_CLUSTERS:
            self.rows.append(sums)
        else:
            self.rows = None

    def _group(self, sums: Numbers) -> None:
        """Add each row to its group, one after the other, as in one pass over all rows."""
        places = np.arange(self.count, self.count + len(sums)) % self.groups
        for column, more in zip(self.grouped.T, sums.T, strict=True):
            np.add.at(column, places, more)

    def total(self) -> SumTally:
        known = zip(self.first.entries, self.n, self.reasons, strict=True)
        entries = tuple(replace(entry, n=n, reason=reason) for entry, n, reason in known)
        if self.rows is not None:
            return replace(self.first, entries=entries, sums=np.concatenate(self.rows))
        first = self.first
        return GroupedTally(
            entries,
            self.grouped,
            first.statistic,
            first.key,
            first.resampled,
            count=self.count,
            exact=np.array([total.value() for total in self.totals]),
            soft=isinstance(first, SoftTally),
        )


class ExactSum:
    """A sum of floats that is rounded once, whatever the order and the parts they come in.

    >>> total = ExactSum()
    >>> for part in ([0.1, 0.2], [0.3, -0.6]):
    ...     total.add(np.array(part))
    >>> total.value() == math.fsum([0.1, 0.2, 0.3, -0.6])
    True
    """

    def __init__(self) -> None:
        self._parts: list[float] = []

    def add(self, values: Numbers) -> None:
        """Add values to the sum."""
        # Sums of whole numbers are exact below 2^53.
        if np.array_equal(values, np.floor(values)) and np.abs(values).sum() < 2**53:
            self._parts.append(float(values.sum()))
        else:
            self._parts += _expand(values.tolist())
        if len(self._parts) > 100:
            self._parts = _expand(self._parts)

    def value(self) -> float:
        """The sum of all values, rounded."""
        return math.fsum(self._parts)


def _expand(values: list[float]) -> list[float]:
    """A few floats whose exact sum is that of the values: the rounded sum, and what rounding left, until nothing is."""
    parts: list[float] = []
    while part := math.fsum([*values, *(-one for one in parts)]):
        parts.append(part)
    return parts


def _check_additive(tally: Tally) -> SumTally:
    """The tally, if it is one that can be added to others."""
    if not isinstance(tally, SumTally) or is_sparse(tally.sums):
        raise _not_additive("a tally is none of dense sums")
    if tally.labels is not None or tally.strata is not None or tally.shares:
        raise _not_additive("a tally has clusters of several rows, strata or shared images")
    if any(entry.clusters is not None or entry.rests_on for entry in tally.entries):
        raise _not_additive("a score counts clusters or classes of its own")
    return tally


def _identify(tally: SumTally) -> tuple[Any, ...]:
    """All that tallies of two parts have in common."""
    return type(tally), tally.key, tally.resampled, tally.sums.shape[1], tuple(map(_identify_entry, tally.entries))


def _identify_entry(entry: Entry) -> Entry:
    return replace(entry, n=0, reason="")


def _not_additive(why: str) -> HardlookError:
    return HardlookError(
        f"the benchmark is said to be additive, but {why}", remedy="leave `additive` out of its definition"
    )
