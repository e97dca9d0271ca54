"""Where another model wins than usual, in words and as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hardlook.comparison.verdicts import meaning_of
from hardlook.contract.sections import Table

if TYPE_CHECKING:
    from hardlook.comparison.between_runs import Comparison
    from hardlook.comparison.winners import WinnerChange


def change_sentences(comparison: Comparison, changes: Sequence[WinnerChange]) -> list[str]:
    """Where another model wins than usual, a sentence each."""
    lines = []
    for change in changes:
        winner, usual = change.winner, " and ".join(change.usual)
        title = meaning_of(comparison.benchmark.card, winner.name).title
        one = len(change.usual) == 1
        why = (
            f"lead{'s' if one else ''} over all units" if change.overall else f"win{'s' if one else ''} the most slices"
        )
        lines.append(
            f"The winner changes where {said(winner.slice)}: {winner.leaders[0]} is ahead in {title}, not {usual}, "
            f"which {why}."
        )
    return lines


def change_table(comparison: Comparison, changes: Sequence[WinnerChange]) -> Table:
    """The same as a table."""
    rows, sliced = [], dict[str, None]()
    for change in changes:
        winner = change.winner
        title = meaning_of(comparison.benchmark.card, winner.name).title
        if not change.overall:
            sliced[title] = None
        values = (winner.values.get(model) for model in (winner.leaders[0], change.usual[0]))
        where = ", ".join(f"{key}: {value}" for key, value in winner.slice.items())
        rows.append((title, where, winner.leaders[0], " and ".join(change.usual), *values, winner.n))
    captions = ["The usual winner leads over all units."] if any(change.overall for change in changes) else []
    if sliced:
        captions.append(
            f"{', '.join(sliced)}: there is no value over all units, so the usual winner is the model that wins the "
            "most slices of this kind."
        )
    columns = ("score", "slice", "winner", "usual winner", "winner's value", "usual winner's value", "units")
    return Table("Where the winner changes", " ".join(captions), columns, tuple(rows))


def said(where: Mapping[str, str]) -> str:
    """A slice in words.

    >>> said({"class": "cat", "context": "night"})
    'class is cat and context is night'
    """
    return " and ".join(f"{key} is {value}" for key, value in where.items())
