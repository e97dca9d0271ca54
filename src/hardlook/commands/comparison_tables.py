"""The tables of a comparison in a terminal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hardlook.comparison.numbers_in_words import about, p_text
from hardlook.comparison.ranked_scores import whole_scores
from hardlook.report.numerals import decimals_for, numeral, span
from hardlook.report.terminal_tables import arrow

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from hardlook.comparison import Comparison, Difference

MOST_PAIRS = 30


def pair_table(comparison: Comparison) -> Table:
    """The headline scores of two models, a row each."""
    from rich.text import Text

    table = _table(("score",), (*comparison.models, "difference", "interval", "adjusted p"))
    table.add_column(Text(f"{comparison.models[0]} is"))
    for one in comparison.headline:
        decimals = decimals_for([one.first_value, one.second_value])
        values = (numeral(number, decimals) for number in (one.first_value, one.second_value))
        table.add_row(Text(one.name), *values, *_tested(one, decimals), _verdict(one))
    return table


def ranking_table(comparison: Comparison) -> Table:
    """Models by headline scores, best by the first score first; behind each value the letters of its tied sets."""
    from rich.text import Text

    meanings = {score.name: score for score in comparison.benchmark.card.scores}
    whole = whole_scores(comparison)
    names = list(dict.fromkeys(one.name for one in comparison.headline))
    places = {name: {place.model: place for place in comparison.standings.get(name, ())} for name in names}
    table = _table(("model",), tuple(f"{name}{arrow(name, meanings)}" for name in names))
    # Models without a place, whose score is undefined, come last.
    models = dict.fromkeys([*next((places[name] for name in names if places[name]), {}), *comparison.models])
    decimals = {name: decimals_for([found[name].value for found in whole.values() if name in found]) for name in names}
    width = {name: max((len(place.sets) for place in places[name].values()), default=0) for name in names}
    for model in models:
        cells = []
        for name in names:
            score, place = whole[model].get(name), places[name].get(model)
            letters = "".join(place.sets) if place else ""
            value = numeral(score.value if score else None, decimals[name])
            cells.append(Text(f"{value} {letters:<{width[name]}}", style="bold" if place and place.rank == 1 else ""))
        table.add_row(Text(model), *cells)
    return table


def several_table(comparison: Comparison, width: int) -> tuple[Table, int]:
    """Every pair by every headline score, a row each, and how many rows were left out.

    Where all of it does not fit into `width`, intervals are left to the page.
    """
    from rich.text import Text

    names = list(dict.fromkeys(one.name for one in comparison.headline))
    shown = sorted(comparison.headline, key=lambda one: names.index(one.name))[:MOST_PAIRS]
    heads = ("score", "model", "against", "difference", "interval", "adj. p", "verdict")
    rows = []
    for one in shown:
        tested = _tested(one, decimals_for([one.first_value, one.second_value]))
        rows.append((one.name, one.first, one.second, *tested, _verdict(one)))
    widths = [max(len(str(cell)) for cell in column) for column in zip(heads, *rows, strict=True)]
    kept = [place for place, head in enumerate(heads) if head != "interval" or sum(widths) + 2 * len(heads) <= width]
    table = _table(tuple(heads[place] for place in kept if place < 3), tuple(heads[place] for place in kept[3:-1]))
    table.add_column("verdict", overflow="fold")
    before = ""
    for row in rows:
        first = "" if row[0] == before else row[0]
        cells = [Text(first), *(Text(cell) for cell in row[1:-1]), row[-1]]
        table.add_row(*(cells[place] for place in kept))
        before = row[0]
    return table, len(comparison.headline) - len(shown)


def score_table(comparison: Comparison) -> Table:
    """Scores beside each other, where nothing can be tested."""
    whole = whole_scores(comparison)
    table = _table(("score",), comparison.models)
    for name in dict.fromkeys(name for found in whole.values() for name in found):
        values = [whole[model][name].value if name in whole[model] else None for model in comparison.models]
        decimals = decimals_for(values)
        table.add_row(name, *(numeral(value, decimals) for value in values))
    return table


def _tested(one: Difference, decimals: int) -> tuple[str, str, str]:
    bounds = span(one.interval.low, one.interval.high, decimals) if one.interval else ""
    return numeral(one.value, decimals), bounds, p_text(one.adjusted)


def _verdict(one: Difference) -> Text:
    """The verdict; where nothing can be told also what it would take."""
    from rich.text import Text

    words: str = one.verdict
    if one.verdict == "cannot tell" and math.isfinite(one.units_needed) and one.units_needed > one.clusters:
        words += f", needs {about(one.units_needed)}"
    return Text(words, style="bold" if one.told else "dim")


def _table(left: tuple[str, ...], right: tuple[str, ...]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for column in left:
        table.add_column(Text(column), overflow="fold")
    for column in right:
        table.add_column(Text(column), justify="right", no_wrap=True)
    return table
