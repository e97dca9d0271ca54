"""Texts of a page that are made from its scorecard: how to read it, and the slices that an average hides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hardlook.harness.scorecard import Score, Scorecard
from hardlook.report.formatting import format_count, format_interval, format_number, is_number, pluralize
from hardlook.report.score_cards import choose_score_decimals, format_score_interval

_COMPARABLE = (
    "Whether a number can be compared with a published one. It can when data, units and readings are those of the "
    "paper. Where it says why not, the difference to the paper is not the model's alone. A score without a published "
    "counterpart says so."
)

_READINGS = (
    "Papers sometimes say one thing and compute another. Each such choice has a name and a value, listed under "
    '"Which readings ran". Numbers under different readings do not compare.'
)

_SLICES = (
    "A slice is the part of the units that shares a property, such as a class or a context. A slice of few units has a "
    "wide interval. Among many slices some look extreme by chance alone, so look at the interval before the rank."
)

_LEFT_OUT = 'Units that could not be scored are counted under "What was left out", with the reason.'

_EXPORT = (
    "Every chart has its numbers behind it. Charts and tables have a name in small print: `hardlook figure RUN NAME` "
    "writes a chart as SVG, PDF, PNG or CSV, `hardlook table RUN NAME` writes a table as LaTeX, Markdown or CSV."
)


def build_reading_guide(scorecard: Scorecard, chosen: Sequence[Score] = ()) -> list[tuple[str, str]]:
    """Terms and their explanations, in reading order; the first of the chosen scores with an interval is the example.

    >>> [term for term, _ in build_reading_guide(Scorecard("toss", "1", "planted"))][:2]
    ['Interval', 'n']
    """
    example = next((score for score in (*chosen, *scorecard.headline) if format_score_interval(score)), None)
    terms = [("Interval", _explain_interval(example)), ("n", _explain_count(example)), ("Comparable", _COMPARABLE)]
    if scorecard.readings:
        terms.append(("Readings", _READINGS))
    if any(score.slice for score in scorecard.scores):
        terms.append(("Slices", _SLICES))
    return [*terms, ("Left out", _LEFT_OUT), ("Figures and tables", _EXPORT)]


def _explain_interval(score: Score | None) -> str:
    if score is None or score.interval is None:
        return "No score of this run has an interval: too few units, or none was requested. Read the values with care."
    resampled = pluralize(score.interval.resampled)
    return (
        f"How far a score would move if other {resampled} had been drawn. `{score.name}` is "
        f"{format_number(score.value, choose_score_decimals(score))}, its interval {format_score_interval(score)}. Of "
        f"intervals made this way about {100 * score.interval.level:g} in 100 hold the value that endlessly many "
        f"{resampled} of this kind would give. The draw of the data is covered; training the model again, or data of "
        "another kind, is not."
    )


def _explain_count(score: Score | None) -> str:
    text = "How many units a score is computed from."
    if score is not None and score.interval is not None and score.interval.n != score.n:
        noun = score.interval.resampled
        clusters = format_count(score.interval.n, noun, pluralize(noun))
        text += (
            f" Units that belong together are drawn together: `{score.name}` is computed from "
            f"{format_number(score.n, 0)} units, its interval from {clusters}."
        )
    return f"{text} With four times the units an interval is about half as wide."


@dataclass(frozen=True)
class SliceExtremes:
    """One score over one kind of slice: its title, the kind, and its lowest and highest value in words."""

    name: str
    by: str
    lowest: str
    highest: str


def find_slice_extremes(
    scorecard: Scorecard, titles: Mapping[str, str] | None = None, most: int = 4
) -> list[SliceExtremes]:
    """Scores whose lowest and highest slices have intervals that do not overlap: the first score per kind of slice.

    >>> from hardlook.harness.stats.intervals import Interval
    >>> def score(value, name):
    ...     interval = Interval(value - 0.1, value + 0.1, 0.95, "percentile", 9, "image")
    ...     return Score("iou", value, 9, interval, {"class": name})
    >>> card = Scorecard("b", "1", "m", (score(0.2, "cat"), score(0.8, "dog"), score(0.5, "cow")))
    >>> find_slice_extremes(card)[0].lowest, find_slice_extremes(card)[0].highest
    ('0.200 (0.100 to 0.300) for cat', '0.800 (0.700 to 0.900) for dog')
    """
    groups: dict[tuple[str, tuple[str, ...]], list[Score]] = {}
    for score in scorecard.scores:
        if score.slice and is_number(score.value) and format_score_interval(score):
            groups.setdefault((score.name, tuple(sorted(score.slice))), []).append(score)
    extremes: dict[tuple[str, ...], SliceExtremes] = {}
    for (name, _), scores in groups.items():
        # A property with the same value in all slices is not named.
        keys = tuple(key for key in scores[0].slice if len({score.slice[key] for score in scores}) > 1)
        low, high = min(scores, key=lambda score: score.value), max(scores, key=lambda score: score.value)
        assert low.interval is not None and high.interval is not None
        if not keys or keys in extremes or low.interval.high >= high.interval.low:
            continue
        decimals = min(choose_score_decimals(low), choose_score_decimals(high))
        ends = (
            _describe_extreme([score for score in scores if score.value == end.value], keys, decimals)
            for end in (low, high)
        )
        extremes[keys] = SliceExtremes((titles or {}).get(name) or name, " and ".join(keys), *ends)
    return list(extremes.values())[:most]


def _describe_extreme(scores: Sequence[Score], keys: Sequence[str], decimals: int) -> str:
    """A value and its slice; of slices with the same value the first is named and the others are counted."""
    first, interval = scores[0], scores[0].interval
    ends = f" ({format_interval(interval.low, interval.high, decimals)})" if interval else ""
    where = ", ".join(first.slice[key] for key in keys)
    more = f" and {len(scores) - 1} more" if len(scores) > 1 else ""
    return f"{format_number(first.value, decimals)}{ends} for {where}{more}"
