"""A leaderboard in a terminal: the top rows by each headline score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hardlook.report.formatting import format_interval, format_number, format_slice
from hardlook.report.leaderboard.board import Leaderboard, Row, ScoreRanking
from hardlook.report.leaderboard.report import choose_value_decimals
from hardlook.report.leaderboard.runs import SkippedRun

if TYPE_CHECKING:
    from rich.table import Table

MOST, UNRANKED = 10, 3


def print_leaderboards(boards: Sequence[Leaderboard], left_out: Sequence[SkippedRun]) -> None:
    """Print the best rows by every headline score, then the skipped runs."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    for board in boards:
        count = len(board.entries)
        console.print(Text(f"{board.card.title}, {count} run{'' if count == 1 else 's'}", style="bold"))
        datasets = [entry.where for entry in board.entries]
        others = [ranking for ranking in board.slices if ranking.where in datasets]
        for ranking in (*board.rankings, *others):
            console.print(_make_table(ranking))
        published = [row for ranking in board.rankings for row in ranking.of("published")]
        if published and all(row.rank is None for row in published) and (why := "; ".join(published[0].flags)):
            console.print(Text(f"published results have no rank ({why})", style="dim"))
        ranked_elsewhere = {row.folder for ranking in others for row in ranking.rows if row.rank is not None}
        without = [entry for entry in board.entries if entry.flags and entry.run.folder not in ranked_elsewhere]
        for entry in without[:MOST]:
            console.print(Text(f"no rank: {entry.method} ({'; '.join(entry.flags)})", style="dim"))
        if len(without) > MOST:
            console.print(Text(f"and {len(without) - MOST} more runs without a rank", style="dim"))
    for one in left_out[:MOST]:
        console.print(Text(f"left out: {one.folder}: {one.describe()}", style="yellow"))
    if len(left_out) > MOST:
        console.print(Text(f"and {len(left_out) - MOST} more", style="yellow"))


def choose_top_rows(ranking: ScoreRanking) -> list[Row]:
    """The best ranked rows, then a few published ones without a rank, then other runs where there is room."""
    if not ranking.meaning.ranked:
        return list(ranking.rows[:MOST])
    ranked = [row for row in ranking.rows if row.rank is not None]
    published = [row for row in ranking.of("published") if row.rank is None]
    others = [row for row in ranking.of("run") if row.rank is None]
    return [*ranked[:MOST], *published[:UNRANKED], *others[: max(0, MOST - len(ranked))]]


def _make_table(ranking: ScoreRanking) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    decimals = choose_value_decimals([row.value for row in ranking.rows])
    title = ranking.meaning.title + (f" ({format_slice(ranking.where)})" if ranking.where else "")
    better = ranking.meaning.direction or "neither higher nor lower is better"
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title=Text(f"{title}, {better}"), title_justify="left")
    table.add_column("", justify="right")
    table.add_column("method", overflow="fold")
    for column in ("value", "interval", "n"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("from", overflow="fold", max_width=40)
    for row in choose_top_rows(ranking):
        bounds = format_interval(row.low, row.high, decimals)
        count = "" if row.n is None else format_number(row.n, 0)
        where = row.folder or f"published, {row.source}"
        rank = "" if row.rank is None else str(row.rank)
        table.add_row(rank, Text(ranking.label(row)), format_number(row.value, decimals), bounds, count, Text(where))
    return table
