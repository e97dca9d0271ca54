"""What the averages hide: where a score is lowest and where it is highest, for each way of slicing the units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hardlook.contract.scorecard import Score, Scorecard
from hardlook.report.cards import interval_text, score_decimals
from hardlook.report.numerals import is_number, numeral, span

MOST = 4


@dataclass(frozen=True)
class Spread:
    """One score over one kind of slice: its name, the slice's name, and both ends in words."""

    name: str
    by: str
    lowest: str
    highest: str


def behind_averages(scorecard: Scorecard, titles: Mapping[str, str] | None = None, most: int = MOST) -> list[Spread]:
    """At most `most` spreads whose ends have intervals that do not meet; the first score of each kind of slice.

    Slices of the same property are set side by side; a property with one value tells nothing and is not named.

    >>> from hardlook.contract.scorecard import Interval
    >>> def score(value, name):
    ...     interval = Interval(value - 0.1, value + 0.1, 0.95, "percentile", 9, "image")
    ...     return Score("iou", value, 9, interval, {"class": name})
    >>> behind_averages(Scorecard("b", "1", "m", (score(0.2, "cat"), score(0.8, "dog"), score(0.5, "cow"))))
    [Spread(name='iou', by='class', lowest='0.200 (0.100 to 0.300) for cat', highest='0.800 (0.700 to 0.900) for dog')]
    """
    groups: dict[tuple[str, tuple[str, ...]], list[Score]] = {}
    for score in scorecard.scores:
        if score.slice and is_number(score.value) and interval_text(score):
            groups.setdefault((score.name, tuple(sorted(score.slice))), []).append(score)
    spreads: dict[tuple[str, ...], Spread] = {}
    for (name, _), scores in groups.items():
        keys = _telling(scores)
        low, high = min(scores, key=_value), max(scores, key=_value)
        if not keys or keys in spreads or _meet(low, high):
            continue
        decimals = min(score_decimals(low), score_decimals(high))
        ends = [_end([score for score in scores if score.value == end.value], keys, decimals) for end in (low, high)]
        spreads[keys] = Spread((titles or {}).get(name) or name, " and ".join(keys), *ends)
    return list(spreads.values())[:most]


def _telling(scores: Sequence[Score]) -> tuple[str, ...]:
    """The properties in which these slices differ, in their own order."""
    return tuple(key for key in scores[0].slice if len({score.slice[key] for score in scores}) > 1)


def _meet(low: Score, high: Score) -> bool:
    return low.interval is None or high.interval is None or low.interval.high >= high.interval.low


def _value(score: Score) -> float:
    return score.value


def _end(scores: Sequence[Score], keys: Sequence[str], decimals: int) -> str:
    """One end in words; of slices with the same value the first is named and the others are counted."""
    first, interval = scores[0], scores[0].interval
    ends = f" ({span(interval.low, interval.high, decimals)})" if interval else ""
    where = ", ".join(first.slice[key] for key in keys)
    more = f" and {len(scores) - 1} more" if len(scores) > 1 else ""
    return f"{numeral(first.value, decimals)}{ends} for {where}{more}"
