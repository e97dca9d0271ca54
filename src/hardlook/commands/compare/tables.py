"""The tables of a comparison in a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hardlook.comparison.numbers_in_words import about, p_text
from hardlook.comparison.ranked_scores import whole_scores
from hardlook.report.numerals import decimals_for, numeral, span
from hardlook.report.terminal_tables import arrow

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from hardlook.comparison import Comparison, Difference

MOST_PAIRS = 30
GAP = 2


def pair_table(comparison: Comparison, width: int) -> Table:
    """The headline scores of two models, a row each; what does not fit into `width` is left to the page."""
    heads = ("score", *comparison.models, "difference", "interval", "adjusted p", f"{comparison.models[0]} is")
    rows = []
    for one in comparison.headline:
        decimals = decimals_for([one.first_value, one.second_value])
        values = (numeral(number, decimals) for number in (one.first_value, one.second_value))
        rows.append((one.name, *values, *_tested(one, decimals), _verdict(one)))
    return _fitting(heads, rows, width, named=1, spared=(4, 5, 2, 1))


def ranking_tables(comparison: Comparison, width: int) -> list[Table]:
    """Models by headline scores, best by the first score first; behind each value the letters of its tied sets.

    One table where all scores fit into `width`, else several.
    """
    from rich.text import Text

    meanings = {score.name: score for score in comparison.benchmark.card.scores}
    whole = whole_scores(comparison)
    names = list(dict.fromkeys(one.name for one in comparison.headline))
    places = {name: {place.model: place for place in comparison.standings.get(name, ())} for name in names}
    # Models without a place, whose score is undefined, come last.
    models = list(dict.fromkeys([*next((places[name] for name in names if places[name]), {}), *comparison.models]))
    columns: list[tuple[str, list[Text]]] = []
    for name in names:
        decimals = decimals_for([found[name].value for found in whole.values() if name in found])
        letters = {model: "".join(place.sets) for model, place in places[name].items()}
        room = max(map(len, letters.values()), default=0)
        cells = []
        for model in models:
            score, place = whole[model].get(name), places[name].get(model)
            value = numeral(score.value if score else None, decimals)
            best = place is not None and place.rank == 1
            cells.append(Text(f"{value} {letters.get(model, ''):<{room}}", style="bold" if best else ""))
        columns.append((f"{name}{arrow(name, meanings)}", cells))
    free = width - max(map(len, models), default=0) - GAP
    return [_ranking(models, group) for group in _groups(columns, free)]


def _ranking(models: Sequence[str], columns: Sequence[tuple[str, Sequence[Text]]]) -> Table:
    from rich.text import Text

    table = _table(("model",), tuple(head for head, _ in columns))
    for place, model in enumerate(models):
        table.add_row(Text(model), *(cells[place] for _, cells in columns))
    return table


def _groups(columns: Sequence[tuple[str, list[Text]]], free: int) -> list[list[tuple[str, list[Text]]]]:
    """The columns in order, as many together as fit into `free` letters, and at least one."""
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


def several_table(comparison: Comparison, width: int) -> tuple[Table, int]:
    """Every pair by every headline score, a row each, and how many rows were left out.

    What does not fit into `width` is left to the page: first the intervals, then the p-values.
    """
    names = list(dict.fromkeys(one.name for one in comparison.headline))
    shown = sorted(comparison.headline, key=lambda one: names.index(one.name))[:MOST_PAIRS]
    heads = ("score", "model", "against", "difference", "interval", "adj. p", "verdict")
    rows: list[tuple[Any, ...]] = []
    for one in shown:
        tested = _tested(one, decimals_for([one.first_value, one.second_value]))
        rows.append((one.name, one.first, one.second, *tested, _verdict(one)))
    before = ""
    for place, row in enumerate(rows):
        rows[place], before = ("" if row[0] == before else row[0], *row[1:]), row[0]
    return _fitting(heads, rows, width, named=3, spared=(4, 5)), len(comparison.headline) - len(shown)


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


def _fitting(
    heads: Sequence[str], rows: Sequence[Sequence[Any]], width: int, *, named: int, spared: Sequence[int]
) -> Table:
    """The table without as many of the `spared` columns, in their order, as it takes to fit; the last column folds."""
    from rich.text import Text

    widths = [max(len(str(cell)) for cell in column) for column in zip(heads, *rows, strict=True)]
    kept = list(range(len(heads)))
    for place in spared:
        if sum(widths[column] + GAP for column in kept) - GAP > width:
            kept.remove(place)
    table = _table(
        tuple(heads[place] for place in kept if place < named),
        tuple(heads[place] for place in kept[:-1] if place >= named),
    )
    table.add_column(Text(heads[-1]), overflow="fold")
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(str(cell)) for cell in (row[place] for place in kept)))
    return table


def _table(left: tuple[str, ...], right: tuple[str, ...]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="dim")
    for column in left:
        table.add_column(Text(column), overflow="fold")
    for column in right:
        table.add_column(Text(column), justify="right", no_wrap=True)
    return table
