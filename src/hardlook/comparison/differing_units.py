"""The units on which models differ most, and how often each is better on a single one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hardlook.contract.benchmark import JudgesUnits, Quality

if TYPE_CHECKING:
    from hardlook.runs.scoring import ScoredRun

# Qualities closer than this are equal but for rounding.
EQUAL = 1e-12


@dataclass(frozen=True, eq=False)
class UnitQualities:
    """The quality of each shared unit under each model: `values` (models, units), NaN where undefined."""

    quality: Quality
    models: tuple[str, ...]
    units: tuple[str, ...]
    values: NDArray[np.float64]

    def gains(self, first: str, second: str) -> NDArray[np.float64]:
        """(units,) how much better `first` is than `second` on each unit, whichever way the quality is better."""
        sign = 1.0 if self.quality.higher_is_better else -1.0
        found: NDArray[np.float64] = sign * (self.of(first) - self.of(second))
        return found

    def of(self, model: str) -> NDArray[np.float64]:
        """(units,) the qualities of one model."""
        found: NDArray[np.float64] = self.values[self.models.index(model)]
        return found


@dataclass(frozen=True)
class UnitCount:
    """On how many units the first model is better, the second is, and both are equal; others are undefined."""

    first: str
    second: str
    first_better: int
    second_better: int
    equal: int
    undefined: int


def unit_qualities(runs: Sequence[ScoredRun], models: Sequence[str], units: Sequence[str]) -> UnitQualities | None:
    """The card's first quality of every shared unit; None where the benchmark judges no single units."""
    benchmark = runs[0].benchmark
    if not (isinstance(benchmark, JudgesUnits) and benchmark.card.qualities):
        return None
    quality = benchmark.card.qualities[0]
    rows = []
    for run in runs:
        table = benchmark.qualities(run.records, run.options)
        known = dict(zip(table["unit"].to_list(), table[quality.name].to_list(), strict=True))
        rows.append([np.nan if known[unit] is None else float(known[unit]) for unit in units])
    return UnitQualities(quality, tuple(models), tuple(units), np.array(rows, dtype=np.float64))


def count_units(qualities: UnitQualities, first: str, second: str) -> UnitCount:
    """How often each of two models is better.

    >>> found = UnitQualities(Quality("iou", "IoU"), ("a", "b"), ("x", "y"), np.array([[0.9, 0.4], [0.1, 0.4]]))
    >>> count_units(found, "a", "b").first_better, count_units(found, "a", "b").equal
    (1, 1)
    """
    gains = qualities.gains(first, second)
    better, worse = int((gains > EQUAL).sum()), int((gains < -EQUAL).sum())
    undefined = int(np.isnan(gains).sum())
    return UnitCount(first, second, better, worse, len(gains) - better - worse - undefined, undefined)


def largest_gains(qualities: UnitQualities, first: str, second: str, most: int) -> list[str]:
    """The units on which `first` is ahead of `second` by most, largest first, ties by unit id.

    >>> found = UnitQualities(Quality("iou", "IoU"), ("a", "b"), ("x", "y"), np.array([[0.9, 0.4], [0.1, 0.5]]))
    >>> largest_gains(found, "a", "b", 5), largest_gains(found, "b", "a", 5)
    (['x'], ['y'])
    """
    gains = qualities.gains(first, second)
    ahead = [(-gain, unit) for gain, unit in zip(gains.tolist(), qualities.units, strict=True) if gain > EQUAL]
    return [unit for _, unit in sorted(ahead)[:most]]


def widest_spread(qualities: UnitQualities, most: int) -> list[str]:
    """The units on which the best and the worst of all models are furthest apart, ties by unit id."""
    spread = qualities.values.max(axis=0) - qualities.values.min(axis=0)
    apart = [(-width, unit) for width, unit in zip(spread.tolist(), qualities.units, strict=True) if width > EQUAL]
    return [unit for _, unit in sorted(apart)[:most]]
