"""What may be said of a difference: better, worse, or that these units cannot tell.

A verdict needs a p-value, after Holm's correction, of at most alpha. Whether a positive difference is good depends on
the score; where neither way is good, the verdict is higher or lower. Where nothing can be told, the number of units
that would tell is worked out from the spread of the paired difference; with several comparisons in a family it is
planned for alpha divided by their number.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from hardlook.comparison.differences import Difference, Verdict
from hardlook.comparison.families import sizes
from hardlook.comparison.numbers_in_words import about, decimals_of, number, p_text, plural
from hardlook.contract.benchmark import BenchmarkCard, ScoreMeaning
from hardlook.stats.power import units_needed_for

POWER = 0.8


def meaning_of(card: BenchmarkCard, name: str) -> ScoreMeaning:
    """The card's words for a score; a score that it does not know is taken as better when higher."""
    known = next((score for score in card.scores if score.name == name), None)
    return known or ScoreMeaning(name, name, "")


def judged(differences: Iterable[Difference], card: BenchmarkCard, alpha: float) -> tuple[Difference, ...]:
    """The differences, whose p-values are corrected, with their verdicts and the units they need."""
    listed = list(differences)
    counted = sizes(listed)
    return tuple(
        replace(
            one,
            verdict=verdict_of(one.value, one.adjusted, alpha, meaning_of(card, one.name).within(one.slice)),
            units_needed=units_needed_for(
                one.value, one.standard_error, one.clusters, alpha=alpha / max(counted[one.family], 1), power=POWER
            ),
        )
        for one in listed
    )


def verdict_of(value: float, adjusted: float, alpha: float, meaning: ScoreMeaning) -> Verdict:
    """The verdict on a difference.

    >>> miou, clicks = ScoreMeaning("miou", "mIoU", ""), ScoreMeaning("noc", "NoC", "", higher_is_better=False)
    >>> verdict_of(0.1, 0.01, 0.05, miou), verdict_of(0.1, 0.01, 0.05, clicks)
    ('better', 'worse')
    >>> verdict_of(0.1, 0.06, 0.05, miou), verdict_of(math.nan, math.nan, 0.05, miou)
    ('cannot tell', 'undefined')
    """
    if not math.isfinite(value) or math.isnan(adjusted):
        return "undefined"
    if value == 0 or adjusted > alpha:
        return "cannot tell"
    if not meaning.directed:
        return "higher" if value > 0 else "lower"
    return "better" if (value > 0) == meaning.higher_is_better else "worse"


def sentence(difference: Difference, meaning: ScoreMeaning) -> str:
    """The verdict in plain English, with the numbers behind it.

    >>> from hardlook.stats.intervals import Interval
    >>> interval = Interval(0.0, 0.018, 0.95, "percentile", 240, "image")
    >>> one = Difference("miou", {}, "ant", "bee", 0.004, interval, 0.61, 0.61, "headline scores", 240, 3367.0,
    ...     "cannot tell", 0.812, 0.808, 0.007, 240, "image")
    >>> print(sentence(one, ScoreMeaning("miou", "mIoU", "")))
    ant and bee cannot be told apart in mIoU with these 240 images: 0.812 against 0.808, a difference of 0.004
    (95% interval 0.000 to 0.018, p = 0.610). About 3,400 images would be needed if the observed difference is the
    true one.
    """
    one, score = difference, _score_words(difference, meaning.within(difference.slice))
    things = f"{one.clusters:,} {plural(one.resampled, one.clusters)}"
    decimals = decimals_of(one.first_value, one.second_value)
    if one.verdict == "undefined":
        return f"{score} of {one.first} and {one.second} cannot be compared: it is undefined for one of them."
    if one.value == 0 and one.p_value == 1:
        same = number(one.first_value, decimals)
        return f"{one.first} and {one.second} are equal in {score} on these {things}: both have {same}."
    values = f"{number(one.first_value, decimals)} against {number(one.second_value, decimals)}"
    facts = f"{values}, a difference of {number(one.value, decimals)} ({_evidence(one, decimals)})"
    if one.verdict == "cannot tell":
        return (
            f"{one.first} and {one.second} cannot be told apart in {score} with these {things}: {facts}. {_more(one)}"
        )
    return f"{one.first} is {one.verdict} than {one.second} in {score}: {facts}."


def _score_words(one: Difference, meaning: ScoreMeaning) -> str:
    where = " and ".join(f"{key} is {value}" for key, value in one.slice.items())
    return (
        meaning.title
        + (f" where {where}" if where else "")
        + (" (lower is better)" if meaning.directed and not meaning.higher_is_better else "")
    )


def _evidence(one: Difference, decimals: int) -> str:
    words = []
    if one.interval is not None:
        low, high = number(one.interval.low, decimals), number(one.interval.high, decimals)
        words.append(f"{100 * one.interval.level:g}% interval {low} to {high}")
    words.append(f"p = {p_text(one.p_value)}")
    if one.adjusted != one.p_value:
        words.append(f"{p_text(one.adjusted)} after Holm's correction")
    return ", ".join(words)


def _more(one: Difference) -> str:
    """How many units would tell; a difference at the edge is called that."""
    things = plural(one.resampled)
    if math.isnan(one.units_needed):
        return f"How many {things} would be needed is not known."
    if math.isinf(one.units_needed):
        return f"No number of {things} would tell if the observed difference is the true one."
    if one.units_needed <= one.clusters:
        return f"It lies at the edge of what so many {things} can show."
    return f"About {about(one.units_needed)} {things} would be needed if the observed difference is the true one."
