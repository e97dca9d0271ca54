"""Who is better: few differences as sentences, many as a table, all of them as dots around zero."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hardlook.comparison.difference_tables import difference_table
from hardlook.comparison.families import OTHERS
from hardlook.comparison.model_names import chart_names
from hardlook.comparison.ranked_scores import score_blocks
from hardlook.comparison.verdicts import meaning_of, sentence
from hardlook.contract.sections import Block, Dot, DotChart, Section

if TYPE_CHECKING:
    from hardlook.comparison.between_runs import Comparison
    from hardlook.comparison.differences import Difference

MOST_SENTENCES = 6
MOST_DOTS = 60
NO_DIFFERENCE = (("no difference", 0.0),)


def verdict_sections(comparison: Comparison) -> list[Section]:
    """The headline scores: of two models the verdicts first, of several the ranking first."""
    text, table = told(comparison, comparison.headline, "Every pair, headline scores over all units", needed=True)
    pairs: list[Block] = [*_difference_charts(comparison), *table]
    scores = score_blocks(comparison)
    if len(comparison.models) == 2:
        return [Section("Who is better", text, (*pairs, *scores))]
    return [Section("Who ranks where", "", tuple(scores)), Section("Pair by pair", text, tuple(pairs))]


def other_scores(comparison: Comparison) -> list[Section]:
    """The scores over all units that are no headlines."""
    others = [one for one in comparison.differences if one.family == OTHERS]
    if not others:
        return []
    text, table = told(comparison, others, "Other scores over all units")
    return [Section("The other scores", text, tuple(table))]


def told(
    comparison: Comparison, differences: Sequence[Difference], title: str, *, needed: bool = False
) -> tuple[str, list[Block]]:
    """A sentence each where they are few; else how many hold, and a table."""
    if len(differences) <= MOST_SENTENCES:
        return "\n\n".join(sentences(comparison, differences)), []
    hold, count = sum(one.told for one in differences), len(differences)
    if hold == count:
        text = f"All {count} differences hold after the correction."
    else:
        text = (
            f"Of {count} differences {hold} hold{'s' if hold == 1 else ''} after the correction. In the others the "
            "models cannot be told apart, or a value is undefined."
        )
    return text, [difference_table(title, comparison.benchmark.card, differences, needed=needed)]


def sentences(comparison: Comparison, differences: Sequence[Difference]) -> list[str]:
    """One sentence a difference."""
    return [sentence(one, meaning_of(comparison.benchmark.card, one.name)) for one in differences]


def _difference_charts(comparison: Comparison) -> list[Block]:
    """Differences with intervals around zero, those of a like size on one axis; none where they are too many."""
    two, short = len(comparison.models) == 2, chart_names(comparison.models)
    by_name: dict[str, list[Difference]] = {}
    for one in comparison.headline if len(comparison.headline) <= MOST_DOTS else ():
        by_name.setdefault(one.name, []).append(one)
    groups: dict[str, list[Difference]] = {}
    for rows in by_name.values():
        groups.setdefault(_size(rows), []).extend(rows)
    caption = (
        f"Lines are {100 * (1 - comparison.alpha):g}% intervals from common resamples. An interval off zero points to "
        "a difference; the verdict goes by the swap test, corrected for all comparisons of its family."
    )
    charts: list[Block] = []
    for rows in groups.values():
        titles = {one.name: meaning_of(comparison.benchmark.card, one.name).title for one in rows}
        if any(one.value for one in rows):
            # Pairs are headings, which have the whole width: beside the dots two names would be cut on a phone.
            pairs = ("" if two else f"{short[one.first]} minus {short[one.second]}" for one in rows)
            dots = tuple(_dot(one, titles[one.name], pair) for one, pair in zip(rows, pairs, strict=True))
            axis = f"{short[rows[0].first]} minus {short[rows[0].second]}" if two else "difference"
            charts.append(DotChart(f"Differences in {'; '.join(titles.values())}", caption, dots, axis, NO_DIFFERENCE))
    return charts


def _size(rows: Sequence[Difference]) -> str:
    """Scores of one size fit on one axis: shares, then each power of ten."""
    values = [abs(value) for one in rows for value in (one.first_value, one.second_value)]
    largest = max((value for value in values if math.isfinite(value)), default=0.0)
    return f"1e{math.ceil(math.log10(largest))}" if largest > 1 else "shares"


def _dot(one: Difference, label: str, group: str) -> Dot:
    low, high = (one.interval.low, one.interval.high) if one.interval is not None else (None, None)
    return Dot(label, one.value, low, high, group)
