"""A comparison in a terminal: scores with tied sets, the differences, and where the winner changes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hardlook.report.compare.report import MAX_SENTENCES, describe_differences, get_overall_scores
from hardlook.report.compare.slices import (
    SliceWinner,
    count_wins,
    describe_winner_changes,
    find_slice_winners,
    find_winner_changes,
)
from hardlook.report.formatting import (
    choose_decimals,
    format_count,
    format_interval,
    format_number,
    format_p_value,
    format_rough_count,
)
from hardlook.report.terminal import format_direction

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from hardlook.report.compare.comparison import Comparison
    from hardlook.report.compare.differences import Difference

MAX_PAIRS, MAX_CHANGES = 30, 5
GAP = 2
SHARED_LETTERS = "Models that share a letter do not differ significantly; else they or models between them differ."


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Print the comparison: a sentence per headline score of two models, the ranking and all pairs of several."""
    from rich.text import Text

    card = comparison.benchmark.card
    title = f"{card.name} {card.version}  {format_count(len(comparison.models), 'model')}"
    console.print(Text(f"{title} on {format_count(comparison.units.count, 'shared unit')}", style="bold"))
    for note in comparison.notes:
        console.print(Text(note.replace("`", ""), style="dim"))
    if not comparison.differences:
        console.print()
        console.print(build_score_table(comparison))
        return
    if len(comparison.models) == 2:
        console.print()
        console.print(build_pair_table(comparison, console.width))
        console.print()
        lines = describe_differences(comparison, comparison.headline)
        for line in lines[:MAX_SENTENCES]:
            console.print(Text(line))
        _print_more(console, len(lines) - MAX_SENTENCES, "sentence")
    else:
        console.print()
        for ranking in build_ranking_tables(comparison, console.width):
            console.print(ranking)
        console.print(Text(SHARED_LETTERS, style="dim"))
        console.print()
        table, left_out = build_pairs_table(comparison, console.width)
        console.print(table)
        _print_more(console, left_out, "difference")
    _print_slices(comparison, console)


def _print_more(console: Console, count: int, noun: str) -> None:
    from rich.text import Text

    if count > 0:
        console.print(Text(f"The page has {format_count(count, f'more {noun}')}.", style="dim"))


def _print_slices(comparison: Comparison, console: Console) -> None:
    from rich.text import Text

    winners = find_slice_winners(comparison)
    lines = _describe_wins(comparison, [winner for winner in winners if winner.slice and winner.leaders])
    if not lines:
        return
    console.print()
    console.print(Text("Who wins where", style="bold"))
    for line in lines:
        console.print(Text(line))
    changes = find_winner_changes(winners)
    for line in describe_winner_changes(comparison, changes[:MAX_CHANGES]):
        console.print(Text(line, style="yellow"))
    _print_more(console, len(changes) - MAX_CHANGES, "change")
    if not changes:
        console.print(Text("In no slice does another model clearly win.", style="dim"))


def _describe_wins(comparison: Comparison, winners: Sequence[SliceWinner]) -> list[str]:
    """A line per kind of slice and score with winners, and one per kind for all scores without a winner."""
    kinds: dict[tuple[tuple[str, ...], str], list[SliceWinner]] = {}
    for winner in winners:
        kinds.setdefault((winner.slice_keys, winner.name), []).append(winner)
    lines: list[str] = []
    undecided: dict[tuple[tuple[str, ...], int], list[str]] = {}
    for (kind, name), rows in kinds.items():
        wins = {model: count for model, count in count_wins(rows, comparison.models).items() if count}
        if len(rows) > 1 and wins:
            each = ", ".join(f"{model} wins {count}" for model, count in wins.items())
            lines.append(f"  {name} by {' and '.join(kind)}, {format_count(len(rows), 'slice')}: {each}")
        elif len(rows) > 1:
            undecided.setdefault((kind, len(rows)), []).append(name)
    for (kind, count), names in undecided.items():
        lines.append(
            f"  {', '.join(names)} by {' and '.join(kind)}, {format_count(count, 'slice')}: no clear winner in any"
        )
    return lines


def build_pair_table(comparison: Comparison, width: int) -> Table:
    """The headline scores of two models, one row per score; columns that do not fit into `width` are left out."""
    heads = ("score", *comparison.models, "difference", "interval", "adjusted p", f"{comparison.models[0]} is")
    rows = []
    for one in comparison.headline:
        decimals = choose_decimals([one.first_value, one.second_value])
        values = (format_number(number, decimals) for number in (one.first_value, one.second_value))
        rows.append((one.name, *values, *_format_test(one, decimals), _format_verdict(one)))
    return _fit_table(heads, rows, width, named=1, spared=(4, 5, 2, 1))


def build_ranking_tables(comparison: Comparison, width: int) -> list[Table]:
    """Models by headline scores with letters of tied sets, best first; several tables where one exceeds `width`."""
    from rich.text import Text

    meanings = {score.name: score for score in comparison.benchmark.card.scores}
    overall = get_overall_scores(comparison)
    names = list(dict.fromkeys(one.name for one in comparison.headline))
    places = {name: {place.model: place for place in comparison.standings.get(name, ())} for name in names}
    # Models whose score is undefined have no rank and come last.
    models = list(dict.fromkeys([*next((places[name] for name in names if places[name]), {}), *comparison.models]))
    columns: list[tuple[str, list[Text]]] = []
    for name in names:
        decimals = choose_decimals([found[name].value for found in overall.values() if name in found])
        letters = {model: "".join(place.sets) for model, place in places[name].items()}
        room = max(map(len, letters.values()), default=0)
        cells = []
        for model in models:
            score, place = overall[model].get(name), places[name].get(model)
            value = format_number(score.value if score else None, decimals)
            best = place is not None and place.rank == 1
            cells.append(Text(f"{value} {letters.get(model, ''):<{room}}", style="bold" if best else ""))
        columns.append((f"{name}{format_direction(name, meanings)}", cells))
    free = width - max(map(len, models), default=0) - GAP
    tables = []
    for group in _group_columns(columns, free):
        tables.append(_make_table(("model",), tuple(head for head, _ in group)))
        for row, model in enumerate(models):
            tables[-1].add_row(Text(model), *(cells[row] for _, cells in group))
    return tables


def _group_columns(columns: Sequence[tuple[str, list[Text]]], free: int) -> list[list[tuple[str, list[Text]]]]:
    """The columns in order, in groups that fit into `free` letters, of at least one column each."""
    groups: list[list[tuple[str, list[Text]]]] = []
    taken = free + 1
    for head, cells in columns:
        needed = max(len(head), *(len(cell) for cell in cells)) + GAP
        if taken + needed > free + GAP or not groups:
            groups.append([])
            taken = 0
        groups[-1].append((head, cells))
        taken += needed
    return groups


def build_pairs_table(comparison: Comparison, width: int) -> tuple[Table, int]:
    """Every pair and headline score, and how many were left out; too wide, it has no intervals, then no p-values."""
    names = list(dict.fromkeys(one.name for one in comparison.headline))
    shown = sorted(comparison.headline, key=lambda one: names.index(one.name))[:MAX_PAIRS]
    heads = ("score", "model", "against", "difference", "interval", "adj. p", "verdict")
    rows: list[tuple[Any, ...]] = []
    for one in shown:
        tested = _format_test(one, choose_decimals([one.first_value, one.second_value]))
        rows.append((one.name, one.first, one.second, *tested, _format_verdict(one)))
    before = ""
    for place, row in enumerate(rows):
        rows[place], before = ("" if row[0] == before else row[0], *row[1:]), row[0]
    return _fit_table(heads, rows, width, named=3, spared=(4, 5)), len(comparison.headline) - len(shown)


def build_score_table(comparison: Comparison) -> Table:
    """Scores side by side, where nothing can be tested."""
    overall = get_overall_scores(comparison)
    table = _make_table(("score",), comparison.models)
    for name in dict.fromkeys(name for found in overall.values() for name in found):
        values = [overall[model][name].value if name in overall[model] else None for model in comparison.models]
        decimals = choose_decimals(values)
        table.add_row(name, *(format_number(value, decimals) for value in values))
    return table


def _format_test(one: Difference, decimals: int) -> tuple[str, str, str]:
    return format_number(one.value, decimals), format_interval(*one.bounds, decimals), format_p_value(one.adjusted)


def _format_verdict(one: Difference) -> Text:
    """The verdict, with the units needed where the models do not differ significantly."""
    from rich.text import Text

    words: str = one.verdict
    if one.verdict == "cannot tell" and math.isfinite(one.units_needed) and one.units_needed > one.clusters:
        words += f", needs {format_rough_count(one.units_needed)}"
    return Text(words, style="bold" if one.is_significant else "dim")


def _fit_table(
    heads: Sequence[str], rows: Sequence[Sequence[Any]], width: int, *, named: int, spared: Sequence[int]
) -> Table:
    """The table without the first few `spared` columns, as many as it takes to fit; the last column folds."""
    from rich.text import Text

    widths = [max(len(str(cell)) for cell in column) for column in zip(heads, *rows, strict=True)]
    kept = list(range(len(heads)))
    for place in spared:
        if sum(widths[column] + GAP for column in kept) - GAP > width:
            kept.remove(place)
    table = _make_table(
        tuple(heads[place] for place in kept if place < named),
        tuple(heads[place] for place in kept[:-1] if place >= named),
    )
    table.add_column(Text(heads[-1]), overflow="fold")
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(str(cell)) for cell in (row[place] for place in kept)))
    return table


def _make_table(left: tuple[str, ...], right: tuple[str, ...]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="dim")
    for column in left:
        table.add_column(Text(column), overflow="fold")
    for column in right:
        table.add_column(Text(column), justify="right", no_wrap=True)
    return table
