"""The page of a leaderboard: an overview, a chart and a table for each headline score, slices, and what was printed."""

from __future__ import annotations

from hardlook.contract.sections import Dot, DotChart, Section, Table
from hardlook.leaderboards.board import Board
from hardlook.leaderboards.cells import COLUMNS, MOST_ROWS, Cell, cells_of, cut, decimals_of
from hardlook.leaderboards.notes import Numbers, marks, notes_section, number_notes
from hardlook.leaderboards.overview import in_groups, overview_section, runs_section
from hardlook.leaderboards.printed_sections import printed_section
from hardlook.leaderboards.standing import Standing, slice_text

MOST_DOTS = 30
MOST_NAMED = 3


def board_sections(board: Board) -> list[Section]:
    """All sections, those without content left out."""
    shown = [*in_groups(board)[:MOST_ROWS]]
    shown += [row for standing in board.standings for row in standing.rows[:MOST_ROWS]]
    shown += [row for standing in board.slices for row in standing.rows][:MOST_ROWS]
    numbers = number_notes(shown)
    found = [
        overview_section(board, numbers, leader_words(board.standings[0]) if board.standings else ""),
        notes_section(numbers),
        *(_standing(standing, numbers) for standing in board.standings),
        _slices(board, numbers),
        runs_section(board),
        _left_out(board),
        printed_section(board.card),
    ]
    return [section for section in found if section is not None]


def leader_words(standing: Standing) -> str:
    """Who is first, in a sentence."""
    if not standing.meaning.directed:
        return "This score is neither good nor bad by itself, so nobody is ranked by it."
    best = [row for row in standing.rows if row.rank == 1]
    if not best:
        return "No row can be ranked."
    count = sum(row.rank is not None for row in standing.rows)
    names = " and ".join(row.method + (" (published)" if row.kind == "published" else "") for row in best[:MOST_NAMED])
    names += f" and {len(best) - MOST_NAMED} more" if len(best) > MOST_NAMED else ""
    decimals = decimals_of([row.value for row in standing.rows])
    return f"First of {count} ranked: {names} with {best[0].value:.{decimals}f}."


def _standing(standing: Standing, numbers: Numbers) -> Section:
    meaning = standing.meaning
    better = f"{meaning.direction.capitalize()}." if meaning.directed else "Neither higher nor lower is better."
    groups = {
        "runs": [row for row in standing.of("run") if not row.flags],
        "runs that differ from the first": [row for row in standing.of("run") if row.flags],
        "published": standing.of("published"),
    }
    dots = [
        Dot(standing.label(row), row.value, row.low, row.high, group)
        for group, rows in groups.items()
        for row in rows[:MOST_DOTS]
    ]
    long = any(len(rows) > MOST_DOTS for rows in groups.values())
    drawn = f" The best {MOST_DOTS} of each group are drawn." if long else ""
    said = meaning.meaning[:1].upper() + meaning.meaning[1:]
    chart = DotChart(meaning.title, f"{said}. {better}{drawn}", tuple(dots), axis=meaning.title)
    table = Table(
        f"{meaning.title}: every row",
        (
            "Best first. A row without a rank cannot be compared with the first run: its notes say why."
            if meaning.directed
            else "Highest first; nobody is ranked by this score."
        )
        + cut(len(standing.rows)),
        COLUMNS,
        tuple(cells_of(row, marks(row, numbers)) for row in standing.rows[:MOST_ROWS]),
        decimals=decimals_of([row.value for row in standing.rows]),
    )
    place = f" The runs are of {slice_text(standing.place)}." if standing.place else ""
    return Section(meaning.title, leader_words(standing) + place, (chart, table))


def _slices(board: Board, numbers: Numbers) -> Section | None:
    rows: list[tuple[Cell, ...]] = [
        (standing.meaning.title, slice_text(standing.place), *cells_of(row, marks(row, numbers)))
        for standing in board.slices
        for row in standing.rows
    ]
    if not rows:
        return None
    table = Table(
        "Slice by slice",
        f"Best first in each.{cut(len(rows))}",
        ("score", "slice", *COLUMNS),
        tuple(rows[:MOST_ROWS]),
        decimals_of([row.value for standing in board.slices for row in standing.rows]),
    )
    return Section("By slice", "Slices that both runs and published tables have, each ranked by itself.", (table,))


def _left_out(board: Board) -> Section | None:
    if not board.left_out:
        return None
    rows = [(one.folder, one.benchmark or "unknown", one.why, one.remedy) for one in board.left_out]
    said = "They are in no table above."
    said += f" The first {MOST_ROWS} of them; `hardlook leaderboard --json` has all." if len(rows) > MOST_ROWS else ""
    columns = ("folder", "benchmark", "why", "remedy")
    table = Table("Runs without a place", said, columns, tuple(rows[:MOST_ROWS]))
    return Section("What was left out", f"Run folders that could not be used: {len(rows)}.", (table,))
