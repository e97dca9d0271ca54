"""From values to places on the page: a linear scale with ticks at round numbers.

>>> scale = fit([0.12, 0.87], start=0, stop=100, ticks=5)
>>> scale.ticks
(0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
>>> scale.at(0.5)
50.0
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from hardlook.report.numerals import finite


@dataclass(frozen=True)
class LinearScale:
    """Maps `low`..`high` to `start`..`stop` (in units of the drawing); `ticks` lie within."""

    low: float
    high: float
    start: float
    stop: float
    ticks: tuple[float, ...] = ()

    def at(self, value: float) -> float:
        """Where the value is drawn; values outside the domain stay on its edge."""
        share = (value - self.low) / (self.high - self.low)
        return self.start + (self.stop - self.start) * min(max(share, 0.0), 1.0)

    def tick_texts(self) -> list[str]:
        """The ticks as texts, all with as many decimals as the finest needs."""
        step = min((after - before for before, after in pairwise(self.ticks)), default=1.0)
        decimals = 0
        while decimals < 8 and any(abs(round(tick, decimals) - tick) > 1e-6 * step for tick in self.ticks):
            decimals += 1
        if decimals == 8 or max((abs(tick) for tick in self.ticks), default=0) >= 1e5:
            texts = [[f"{tick:.{digits}g}" for tick in self.ticks] for digits in range(3, 16)]
            distinct = next((row for row in texts if len(set(row)) == len(row)), texts[-1])
            return [text.replace("-", "\N{MINUS SIGN}") for text in distinct]
        return [f"{tick:.{decimals}f}".replace("-", "\N{MINUS SIGN}") for tick in self.ticks]


def fit(
    values: Iterable[float | None], *, start: float, stop: float, ticks: int = 5, tight: bool = False
) -> LinearScale:
    """The scale whose domain is the round range around all finite values; equal values get room on both sides.

    A tight scale ends at the values themselves. Whole values (counts, clicks) get whole ticks.

    >>> fit([1, 20], start=0, stop=1, ticks=7, tight=True).ticks
    (5.0, 10.0, 15.0, 20.0)
    """
    numbers = finite(values)
    low, high = (min(numbers), max(numbers)) if numbers else (0.0, 1.0)
    if high - low <= 1e-12 * max(abs(low), abs(high), 1e-300):
        # A score has its natural range; anything else gets a tenth of itself on both sides.
        low, high = (0.0, 1.0) if 0 <= low <= 1 else (low - abs(low) * 0.1, high + abs(high) * 0.1)
    step = _round_step((high - low) / max(ticks, 1))
    if high - low >= 1 and all(number == int(number) for number in numbers):
        step = max(1.0, 5.0 if step == 2.5 else step)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    places = tuple(_clean(index * step) for index in range(first, last + 1))
    if tight:
        return LinearScale(low, high, start, stop, tuple(place for place in places if low <= place <= high))
    return LinearScale(places[0], places[-1], start, stop, places)


def _round_step(rough: float) -> float:
    power = 10.0 ** math.floor(math.log10(rough))
    factor = next(nice for nice in (1, 2, 2.5, 5, 10) if nice * power >= rough * (1 - 1e-9))
    return factor * power


def _clean(value: float) -> float:
    """Without the dust of floating point: 0.30000000000000004 becomes 0.3."""
    return float(f"{value:.12g}") + 0.0
