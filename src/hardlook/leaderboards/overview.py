"""All methods of a leaderboard in one table, with every headline score."""

from __future__ import annotations

from hardlook.contract.sections import Section, Table
from hardlook.leaderboards.board import Board
from hardlook.leaderboards.cells import MOST_ROWS, Cell, cut, decimals_of, value_of
from hardlook.leaderboards.standing import Row

_ENDS = ("folder or source", "date", "data", "readings", "comparable")


def overview_section(board: Board) -> Section:
    """Who stands where by the first score, and the values by all of them."""
    values: dict[tuple[str, str, str], dict[str, Row]] = {}
    for standing in board.standings:
        for row in standing.rows:
            values.setdefault((row.kind, row.method, row.folder or row.source), {})[standing.meaning.name] = row
    names = [standing.meaning.name for standing in board.standings]
    titles = [standing.meaning.title for standing in board.standings]
    entrants = {entrant.run.folder: entrant for entrant in board.entrants}
    rows: list[tuple[Cell, ...]] = []
    for (kind, method, where), found in values.items():
        entrant = entrants.get(where) if kind == "run" else None
        ranked = found.get(names[0])
        some = next(iter(found.values()))
        told = (some.date, entrant.data, entrant.readings) if entrant else ("", "", "")
        cells = (value_of(found.get(name)) for name in names)
        rows.append((ranked.rank if ranked else None, method, kind, *cells, where, *told, some.note))
    table = Table(
        "All methods",
        f"Ranks are those of {titles[0]}.{cut(len(rows))}" if titles else "No run has a headline score.",
        ("rank", "method", "kind", *titles, *_ENDS),
        tuple(rows[:MOST_ROWS]),
        decimals=decimals_of([row.value for standing in board.standings for row in standing.rows]),
    )
    return Section("Who stands where", _words(board), (table,))


def _words(board: Board) -> str:
    first, flagged = board.first, sum(bool(entrant.flags) for entrant in board.entrants)
    words = [
        f"Runs of {board.card.title}: {len(board.entrants)}.",
        f"The first run is `{first.run.folder}` ({first.method}): the earliest of the largest group of runs with the "
        "same units, data, settings and readings.",
    ]
    if flagged:
        words.append(f"Runs without a rank, since they differ from it: {flagged}.")
    return " ".join([*words, "Ranks are by value alone; `hardlook compare` tells which differences hold."])
