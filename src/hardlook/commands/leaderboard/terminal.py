"""A leaderboard in a terminal: the top rows by each headline score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hardlook.leaderboards.board import Board
from hardlook.leaderboards.gather import Omitted
from hardlook.leaderboards.standing import Row, Standing, slice_text

if TYPE_CHECKING:
    from rich.table import Table

MOST, UNRANKED = 10, 3


def print_boards(boards: Sequence[Board], left_out: Sequence[Omitted]) -> None:
    """Every headline score's best rows, then what was left out."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    for board in boards:
        count = len(board.entrants)
        console.print(Text(f"{board.card.title}, {count} run{'' if count == 1 else 's'}", style="bold"))
        for standing in board.standings:
            console.print(_table(standing))
        if why := _unranked_words(board):
            console.print(Text(f"published results have no rank ({why})", style="dim"))
        without = [entrant for entrant in board.entrants if entrant.flags]
        for entrant in without[:MOST]:
            console.print(Text(f"no rank: {entrant.method} ({'; '.join(entrant.flags)})", style="dim"))
        if len(without) > MOST:
            console.print(Text(f"and {len(without) - MOST} more runs without a rank", style="dim"))
    for one in left_out[:MOST]:
        console.print(Text(f"left out: {one.folder}: {one.words}", style="yellow"))
    if len(left_out) > MOST:
        console.print(Text(f"and {len(left_out) - MOST} more", style="yellow"))


def top_rows(standing: Standing, most: int = MOST) -> list[Row]:
    """The best ranked rows, then a few published ones without a rank, then other runs where there is room."""
    if not standing.meaning.directed:
        return list(standing.rows[:most])
    ranked = [row for row in standing.rows if row.rank is not None]
    published = [row for row in standing.of("published") if row.rank is None]
    others = [row for row in standing.of("run") if row.rank is None]
    return [*ranked[:most], *published[:UNRANKED], *others[: max(0, most - len(ranked))]]


def _unranked_words(board: Board) -> str:
    """Why published rows have no rank, as the first of them says it."""
    rows = [row for standing in board.standings for row in standing.of("published")]
    return "; ".join(rows[0].flags) if rows and all(row.rank is None for row in rows) else ""


def _table(standing: Standing) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from hardlook.leaderboards.cells import decimals_of
    from hardlook.report.numerals import numeral, span

    decimals = decimals_of([row.value for row in standing.rows])
    title = standing.meaning.title + (f" ({slice_text(standing.place)})" if standing.place else "")
    better = standing.meaning.direction or "neither higher nor lower is better"
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title=Text(f"{title}, {better}"), title_justify="left")
    table.add_column("", justify="right")
    table.add_column("method", overflow="fold")
    for column in ("value", "interval", "n"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("from", overflow="fold", max_width=40)
    for row in top_rows(standing):
        bounds = span(row.low, row.high, decimals)
        count = "" if row.n is None else numeral(row.n, 0)
        where = row.folder or f"published, {row.source}"
        rank = "" if row.rank is None else str(row.rank)
        table.add_row(rank, Text(standing.label(row)), numeral(row.value, decimals), bounds, count, Text(where))
    return table
