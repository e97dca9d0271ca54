"""The difference between two models in one score: how large, how sure, and what may be said of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from hardlook.comparison.families import family_of
from hardlook.stats.intervals import Interval

if TYPE_CHECKING:
    from hardlook.comparison.paired import PairedTally

Verdict = Literal["better", "worse", "higher", "lower", "cannot tell", "undefined"]


@dataclass(frozen=True)
class Difference:
    """Score of `first` minus score of `second` on the same units; `slice` is empty over all of them.

    `value`, `interval` and `standard_error` are in the score's own scale. `p_value` is of the swap test and `adjusted`
    the same after Holm's correction within `family`. `n` counts units; the interval says how many clusters there are
    and what they are. `units_needed` is in those: infinite where the models agree, NaN where nothing is known.
    `verdict` is for `first` against `second` and knows which way the score is better; it is higher or lower where
    neither way is. `swaps` counts the swaps behind `p_value`: random ones, or all there are where `exact`.
    """

    name: str
    slice: Mapping[str, str]
    first: str
    second: str
    value: float
    interval: Interval | None
    p_value: float
    adjusted: float
    family: str
    n: int
    units_needed: float
    verdict: Verdict
    first_value: float = math.nan
    second_value: float = math.nan
    standard_error: float = math.nan
    clusters: int = 0
    resampled: str = "unit"
    reading: str = ""
    swaps: int = 0
    exact: bool = False

    @property
    def told(self) -> bool:
        """Whether these units tell the models apart."""
        return self.verdict not in ("cannot tell", "undefined")


def differences_of(paired: PairedTally, models: Sequence[str], headline: Sequence[str]) -> Iterator[Difference]:
    """Every entry and pair of a tally, without correction or verdict yet; entries of no units are left out."""
    for i, j in paired.pairs:
        error, low, high = paired.spread(i, j)
        for column, (mine, other) in enumerate(zip(paired.entries[i], paired.entries[j], strict=True)):
            if not (mine.n or other.n):
                continue
            # What only one of the models has still moves the difference.
            own = max(paired.clusters if one.clusters is None else one.clusters for one in (mine, other))
            bounds = (float(low[column]), float(high[column]))
            known = own > 1 and not any(math.isnan(bound) for bound in bounds)
            first, second = float(paired.values[i, column]), float(paired.values[j, column])
            yield Difference(
                name=mine.name,
                slice=mine.slice,
                first=models[i],
                second=models[j],
                value=first - second,
                interval=Interval(*bounds, paired.level, "percentile", own, paired.resampled) if known else None,
                p_value=float(paired.p_values[i, j][column]),
                adjusted=math.nan,
                family=family_of(mine.name, mine.slice, headline),
                n=max(mine.n, other.n),
                units_needed=math.nan,
                verdict="undefined",
                first_value=first,
                second_value=second,
                standard_error=float(error[column]),
                clusters=own,
                resampled=paired.resampled,
                reading=mine.reading,
                swaps=paired.swaps,
                exact=paired.exact,
            )
