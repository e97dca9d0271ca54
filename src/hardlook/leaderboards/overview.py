"""All methods of a leaderboard in one table with every headline score, and what each run was."""

from __future__ import annotations

from collections.abc import Mapping

from hardlook.contract.sections import Section, Table
from hardlook.leaderboards.board import Board
from hardlook.leaderboards.cells import MOST_ROWS, Cell, cut, decimals_of, value_of
from hardlook.leaderboards.notes import Numbers, marks
from hardlook.leaderboards.standing import Row


def overview_section(board: Board, numbers: Numbers, leader: str = "") -> Section:
    """Who stands where by the first score, and the values by all of them; `leader` says who is first."""
    shown = in_groups(board)
    values = _values(board)
    names = [standing.meaning.name for standing in board.standings]
    titles = [standing.meaning.title for standing in board.standings]
    rows: list[tuple[Cell, ...]] = []
    for row in shown[:MOST_ROWS]:
        found = values[_identity(row)]
        rank = found[names[0]].rank if names[0] in found else None
        cells = (value_of(found.get(name)) for name in names)
        rows.append((rank, row.method, row.kind, marks(row, numbers), *cells, row.folder or row.source))
    table = Table(
        "All methods",
        f"Ranks and notes are those of {titles[0]}; rows without a rank stand below.{cut(len(shown))}"
        if titles
        else "No run has a headline score.",
        ("rank", "method", "kind", "note", *titles, "folder or source"),
        tuple(rows),
        decimals=decimals_of([row.value for standing in board.standings for row in standing.rows]),
    )
    return Section("Who stands where", " ".join(filter(None, [leader, _words(board)])), (table,))


def in_groups(board: Board) -> list[Row]:
    """A row of each method: ranked ones by the first score, then other runs, then what is published of other units."""
    groups: dict[str, list[Row]] = {"ranked": [], "run": [], "published": []}
    for found in _values(board).values():
        row = next(iter(found.values()))
        by_first = found.get(board.standings[0].meaning.name)
        groups["ranked" if by_first and by_first.rank is not None else row.kind].append(row)
    return [row for group in groups.values() for row in group]


def runs_section(board: Board) -> Section:
    """What each run was: where it lies, when, on which data, by which readings."""
    rows = [
        (one.method, one.run.folder, one.run.date, one.run.scorecard.units.scored, one.data, one.readings)
        for one in board.entrants
    ]
    caption = f"Earliest first. `{board.first.run.folder}` is the run that the others are held against.{cut(len(rows))}"
    columns = ("method", "folder", "date", "units", "data", "readings")
    return Section("The runs", "", (Table("Every run", caption, columns, tuple(rows[:MOST_ROWS])),))


def _values(board: Board) -> Mapping[tuple[str, str, str], Mapping[str, Row]]:
    """The rows of a method by the names of scores, methods in the order of the first standing that has them."""
    values: dict[tuple[str, str, str], dict[str, Row]] = {}
    for standing in board.standings:
        for row in standing.rows:
            values.setdefault(_identity(row), {})[standing.meaning.name] = row
    return values


def _identity(row: Row) -> tuple[str, str, str]:
    return row.kind, row.method, row.folder or row.source


def _words(board: Board) -> str:
    first, flagged = board.first, sum(bool(entrant.flags) for entrant in board.entrants)
    words = [
        f"Runs: {len(board.entrants)}. The others are held against `{first.run.folder}` ({first.method}), the earliest "
        "of the largest group of runs with the same units, data, settings and readings."
        if len(board.entrants) > 1
        else f"One run: `{first.run.folder}` ({first.method})."
    ]
    if flagged:
        words.append(f"Runs without a rank, since they differ from it: {flagged}.")
    return " ".join([*words, "Ranks are by value alone; `hardlook compare` tells which differences hold."])
