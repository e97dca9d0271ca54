"""What the page of a comparison shows, as sections: verdicts, ranking, slices, units, and how it was done."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hardlook.comparison.between_runs import Comparison
from hardlook.comparison.differences import Difference
from hardlook.comparison.families import OTHERS, headline_names, sizes
from hardlook.comparison.slice_sections import slice_sections
from hardlook.comparison.unit_sections import unit_section
from hardlook.comparison.verdicts import meaning_of, sentence
from hardlook.contract.scorecard import Score
from hardlook.contract.sections import Block, Dot, DotChart, Section, Table, dot_of

if TYPE_CHECKING:
    from hardlook.comparison.differing_units import UnitQualities
    from hardlook.runs.scoring import ScoredRun

MOST_SENTENCES = 12
MOST_ROWS = 1_000
COLUMNS = ("first", "second", "verdict", "difference", "low", "high", "p", "adjusted p", "first value", "second value")
NO_DIFFERENCE = (("no difference", 0.0),)


def show(
    comparison: Comparison, runs: Sequence[ScoredRun], qualities: UnitQualities | None, *, examples: int = 6
) -> list[Section]:
    """The sections of the page; `examples` bounds each gallery."""
    if not comparison.differences:
        return [Section("Side by side", "\n\n".join(comparison.notes), tuple(side_by_side(comparison)))]
    sections = _verdicts(comparison)
    if len(comparison.notes) > 1:
        sections.append(Section("Which units", "\n\n".join(comparison.notes)))
    others = [one for one in comparison.differences if one.family == OTHERS]
    if others:
        told = len(comparison.models) == 2 and len(others) <= MOST_SENTENCES
        text = "\n\n".join(sentences(comparison, others)) if told else ""
        sections.append(Section("The other scores", text, (_table("Other scores over all units", others),)))
    sections += slice_sections(comparison)
    if qualities is not None:
        sections.append(unit_section(runs, qualities, examples))
    return [*sections, _everything(comparison)]


def sentences(comparison: Comparison, differences: Sequence[Difference]) -> list[str]:
    """One sentence a difference."""
    return [sentence(one, meaning_of(comparison.benchmark.card, one.name)) for one in differences]


def side_by_side(comparison: Comparison) -> list[Block]:
    """A chart of each headline score, best model first, and a table of all scores over all units."""
    card = comparison.benchmark.card
    whole = {
        model: {score.name: score for score in reversed(scores) if not score.slice}
        for model, scores in comparison.scores.items()
    }
    names = [score.name for score in card.scores if any(score.name in found for found in whole.values())]
    headline = headline_names(card)
    charts: list[Block] = []
    for name in [name for name in names if name in headline]:
        meaning = meaning_of(card, name)
        rows = [(model, found[name]) for model, found in whole.items() if name in found and _known(found[name])]
        rows.sort(key=lambda row: -row[1].value if meaning.higher_is_better else row[1].value)
        better = "Higher is better." if meaning.higher_is_better else "Lower is better."
        dots = tuple(dot_of(score, model) for model, score in rows)
        charts.append(DotChart(meaning.title, f"{meaning.meaning}. {better}", dots))
    table = Table(
        "Scores over all units",
        "Intervals of single scores overlap more than those of paired differences: hard units are hard for all models.",
        ("model", *(meaning_of(card, name).title for name in names)),
        tuple((model, *(_value(found.get(name)) for name in names)) for model, found in whole.items()),
    )
    return [*charts, table]


def _verdicts(comparison: Comparison) -> list[Section]:
    """Who is better; of several models the ranking first, then each pair."""
    told = sentences(comparison, comparison.headline)
    text = "\n\n".join(told[:MOST_SENTENCES])
    if len(told) > MOST_SENTENCES:
        text += f"\n\nThe table has {len(told) - MOST_SENTENCES} more."
    table = _table("Headline scores over all units", comparison.headline, needed=True)
    pairs: list[Block] = [*_difference_charts(comparison), table]
    if len(comparison.models) == 2:
        return [Section("Who is better", text, (*pairs, *side_by_side(comparison)))]
    ranking = Section("Who ranks where", "", (*_rankings(comparison), *side_by_side(comparison)))
    return [ranking, Section("Pair by pair", text, tuple(pairs))]


def _rankings(comparison: Comparison) -> list[Block]:
    tables: list[Block] = []
    for name, places in comparison.standings.items():
        meaning = meaning_of(comparison.benchmark.card, name)
        tables.append(
            Table(
                f"Ranking by {meaning.title}",
                "Models that share a letter cannot be told apart with these units. "
                + ("Higher is better." if meaning.higher_is_better else "Lower is better."),
                ("rank", "model", meaning.title, "tied sets"),
                tuple((place.rank, place.model, place.score, ", ".join(place.sets)) for place in places),
            )
        )
    return tables


def _difference_charts(comparison: Comparison) -> list[Block]:
    """Differences with intervals around zero: of two models all scores of a like size, of several one score a chart."""
    two = len(comparison.models) == 2
    groups: dict[str, list[Difference]] = {}
    for one in comparison.headline:
        groups.setdefault(_size(one) if two else one.name, []).append(one)
    caption = (
        f"Lines are {100 * (1 - comparison.alpha):g}% intervals from common resamples. An interval off zero points to "
        "a difference; the verdict goes by the swap test, corrected for all comparisons of its family."
    )
    charts: list[Block] = []
    for rows in groups.values():
        titles = {one.name: meaning_of(comparison.benchmark.card, one.name).title for one in rows}
        if any(one.value for one in rows):
            dots = tuple(_dot(one, titles[one.name] if two else f"{one.first} - {one.second}") for one in rows)
            axis = f"{rows[0].first} minus {rows[0].second}" if two else "first minus second"
            charts.append(DotChart(f"Differences in {'; '.join(titles.values())}", caption, dots, axis, NO_DIFFERENCE))
    return charts


def _size(one: Difference) -> str:
    """Scores of one size fit on one axis: shares, then each power of ten."""
    largest = max(abs(one.first_value), abs(one.second_value))
    return f"1e{math.ceil(math.log10(largest))}" if 1 < largest < math.inf else "shares"


def _table(title: str, differences: Sequence[Difference], *, needed: bool = False) -> Table:
    caption = "Difference: the first model's score minus the second's. Adjusted: by Holm's method within the family."
    if needed:
        caption += (
            " Needed: how many units would tell with a chance of 80%, if the observed difference is the true one."
        )
    sliced = any(one.slice for one in differences)
    columns = ("score", *(("slice",) if sliced else ()), *COLUMNS, *(("needed",) if needed else ()))
    rows = [
        (
            one.name,
            *((_where(one),) if sliced else ()),
            *_row(one),
            *((_count(one.units_needed),) if needed else ()),
        )
        for one in differences
    ]
    return Table(title, caption, columns, tuple(rows), decimals=4)


def _everything(comparison: Comparison) -> Section:
    """All differences in one table, the surest first, and how they were made."""
    ordered = sorted(comparison.differences, key=lambda one: (_last(one.adjusted), _last(one.p_value)))
    families = ", ".join(f"{name} ({count:,})" for name, count in sizes(comparison.differences).items())
    shown = ordered[:MOST_ROWS]
    text = (
        f"Each p-value is the share of swaps of whole clusters between two models after which they differ at least as "
        f"much as they do: {comparison.swaps:,} random swaps, or all of them where there are at most 14 clusters. The "
        f"same swaps serve all scores and pairs. Holm's correction is made within families, each with its number of "
        f"comparisons: {families}. A model is called better or worse where the adjusted p is at most "
        f"{comparison.alpha:g}."
    )
    if len(ordered) > len(shown):
        text += f" The table has the {len(shown):,} surest of {len(ordered):,} differences; `comparison.json` has all."
    return Section("All differences", text, (_table("All differences, the surest first", shown),))


def _row(one: Difference) -> tuple[str | float | int | None, ...]:
    low, high = (one.interval.low, one.interval.high) if one.interval is not None else (None, None)
    tested = (_number(one.value), low, high, _number(one.p_value), _number(one.adjusted))
    return (one.first, one.second, one.verdict, *tested, _number(one.first_value), _number(one.second_value))


def _where(one: Difference) -> str:
    return ", ".join(f"{key}: {value}" for key, value in one.slice.items()) or "all units"


def _dot(one: Difference, label: str) -> Dot:
    low, high = (one.interval.low, one.interval.high) if one.interval is not None else (None, None)
    return Dot(label, one.value, low, high)


def _known(score: Score) -> bool:
    return math.isfinite(score.value)


def _value(score: Score | None) -> float | None:
    return score.value if score is not None and _known(score) else None


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _count(needed: float) -> int | None:
    return int(needed) if math.isfinite(needed) else None


def _last(p_value: float) -> float:
    return math.inf if math.isnan(p_value) else p_value
