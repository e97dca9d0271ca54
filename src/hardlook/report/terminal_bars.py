"""Small bars of characters: a value with its interval, or many values at once, on a range that stands beside them.

Scores between 0 and 1 share that range. Any other score has one of its own, which starts at zero and holds its
slices too, so that lengths are never compared between scores that are not measured alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hardlook.contract.scorecard import Score
from hardlook.report.charts.scales import fit
from hardlook.report.numerals import finite, is_number

LEAST, MOST = 6, 24
_EMPTY, _LINE, _DOT, _MANY = "·", "─", "●", "•"


@dataclass(frozen=True)
class Range:
    """The two ends of a bar, and how they are written."""

    low: float
    high: float
    left: str
    right: str


def range_of(numbers: Iterable[float]) -> Range:
    """The range for bars of these numbers: 0 to 1 where all lie in it, else a round one that holds zero.

    >>> range_of([0.5, 0.75])
    Range(low=0.0, high=1.0, left='0', right='1')
    >>> range_of([3.25, 7.0])
    Range(low=0.0, high=10.0, left='0', right='10')
    """
    known = finite(numbers)
    if all(0 <= number <= 1 for number in known):
        return Range(0.0, 1.0, "0", "1")
    scale = fit([0.0, *known], start=0, stop=1, ticks=2)
    left, right = (f"{end:g}".replace("-", "\N{MINUS SIGN}") for end in (scale.low, scale.high))
    return Range(scale.low, scale.high, left, right)


def ranges_by_name(scores: Iterable[Score], by_value: Iterable[Score] = ()) -> dict[str, Range]:
    """One range for all that is shown of a score: `scores` with their intervals, those `by_value` without.

    >>> ranges_by_name([Score("clicks", 3.0, 9)], [Score("clicks", 7.0, 4, slice={"size": "small"})])["clicks"].right
    '10'
    """
    numbers: dict[str, list[float]] = {}
    for score in scores:
        bounds = () if score.interval is None else (score.interval.low, score.interval.high)
        numbers.setdefault(score.name, []).extend((score.value, *bounds))
    for score in by_value:
        numbers.setdefault(score.name, []).append(score.value)
    return {name: range_of(values) for name, values in numbers.items()}


def interval_bar(score: Score, low: float, high: float, width: int = MOST) -> str:
    """Value and interval as characters on the range low to high.

    >>> from hardlook.stats.intervals import Interval
    >>> interval_bar(Score("a", 0.5, 9, Interval(0.25, 0.75, 0.95, "t", 9, "fold")), 0, 1, width=9)
    '··──●──··'
    """
    cells = [_EMPTY] * width
    if score.interval is not None and is_number(score.interval.low) and is_number(score.interval.high):
        first, last = (_place(end, low, high, width) for end in (score.interval.low, score.interval.high))
        cells[first : last + 1] = [_LINE] * (last - first + 1)
    if is_number(score.value):
        cells[_place(score.value, low, high, width)] = _DOT
    return "".join(cells)


def strip(values: Iterable[float], low: float, high: float, width: int = MOST) -> str:
    """Where many values lie on the range.

    >>> strip([0.0, 0.5, 0.52, float("nan")], 0, 1, width=9)
    '•···•····'
    """
    cells = [_EMPTY] * width
    for value in finite(values):
        cells[_place(value, low, high, width)] = _MANY
    return "".join(cells)


def with_ends(bars: Sequence[str], ranges: Sequence[Range]) -> list[str]:
    """The bars between the ends of their ranges, aligned.

    >>> with_ends(["●··", "··●"], [Range(0, 1, "0", "1"), Range(-5, 10, "-5", "10")])
    [' 0 ●·· 1', '-5 ··● 10']
    """
    left = max((len(span.left) for span in ranges), default=0)
    return [f"{span.left:>{left}} {bar} {span.right}" for bar, span in zip(bars, ranges, strict=True)]


def room_for_bars(width: int, taken: int, ranges: Sequence[Range]) -> int:
    """How many characters a bar gets beside `taken` others; 0 where too few are left to be of use."""
    ends = max((len(span.left) for span in ranges), default=0) + max((len(span.right) for span in ranges), default=0)
    room = min(width - taken - ends - 2, MOST)
    return room if room >= LEAST else 0


def _place(value: float, low: float, high: float, width: int) -> int:
    share = (value - low) / (high - low) if high > low else 0.5
    return round(min(max(share, 0.0), 1.0) * (width - 1))
