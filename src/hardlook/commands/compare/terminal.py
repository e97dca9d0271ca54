"""A comparison in a terminal: scores with tied sets, the differences, and where the winner changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hardlook.commands.compare.tables import pair_table, ranking_tables, score_table, several_table
from hardlook.comparison.verdict_sections import MOST_SENTENCES, sentences
from hardlook.comparison.winner_changes import change_sentences
from hardlook.comparison.winners import SliceWinner, changes_of_winner, slice_winners, wins
from hardlook.report.numerals import counted

if TYPE_CHECKING:
    from rich.console import Console

    from hardlook.comparison import Comparison

MOST_CHANGES = 5
SHARED_LETTERS = "Models that share a letter cannot be told apart; else they or models between them differ."


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Print it: of two models a sentence for each headline score, of several the ranking and a row for each pair."""
    from rich.text import Text

    card = comparison.benchmark.card
    title = f"{card.name} {card.version}  {counted(len(comparison.models), 'model')}"
    console.print(Text(f"{title} on {counted(len(comparison.units.ids), 'shared unit')}", style="bold"))
    for note in comparison.notes:
        console.print(Text(note.replace("`", ""), style="dim"))
    if not comparison.differences:
        console.print()
        console.print(score_table(comparison))
        return
    if len(comparison.models) == 2:
        console.print()
        console.print(pair_table(comparison, console.width))
        console.print()
        lines = sentences(comparison, comparison.headline)
        for line in lines[:MOST_SENTENCES]:
            console.print(Text(line))
        _more(console, len(lines) - MOST_SENTENCES, "sentence")
    else:
        console.print()
        for ranking in ranking_tables(comparison, console.width):
            console.print(ranking)
        console.print(Text(SHARED_LETTERS, style="dim"))
        console.print()
        table, left_out = several_table(comparison, console.width)
        console.print(table)
        _more(console, left_out, "difference")
    _print_slices(comparison, console)


def _more(console: Console, count: int, noun: str) -> None:
    from rich.text import Text

    if count > 0:
        console.print(Text(f"The page has {counted(count, f'more {noun}')}.", style="dim"))


def _print_slices(comparison: Comparison, console: Console) -> None:
    from rich.text import Text

    winners = slice_winners(comparison)
    lines = _counts(comparison, [winner for winner in winners if winner.slice and winner.leaders])
    if not lines:
        return
    console.print()
    console.print(Text("Who wins where", style="bold"))
    for line in lines:
        console.print(Text(line))
    changes = changes_of_winner(winners)
    for line in change_sentences(comparison, changes[:MOST_CHANGES]):
        console.print(Text(line, style="yellow"))
    _more(console, len(changes) - MOST_CHANGES, "change")
    if not changes:
        console.print(Text("In no slice does another model clearly win.", style="dim"))


def _counts(comparison: Comparison, winners: Sequence[SliceWinner]) -> list[str]:
    """One line for each kind of slice and score that somebody wins, and one a kind for the scores that nobody does."""
    kinds: dict[tuple[tuple[str, ...], str], list[SliceWinner]] = {}
    for winner in winners:
        kinds.setdefault((winner.kind, winner.name), []).append(winner)
    lines: list[str] = []
    nobody: dict[tuple[tuple[str, ...], int], list[str]] = {}
    for (kind, name), rows in kinds.items():
        alone = {model: count for model, count in wins(rows, comparison.models).items() if count}
        if len(rows) > 1 and alone:
            each = ", ".join(f"{model} wins {count}" for model, count in alone.items())
            lines.append(f"  {name} by {' and '.join(kind)}, {counted(len(rows), 'slice')}: {each}")
        elif len(rows) > 1:
            nobody.setdefault((kind, len(rows)), []).append(name)
    for (kind, count), names in nobody.items():
        lines.append(f"  {', '.join(names)} by {' and '.join(kind)}, {counted(count, 'slice')}: no clear winner in any")
    return lines
