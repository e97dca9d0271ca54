"""A comparison in a terminal: the ranking, a sentence for each headline score, and where the winner changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hardlook.comparison.families import headline_names
from hardlook.comparison.numbers_in_words import p_text
from hardlook.comparison.sections import sentences
from hardlook.comparison.slice_sections import change_sentences
from hardlook.comparison.verdicts import meaning_of
from hardlook.comparison.winners import SliceWinner, changes_of_winner, slice_winners, wins
from hardlook.report.numerals import counted, decimals_for, numeral, span

if TYPE_CHECKING:
    from rich.console import Console

    from hardlook.comparison import Comparison

_VERDICTS = {"better": "better", "worse": "worse", "cannot tell": "not to be told apart", "undefined": "undefined"}
MOST_SENTENCES = 15
MOST_CHANGES = 10


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Print it; with more than two models the ranking comes first."""
    from rich.text import Text

    card = comparison.benchmark.card
    title = f"{card.name} {card.version}  {counted(len(comparison.models), 'model')}"
    console.print(Text(f"{title} on {counted(len(comparison.units.ids), 'shared unit')}", style="bold"))
    for note in comparison.notes:
        console.print(Text(note.replace("`", ""), style="dim"))
    if not comparison.differences:
        _print_scores(comparison, console)
        return
    if len(comparison.models) == 2:
        _print_pair(comparison, console)
    else:
        _print_rankings(comparison, console)
    told = sentences(comparison, comparison.headline)
    console.print()
    for line in told[:MOST_SENTENCES]:
        console.print(Text(line))
    if len(told) > MOST_SENTENCES:
        console.print(Text(f"{len(told) - MOST_SENTENCES} more pairs and scores are in the page.", style="dim"))
    _print_slices(comparison, console)


def _print_pair(comparison: Comparison, console: Console) -> None:
    """The headline scores of two models, a row each."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("score")
    for column in (*comparison.models, "difference", "interval", "adjusted p"):
        table.add_column(Text(column), justify="right")
    table.add_column(Text(f"{comparison.models[0]} is"))
    for one in comparison.headline:
        decimals = decimals_for([one.first_value, one.second_value])
        values = (numeral(number, decimals) for number in (one.first_value, one.second_value, one.value))
        bounds = span(one.interval.low, one.interval.high, decimals) if one.interval else ""
        said = Text(_VERDICTS[one.verdict], style="bold" if one.verdict in ("better", "worse") else "dim")
        table.add_row(Text(one.name), *values, bounds, p_text(one.adjusted), said)
    console.print(table)


def _print_rankings(comparison: Comparison, console: Console) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    for name, places in comparison.standings.items():
        meaning = meaning_of(comparison.benchmark.card, name)
        better = "higher is better" if meaning.higher_is_better else "lower is better"
        console.print()
        console.print(Text(f"{meaning.title} ({better})", style="bold"))
        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        for column, side in (("rank", "right"), ("model", "left"), (name, "right"), ("tied sets", "left")):
            table.add_column(column, justify="right" if side == "right" else "left")
        decimals = decimals_for([place.score for place in places])
        for place in places:
            score = Text(numeral(place.score, decimals), style="bold")
            table.add_row(str(place.rank), Text(place.model), score, " ".join(place.sets))
        console.print(table)


def _print_slices(comparison: Comparison, console: Console) -> None:
    from rich.text import Text

    winners = slice_winners(comparison)
    lines = _counts(comparison, [winner for winner in winners if winner.slice])
    if not lines:
        return
    console.print()
    console.print(Text("Who wins where", style="bold"))
    for line in lines:
        console.print(Text(line))
    changes = changes_of_winner(winners, headline_names(comparison.benchmark.card))
    for line in change_sentences(comparison, changes[:MOST_CHANGES]):
        console.print(Text(line, style="yellow"))
    if len(changes) > MOST_CHANGES:
        console.print(Text(f"{len(changes) - MOST_CHANGES} more changes are in the page.", style="dim"))
    if not changes:
        console.print(Text("In no slice does another model clearly win.", style="dim"))


def _counts(comparison: Comparison, winners: Sequence[SliceWinner]) -> list[str]:
    """One line for each score and kind of slice."""
    lines = []
    for name, kind in dict.fromkeys((winner.name, winner.kind) for winner in winners):
        rows = [winner for winner in winners if (winner.name, winner.kind) == (name, kind)]
        if len(rows) < 2:
            continue
        alone = {model: count for model, count in wins(rows, comparison.models).items() if count}
        each = ", ".join(f"{model} wins {count}" for model, count in alone.items()) or "no clear winner in any"
        lines.append(f"  {name} by {' and '.join(kind)}, {counted(len(rows), 'slice')}: {each}")
    return lines


def _print_scores(comparison: Comparison, console: Console) -> None:
    """Scores beside each other, where nothing can be tested."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    whole = {model: [score for score in scores if not score.slice] for model, scores in comparison.scores.items()}
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("score")
    for model in comparison.models:
        table.add_column(Text(model), justify="right")
    for name in dict.fromkeys(score.name for scores in whole.values() for score in scores):
        found = {
            model: next((one.value for one in scores if one.name == name), None) for model, scores in whole.items()
        }
        decimals = decimals_for(list(found.values()))
        table.add_row(name, *(numeral(found[model], decimals) for model in comparison.models))
    console.print(table)
