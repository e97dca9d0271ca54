"""The slices: who wins where, by how much, and where the winner changes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from hardlook.comparison.between_runs import Comparison
from hardlook.comparison.differences import Difference
from hardlook.comparison.families import kind_of
from hardlook.comparison.model_names import chart_names
from hardlook.comparison.verdicts import meaning_of
from hardlook.comparison.winner_changes import change_sentences, change_table
from hardlook.comparison.winners import SliceWinner, changes_of_winner, slice_winners, wins
from hardlook.contract.sections import Block, Dot, DotChart, HeatMap, Section, Slope, SlopeChart

MOST_SLICES = 40
MOST_SLOPES = 16
MOST_KINDS = 12
MOST_SENTENCES = 6


def slice_sections(comparison: Comparison) -> list[Section]:
    """One section for each kind of slice of the headline scores, and of scores that exist in slices alone."""
    winners = [winner for winner in slice_winners(comparison) if winner.slice]
    kinds = list(dict.fromkeys(winner.kind for winner in winners))
    changes = changes_of_winner(slice_winners(comparison))
    sections = []
    for kind in sorted(kinds, key=lambda kind: (len(kind), kinds.index(kind)))[:MOST_KINDS]:
        here = [winner for winner in winners if winner.kind == kind]
        if len({tuple(winner.slice.items()) for winner in here}) > 1:
            changed = [change for change in changes if change.winner.kind == kind]
            blocks = _blocks(comparison, here, kind)
            lines = _counts(comparison, here)
            if len(changed) > MOST_SENTENCES:
                blocks.insert(0, change_table(comparison, changed))
            else:
                lines += change_sentences(comparison, changed)
            sections.append(Section(f"By {' and '.join(kind)}", "\n\n".join(lines), tuple(blocks)))
    return sections


def _counts(comparison: Comparison, winners: Sequence[SliceWinner]) -> list[str]:
    lines = []
    for name in dict.fromkeys(winner.name for winner in winners):
        rows = [winner for winner in winners if winner.name == name and winner.leaders]
        if not rows:
            continue
        alone = wins(rows, comparison.models)
        each = ", ".join(f"{model} wins {count}" for model, count in alone.items())
        open_ones = len(rows) - sum(alone.values())
        title = meaning_of(comparison.benchmark.card, name).title
        more = f"; in {open_ones} no model is clearly ahead" if open_ones else ""
        lines.append(f"{title}: of {len(rows)} slices {each}{more}.")
    return lines


def _blocks(comparison: Comparison, winners: Sequence[SliceWinner], kind: tuple[str, ...]) -> list[Block]:
    blocks: list[Block] = []
    two = len(comparison.models) == 2
    # A map in which nobody wins says nothing that the sentence above it does not.
    if two and len(kind) == 1 and any(winner.clear for winner in winners):
        blocks.append(_who_wins_of_two(comparison, winners, kind[0]))
    for name in dict.fromkeys(winner.name for winner in winners):
        of_name = [winner for winner in winners if winner.name == name]
        rows = [one for one in comparison.differences if one.name == name and kind_of(one.slice) == kind]
        rows = [one for one in rows if math.isfinite(one.value)]
        if two and rows:
            blocks += _of_two(comparison, name, rows, kind)
        elif len(kind) == 1 and of_name:
            blocks += _of_several(comparison, name, of_name, kind[0])
    return blocks


def _who_wins_of_two(comparison: Comparison, winners: Sequence[SliceWinner], key: str) -> HeatMap:
    names = list(dict.fromkeys(winner.name for winner in winners if winner.leaders))
    slices = list(dict.fromkeys(winner.slice[key] for winner in winners))[:MOST_SLICES]
    first, second = comparison.models
    codes = {
        (winner.slice[key], winner.name): (1.0 if winner.leaders[0] == first else -1.0) if winner.clear else 0.0
        for winner in winners
    }
    return HeatMap(
        f"Who wins where: {key}",
        f"1: {first} is better; -1: {second} is better; 0: these units cannot tell. Each score is corrected over all "
        "slices of this kind.",
        slices,
        [meaning_of(comparison.benchmark.card, name).title for name in names],
        [[codes.get((value, name), math.nan) for name in names] for value in slices],
        row_axis=key,
        column_axis="score",
        decimals=0,
    )


def _of_several(comparison: Comparison, name: str, winners: Sequence[SliceWinner], key: str) -> list[Block]:
    """The scores of each model in each slice, and who leads there."""
    title = meaning_of(comparison.benchmark.card, name).title
    shown = winners[:MOST_SLICES]

    def heat(title: str, caption: str, cell: Callable[[SliceWinner, str], float], decimals: int) -> HeatMap:
        rows, models = [winner.slice[key] for winner in shown], comparison.models
        cells = [[cell(winner, model) for model in models] for winner in shown]
        return HeatMap(title, caption, rows, tuple(chart_names(models).values()), cells, key, "model", decimals)

    def value(winner: SliceWinner, model: str) -> float:
        return winner.values.get(model, math.nan)

    maps: list[Block] = [heat(f"{title} by {key}", "Each model on the units of each slice.", value, 2)]
    if any(0 < len(winner.leaders) < len(winner.values) for winner in shown):
        caption = "1: ahead of all others; 0.5: among those that lead and cannot be told apart; 0: behind."
        maps.append(heat(f"Who wins where: {title} by {key}", caption, _place, 1))
    return maps


def _place(winner: SliceWinner, model: str) -> float:
    if model not in winner.values:
        return math.nan
    return (1.0 if winner.clear else 0.5) if model in winner.leaders else 0.0


def _of_two(comparison: Comparison, name: str, rows: Sequence[Difference], kind: tuple[str, ...]) -> list[Block]:
    first, second = chart_names(comparison.models).values()
    meaning = meaning_of(comparison.benchmark.card, name)
    title, better = meaning.title, "more is better" if meaning.higher_is_better else "less is better"
    better = better if meaning.directed else "neither more nor less is better"
    if turned := [one.slice[kind[0]] for one in rows if len(kind) == 1 and meaning.within(one.slice) != meaning]:
        better += f", but for {', '.join(turned)} the other way round"
    if len(kind) == 2:
        return [
            _map_of_two(f"Difference in {title}", rows, kind, f"{first} minus {second}. Empty: not to be had there.")
        ]
    if len(kind) != 1:
        return []
    widest = sorted(rows, key=lambda one: -abs(one.value))
    left_out = f" The {MOST_SLICES} largest of {len(rows)} are shown." if len(rows) > MOST_SLICES else ""
    shown = sorted(widest[:MOST_SLICES], key=lambda one: -one.value)
    dots = tuple(
        Dot(
            f"{one.slice[kind[0]]}{' *' if one.told else ''}",
            one.value,
            one.interval.low if one.interval else None,
            one.interval.high if one.interval else None,
        )
        for one in shown
    )
    chart = DotChart(
        f"Differences in {title} by {kind[0]}",
        f"Dots right of zero: {first} has more, and {better}. A star marks differences that hold after the "
        f"correction.{left_out}",
        dots,
        axis=f"{first} minus {second}",
        references=(("no difference", 0.0),),
    )
    changed = [one for one in widest if one.value]
    if len(changed) < 2:
        return [chart]
    slopes = SlopeChart(
        f"{title} by {kind[0]}, from one model to the other",
        f"The {MOST_SLOPES} slices that change most." if len(changed) > MOST_SLOPES else "Every slice that changes.",
        tuple(
            Slope(one.slice[kind[0]], one.first_value, one.second_value, "clear" if one.told else "")
            for one in changed[:MOST_SLOPES]
        ),
        left=first,
        right=second,
        axis=title,
    )
    return [chart, slopes]


def _map_of_two(title: str, rows: Sequence[Difference], kind: tuple[str, ...], caption: str) -> HeatMap:
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
