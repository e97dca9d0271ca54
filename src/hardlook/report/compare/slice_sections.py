"""The sections of a comparison by slice: who wins where, by how much, and where the winner changes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from hardlook.harness.sections import Block, Dot, DotChart, HeatMap, Section, Slope, SlopeChart
from hardlook.report.compare.comparison import Comparison
from hardlook.report.compare.differences import Difference, find_score_meaning, get_slice_keys
from hardlook.report.compare.model_names import shorten_model_names
from hardlook.report.compare.slice_winners import (
    SliceWinner,
    build_winner_change_table,
    count_wins,
    describe_winner_changes,
    find_slice_winners,
    find_winner_changes,
)

MOST_SLICES, MOST_SLOPES, MOST_KINDS, MOST_SENTENCES = 40, 16, 12, 6


def build_slice_sections(comparison: Comparison) -> list[Section]:
    """One section per kind of slice, for the headline scores and for scores that have slices only."""
    winners = find_slice_winners(comparison)
    changes = find_winner_changes(winners)
    kinds = list(dict.fromkeys(winner.slice_keys for winner in winners if winner.slice))
    sections = []
    for kind in sorted(kinds, key=lambda kind: (len(kind), kinds.index(kind)))[:MOST_KINDS]:
        of_kind = [winner for winner in winners if winner.slice_keys == kind]
        if len({tuple(winner.slice.items()) for winner in of_kind}) > 1:
            changed = [change for change in changes if change.winner.slice_keys == kind]
            blocks = _build_blocks(comparison, of_kind, kind)
            lines = _describe_wins(comparison, of_kind)
            if len(changed) > MOST_SENTENCES:
                blocks.insert(0, build_winner_change_table(comparison, changed))
            else:
                lines += describe_winner_changes(comparison, changed)
            sections.append(Section(f"By {' and '.join(kind)}", "\n\n".join(lines), tuple(blocks)))
    return sections


def _describe_wins(comparison: Comparison, winners: Sequence[SliceWinner]) -> list[str]:
    lines = []
    for name in dict.fromkeys(winner.name for winner in winners if winner.leaders):
        rows = [winner for winner in winners if winner.name == name and winner.leaders]
        wins = count_wins(rows, comparison.models)
        each = ", ".join(f"{model} wins {count}" for model, count in wins.items())
        undecided = len(rows) - sum(wins.values())
        title = find_score_meaning(comparison.benchmark.card, name).title
        more = f"; in {undecided} no model is clearly ahead" if undecided else ""
        lines.append(f"{title}: of {len(rows)} slices {each}{more}.")
    return lines


def _build_blocks(comparison: Comparison, winners: Sequence[SliceWinner], kind: tuple[str, ...]) -> list[Block]:
    blocks: list[Block] = []
    two = len(comparison.models) == 2
    # A map without a winner would only repeat the sentence above it.
    if two and len(kind) == 1 and any(winner.is_clear for winner in winners):
        blocks.append(_draw_winners_of_two(comparison, winners, kind[0]))
    for name in dict.fromkeys(winner.name for winner in winners):
        rows = [one for one in comparison.differences if one.name == name and get_slice_keys(one.slice) == kind]
        rows = [one for one in rows if math.isfinite(one.value)]
        if two and rows:
            blocks += _draw_two_models(comparison, name, rows, kind)
        elif len(kind) == 1:
            of_name = [winner for winner in winners if winner.name == name]
            blocks += _draw_several_models(comparison, name, of_name, kind[0])
    return blocks


def _draw_winners_of_two(comparison: Comparison, winners: Sequence[SliceWinner], key: str) -> HeatMap:
    names = list(dict.fromkeys(winner.name for winner in winners if winner.leaders))
    slices = list(dict.fromkeys(winner.slice[key] for winner in winners))[:MOST_SLICES]
    first, second = comparison.models
    codes = {
        (winner.slice[key], winner.name): (1.0 if winner.leaders[0] == first else -1.0) if winner.is_clear else 0.0
        for winner in winners
    }
    return HeatMap(
        f"Who wins where: {key}",
        f"1: {first} is better; -1: {second} is better; 0: these units cannot tell. Each score is corrected over all "
        "slices of this kind.",
        slices,
        [find_score_meaning(comparison.benchmark.card, name).title for name in names],
        [[codes.get((value, name), math.nan) for name in names] for value in slices],
        row_axis=key,
        column_axis="score",
        decimals=0,
    )


def _draw_several_models(comparison: Comparison, name: str, winners: Sequence[SliceWinner], key: str) -> list[Block]:
    """The scores of each model in each slice, and who leads there."""
    score = find_score_meaning(comparison.benchmark.card, name).title
    shown = winners[:MOST_SLICES]

    def draw_map(title: str, caption: str, cell: Callable[[SliceWinner, str], float], decimals: int) -> HeatMap:
        rows, models = [winner.slice[key] for winner in shown], comparison.models
        cells = [[cell(winner, model) for model in models] for winner in shown]
        return HeatMap(title, caption, rows, tuple(shorten_model_names(models).values()), cells, key, "model", decimals)

    def get_value(winner: SliceWinner, model: str) -> float:
        return winner.values.get(model, math.nan)

    def get_lead(winner: SliceWinner, model: str) -> float:
        if model not in winner.values:
            return math.nan
        return (1.0 if winner.is_clear else 0.5) if model in winner.leaders else 0.0

    maps: list[Block] = [draw_map(f"{score} by {key}", "Each model on the units of each slice.", get_value, 2)]
    if any(0 < len(winner.leaders) < len(winner.values) for winner in shown):
        caption = "1: ahead of all others; 0.5: among those that lead and cannot be told apart; 0: behind."
        maps.append(draw_map(f"Who wins where: {score} by {key}", caption, get_lead, 1))
    return maps


def _draw_two_models(
    comparison: Comparison, name: str, rows: Sequence[Difference], kind: tuple[str, ...]
) -> list[Block]:
    first, second = shorten_model_names(comparison.models).values()
    meaning = find_score_meaning(comparison.benchmark.card, name)
    if len(kind) == 2:
        caption = f"{first} minus {second}. Empty: there is no value."
        return [_draw_difference_map(f"Difference in {meaning.title}", rows, kind, caption)]
    if len(kind) != 1:
        return []
    key = kind[0]
    better = "more is better" if meaning.higher_is_better else "less is better"
    better = better if meaning.ranked else "neither more nor less is better"
    if inverted := [one.slice[key] for one in rows if meaning.within(one.slice) != meaning]:
        better += f", but for {', '.join(inverted)} the other way round"
    by_size = sorted(rows, key=lambda one: -abs(one.value))
    left_out = f" The {MOST_SLICES} largest of {len(rows)} are shown." if len(rows) > MOST_SLICES else ""
    chart = DotChart(
        f"Differences in {meaning.title} by {key}",
        f"Dots right of zero: {first} has more, and {better}. A star marks differences that hold after the "
        f"correction.{left_out}",
        tuple(
            Dot(f"{one.slice[key]}{' *' if one.is_significant else ''}", one.value, *one.bounds)
            for one in sorted(by_size[:MOST_SLICES], key=lambda one: -one.value)
        ),
        axis=f"{first} minus {second}",
        references=(("no difference", 0.0),),
    )
    changed = [one for one in by_size if one.value]
    if len(changed) < 2:
        return [chart]
    slopes = SlopeChart(
        f"{meaning.title} by {key}, from one model to the other",
        f"The {MOST_SLOPES} slices that change most." if len(changed) > MOST_SLOPES else "Every slice that changes.",
        tuple(
            Slope(one.slice[key], one.first_value, one.second_value, "clear" if one.is_significant else "")
            for one in changed[:MOST_SLOPES]
        ),
        left=first,
        right=second,
        axis=meaning.title,
    )
    return [chart, slopes]


def _draw_difference_map(title: str, rows: Sequence[Difference], kind: tuple[str, ...], caption: str) -> HeatMap:
    down, across = kind
    cells = {(one.slice[down], one.slice[across]): one.value for one in rows}
    names = sorted({row for row, _ in cells})
    columns = sorted({column for _, column in cells})
    return HeatMap(
        f"{title} by {down} and {across}",
        caption,
        names,
        columns,
        [[cells.get((row, column), math.nan) for column in columns] for row in names],
        row_axis=down,
        column_axis=across,
    )
