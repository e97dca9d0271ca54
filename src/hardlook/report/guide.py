"""How to read a page, in words: what an interval is, what n is, what comparable means, with this run's own numbers."""

from __future__ import annotations

from collections.abc import Sequence

from hardlook.contract.scorecard import Score, Scorecard
from hardlook.report.cards import interval_text, plural, score_decimals
from hardlook.report.numerals import counted, numeral

_COMPARABLE = (
    "Whether a number may stand beside a published one. It may when data, units and readings are those of the paper. "
    "Where it says why not, the difference to the paper is not the model's alone. A score that stands on its own has "
    "no published counterpart."
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


def reading_guide(scorecard: Scorecard, chosen: Sequence[Score] = ()) -> list[tuple[str, str]]:
    """Terms and their explanations, in reading order; the first of the chosen scores with an interval is the example.

    >>> [term for term, _ in reading_guide(Scorecard("toss", "1", "planted"))][:2]
    ['Interval', 'n']
    """
    example = next((score for score in (*chosen, *scorecard.headline) if interval_text(score)), None)
    said = [("Interval", _interval_words(example)), ("n", _count_words(example)), ("Comparable", _COMPARABLE)]
    if scorecard.readings:
        said.append(("Readings", _READINGS))
    if any(score.slice for score in scorecard.scores):
        said.append(("Slices", _SLICES))
    return [*said, ("Left out", _LEFT_OUT), ("Figures and tables", _EXPORT)]


def _interval_words(score: Score | None) -> str:
    if score is None or score.interval is None:
        return "No score of this run has an interval: too few units, or none was asked for. Read the values with care."
    decimals, interval = score_decimals(score), score.interval
    return (
        f"How far a score would move if other {plural(interval.resampled)} had been drawn. `{score.name}` is "
        f"{numeral(score.value, decimals)}, its interval {interval_text(score)}. Of intervals made this way about "
        f"{100 * interval.level:g} in 100 hold the value that endlessly many {plural(interval.resampled)} of this kind "
        f"would give. The draw of the data is covered; training the model again, or data of another kind, is not."
    )


def _count_words(score: Score | None) -> str:
    words = "How many units a score rests on."
    if score is not None and score.interval is not None and score.interval.n != score.n:
        words += (
            f" Units that belong together are drawn together: `{score.name}` rests on {numeral(score.n, 0)} units, its "
            f"interval on {counted(score.interval.n, score.interval.resampled, plural(score.interval.resampled))}."
        )
    return f"{words} With four times the units an interval is about half as wide."
