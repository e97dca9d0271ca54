"""The page of a comparison as sections: verdicts, ranking, slices, units, and the method."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hardlook.harness.scorecard import Score
from hardlook.harness.sections import Block, Dot, DotChart, Section, Table, score_dot
from hardlook.harness.stats.ranking import Standing
from hardlook.report.compare.differences import (
    OTHER_SCORES,
    Difference,
    count_comparisons,
    describe_difference,
    find_score_meaning,
    list_headline_names,
)
from hardlook.report.compare.model_names import shorten_model_names
from hardlook.report.compare.slices import build_slice_sections
from hardlook.report.compare.units import UnitQualities, build_unit_section
from hardlook.report.estimates import finite_or_none
from hardlook.report.formatting import choose_decimals, format_count, format_level, format_number, format_slice

if TYPE_CHECKING:
    from hardlook.harness.benchmark import BenchmarkCard, ScoreMeaning
    from hardlook.harness.runs.scoring import ScoredRun
    from hardlook.report.compare.comparison import Comparison

MAX_SENTENCES, MAX_DOTS, MAX_ROWS = 6, 60, 1_000

# The verdict comes early, so that it is visible on a phone, where tables scroll sideways.
COLUMNS = ("first", "second", "verdict", "first has", "second has", "difference", "low", "high", "p", "adjusted p")

CAPTION = (
    "Difference: the first model's score minus the second's, with its interval from low to high. Adjusted: by Holm's "
    "method within the family. The verdict is on the first model."
)

NEEDED = " Needed: how many units would tell with a chance of 80%, if the observed difference is the true one."

LETTERS = (
    "Before each name are its rank and the letters of its tied sets: models that share a letter do not differ "
    "significantly with these units; where two share none, they or models between them differ."
)

AS_ABOVE = "Rank, tied sets and name as above."
GAP = "\N{EN SPACE}"


def build_sections(
    comparison: Comparison, runs: Sequence[ScoredRun], qualities: UnitQualities | None, *, examples: int = 6
) -> list[Section]:
    """The sections of the page; `examples` bounds each gallery."""
    if not comparison.differences:
        return [Section("Side by side", "\n\n".join(comparison.notes), tuple(build_score_blocks(comparison)))]
    title = "Every pair, headline scores over all units"
    text, table = summarize_differences(comparison, comparison.headline, title, needed=True)
    pairs: list[Block] = [*_draw_differences(comparison), *table]
    scores = build_score_blocks(comparison)
    # The verdicts come first for two models, the ranking for several.
    if len(comparison.models) == 2:
        sections = [Section("Who is better", text, (*pairs, *scores))]
    else:
        sections = [Section("Who ranks where", "", tuple(scores)), Section("Pair by pair", text, tuple(pairs))]
    # The top of the page says which units are compared.
    if notes := comparison.notes[len(comparison.units.describe()) :]:
        sections.append(Section("Before you read on", "\n\n".join(notes)))
    others = [one for one in comparison.differences if one.family == OTHER_SCORES]
    if others:
        text, table = summarize_differences(comparison, others, "Other scores over all units")
        sections.append(Section("The other scores", text, tuple(table)))
    sections += build_slice_sections(comparison)
    if qualities is not None:
        sections.append(build_unit_section(runs, qualities, examples))
    return [*sections, _build_full_table_section(comparison)]


def describe_comparison(comparison: Comparison) -> list[str]:
    """One or two sentences: who is better in the main score, and in how many of the other headline scores."""
    order = list_headline_names(comparison.benchmark.card)
    headline = sorted(comparison.headline, key=lambda one: order.index(one.name))
    if not headline:
        return []
    main, rest = headline[0], headline[1:]
    if len(comparison.models) > 2:
        return [_describe_leaders(comparison, main.name)]
    first = _describe_pair(main, comparison.find_meaning(main.name))
    return [first, _count_verdicts(rest)] if rest else [first]


def _count_verdicts(differences: Sequence[Difference]) -> str:
    """How often the first model is better, worse, higher or lower than the second, in a sentence."""
    verdicts = Counter(one.verdict for one in differences if one.is_significant)
    unclear = len(differences) - verdicts.total()
    count, first = len(differences), differences[0].first
    if unclear == count:
        return f"These data cannot tell in the other {format_count(count, 'headline score') if count > 1 else 'one'}."
    if not unclear and len(verdicts) == 1 and count > 1:
        return f"{first} is {next(iter(verdicts))} in the other {count} headline scores, too."
    parts = [f"{verdict} in {number}" for verdict, number in verdicts.items()]
    cannot = f"; these data cannot tell in {unclear}" if unclear else ""
    return f"Of the {format_count(count, 'other headline score')} it is {' and '.join(parts)}{cannot}."


def _describe_pair(one: Difference, meaning: ScoreMeaning) -> str:
    """The verdict on two models in a short sentence."""
    decimals = choose_decimals([one.first_value, one.second_value], counts=False)
    values = f"{format_number(one.first_value, decimals)} against {format_number(one.second_value, decimals)}"
    on, title = f"on {format_count(one.clusters, one.resampled)}", _name_directed(meaning)
    if one.verdict == "undefined":
        return f"{meaning.title} of {one.first} and {one.second} cannot be compared: it is undefined."
    if not one.is_significant:
        return f"These data cannot tell {one.first} and {one.second} apart in {title}: {values} {on}."
    return f"{one.first} is {one.verdict} than {one.second} in {title}: {values} {on}."


def _name_directed(meaning: ScoreMeaning) -> str:
    """The title of a score; with its direction where that is not the usual one."""
    return (
        f"{meaning.title} ({meaning.direction})" if meaning.ranked and not meaning.higher_is_better else meaning.title
    )


def _describe_leaders(comparison: Comparison, name: str) -> str:
    """Who leads among several models in one score."""
    title, places = _name_directed(comparison.find_meaning(name)), comparison.standings.get(name, ())
    count = len(comparison.models)
    if not places:
        return f"{count} models are compared in {title}, in which neither more nor less is better."
    first = places[0]
    rows = [one for one in comparison.headline if one.name == name]
    # A model may share no letter with the first one, for a significant pair between them, and yet not differ from it.
    alike = [{one.first, one.second} for one in rows if one.reading == rows[0].reading and not one.is_significant]
    tied = [place.model for place in places[1:] if {first.model, place.model} in alike]
    without = len(comparison.models) - len(places)
    decimals = choose_decimals([place.score for place in places], counts=False)
    leads = f"{first.model} leads {count} models in {title} with {format_number(first.score, decimals)}"
    if not tied:
        others = "all others" if not without else f"all others but {without}, for which it is undefined"
        return f"{leads}, ahead of {others}."
    few = " and ".join(tied) if len(tied) < 3 else f"{len(tied)} others"
    return f"{leads}; these data cannot tell it from {few}."


def summarize_differences(
    comparison: Comparison, differences: Sequence[Difference], title: str, *, needed: bool = False
) -> tuple[str, list[Block]]:
    """A sentence for each of a few differences; for many a summary and a table."""
    if len(differences) <= MAX_SENTENCES:
        return "\n\n".join(describe_differences(comparison, differences)), []
    hold, count = sum(one.is_significant for one in differences), len(differences)
    text = f"All {count} differences hold after the correction."
    if hold < count:
        text = (
            f"Of {count} differences {hold} hold{'s' if hold == 1 else ''} after the correction. In the others the "
            "models do not differ significantly, or a value is undefined."
        )
    return text, [build_difference_table(title, comparison.benchmark.card, differences, needed=needed)]


def describe_differences(comparison: Comparison, differences: Sequence[Difference]) -> list[str]:
    """One sentence per difference."""
    return [describe_difference(one, comparison.find_meaning(one.name)) for one in differences]


def build_difference_table(
    title: str, card: BenchmarkCard, differences: Sequence[Difference], *, needed: bool = False
) -> Table:
    """One row per difference; with a column for slices where there are any, and one for the units `needed`."""
    sliced = any(one.slice for one in differences)
    needed = needed and any(_count_needed(one) for one in differences)
    columns = ("score", *(("slice",) if sliced else ()), *COLUMNS, *(("needed",) if needed else ()))
    rows = []
    for one in differences:
        where = (format_slice(one.slice) or "all units",) if sliced else ()
        more = (_count_needed(one),) if needed else ()
        values = (finite_or_none(value) for value in (one.first_value, one.second_value, one.value))
        p_values = (finite_or_none(one.p_value), finite_or_none(one.adjusted))
        row = (one.first, one.second, one.verdict, *values, *one.bounds, *p_values)
        rows.append((find_score_meaning(card, one.name).title, *where, *row, *more))
    return Table(title, CAPTION + (NEEDED if needed else ""), columns, tuple(rows), decimals=4)


def _count_needed(one: Difference) -> int | None:
    """The units needed, where they are more than there are."""
    return int(one.units_needed) if math.isfinite(one.units_needed) and not one.is_significant else None


def _draw_differences(comparison: Comparison) -> list[Block]:
    """Differences with intervals around zero, those of a similar size on one axis; none where there are too many."""
    two, short = len(comparison.models) == 2, shorten_model_names(comparison.models)
    by_name: dict[str, list[Difference]] = {}
    for one in comparison.headline if len(comparison.headline) <= MAX_DOTS else ():
        by_name.setdefault(one.name, []).append(one)
    groups: dict[str, list[Difference]] = {}
    for rows in by_name.values():
        groups.setdefault(_name_size(rows), []).extend(rows)
    caption = (
        f"Lines are {format_level(1 - comparison.alpha)} intervals of the differences. An interval off zero suggests "
        "a difference; the verdict follows the permutation test, corrected for all comparisons of its family."
    )
    charts: list[Block] = []
    for rows in groups.values():
        titles = {one.name: comparison.find_meaning(one.name).title for one in rows}
        if any(one.value for one in rows):
            # Pairs are headings, which have the whole width: beside the dots two names would be cut on a phone.
            pairs = ("" if two else f"{short[one.first]} minus {short[one.second]}" for one in rows)
            dots = (Dot(titles[one.name], one.value, *one.bounds, pair) for one, pair in zip(rows, pairs, strict=True))
            axis = f"{short[rows[0].first]} minus {short[rows[0].second]}" if two else "difference"
            title = f"Differences in {'; '.join(titles.values())}"
            charts.append(DotChart(title, caption, tuple(dots), axis, (("no difference", 0.0),)))
    return charts


def _name_size(rows: Sequence[Difference]) -> str:
    """The order of magnitude of the scores: shares, then each power of ten."""
    values = [abs(value) for one in rows for value in (one.first_value, one.second_value)]
    largest = max((value for value in values if math.isfinite(value)), default=0.0)
    return f"1e{math.ceil(math.log10(largest))}" if largest > 1 else "shares"


def build_score_blocks(comparison: Comparison) -> list[Block]:
    """A chart of each headline score, best model first, and a table of all scores over all units."""
    card = comparison.benchmark.card
    overall = get_overall_scores(comparison)
    names = [score.name for score in card.scores if any(score.name in scores for scores in overall.values())]
    charts: list[Block] = []
    explanation = LETTERS
    for name in [name for name in names if name in list_headline_names(card)]:
        known = [(model, scores[name]) for model, scores in overall.items() if name in scores]
        rows = [(model, score) for model, score in known if math.isfinite(score.value)]
        places = comparison.standings.get(name, ())
        letters, explanation = (explanation, AS_ABOVE) if places else ("", explanation)
        charts.append(_draw_scores(find_score_meaning(card, name), rows, places, letters))
    values = [
        (model, *(finite_or_none(scores[name].value) if name in scores else None for name in names))
        for model, scores in overall.items()
    ]
    table = Table(
        "Scores over all units",
        "Intervals of single scores overlap more than those of paired differences: hard units are hard for all models.",
        ("model", *(find_score_meaning(card, name).title for name in names)),
        tuple(values),
    )
    return [*charts, table]


def get_overall_scores(comparison: Comparison) -> dict[str, dict[str, Score]]:
    """The scores over all units by model and name; of several readings the first."""
    return {
        model: {score.name: score for score in reversed(scores) if not score.slice}
        for model, scores in comparison.scores.items()
    }


def _draw_scores(
    meaning: ScoreMeaning, rows: Sequence[tuple[str, Score]], places: Sequence[Standing], letters: str
) -> DotChart:
    names = shorten_model_names([model for model, _ in rows])
    labels = names | {place.model: format_ranked_label(place, names.get(place.model, place.model)) for place in places}
    if places:
        order = {place.model: index for index, place in enumerate(places)}
        ordered = sorted(rows, key=lambda row: order.get(row[0], len(order)))
    else:
        sign = -1 if meaning.higher_is_better or not meaning.ranked else 1
        ordered = sorted(rows, key=lambda row: sign * row[1].value)
    sentence = meaning.meaning[:1].upper() + meaning.meaning[1:]
    better = f"{meaning.direction.capitalize()}." if meaning.ranked else "Neither higher nor lower is better."
    caption = " ".join(filter(None, (f"{sentence}." if sentence else "", better, letters)))
    return DotChart(meaning.title, caption, tuple(score_dot(score, labels[model]) for model, score in ordered))


def format_ranked_label(place: Standing, name: str) -> str:
    """Rank, tied sets and name; the name comes last, since long labels are cut at their end on a phone.

    >>> format_ranked_label(Standing("ridge", 0.4, 1, ("a", "b")), "ridge").split()
    ['1', 'ab', 'ridge']
    """
    return f"{place.rank}{GAP}{''.join(place.sets)}{GAP}{name}"


def _build_full_table_section(comparison: Comparison) -> Section:
    """All differences in one table, the smallest p-values first, and the method."""

    def order(one: Difference) -> tuple[float, float]:
        adjusted, p_value = (math.inf if math.isnan(p) else p for p in (one.adjusted, one.p_value))
        return adjusted, p_value

    ordered = sorted(comparison.differences, key=order)
    families = ", ".join(f"{name} ({count:,})" for name, count in count_comparisons(comparison.differences).items())
    shown = ordered[:MAX_ROWS]
    text = (
        f"Each p-value is the share of swaps of whole clusters between two models after which they differ at least as "
        f"much as they do: {comparison.swaps:,} random swaps, or all of them where clusters are few. The "
        f"same swaps serve all scores and pairs. Holm's correction is made within families, each with its number of "
        f"comparisons: {families}. A difference counts as one where the adjusted p is at most {comparison.alpha:g}."
    )
    if len(ordered) > len(shown):
        text += f" The table has the {len(shown):,} surest of {len(ordered):,} differences; `comparison.json` has all."
    table = build_difference_table("All differences, the surest first", comparison.benchmark.card, shown)
    return Section("All differences", text, (table,))
