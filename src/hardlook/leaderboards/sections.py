"""The page of a leaderboard: an overview, a chart and a table for each headline score, slices, and what was printed."""

from __future__ import annotations

from hardlook.contract.sections import Dot, DotChart, Section, Table
from hardlook.leaderboards.board import Board
from hardlook.leaderboards.cells import COLUMNS, MOST_ROWS, Cell, cells_of, cut, decimals_of
from hardlook.leaderboards.overview import overview_section
from hardlook.leaderboards.printed_sections import printed_section
from hardlook.leaderboards.standing import Standing, slice_text

MOST_DOTS = 30


def board_sections(board: Board) -> list[Section]:
    """All sections, those without content left out."""
    found = [
        overview_section(board),
        *(_standing(standing) for standing in board.standings),
        _slices(board),
        _left_out(board),
        printed_section(board.card),
    ]
    return [section for section in found if section is not None]


def leader_words(standing: Standing) -> str:
    """Who is first, in a sentence."""
    best = [row for row in standing.rows if row.rank == 1]
    if not best:
        return "No row can be ranked."
    count = sum(row.rank is not None for row in standing.rows)
    names = " and ".join(row.method + (" (published)" if row.kind == "published" else "") for row in best)
    decimals = decimals_of([row.value for row in standing.rows])
    return f"First of {count} ranked: {names} with {best[0].value:.{decimals}f}."


def _standing(standing: Standing) -> Section:
    meaning = standing.meaning
    better = "Higher is better." if meaning.higher_is_better else "Lower is better."
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
        "Best first. A row without a rank cannot be compared with the first run, or only on a condition."
        + cut(len(standing.rows)),
        COLUMNS,
        tuple(cells_of(row) for row in standing.rows[:MOST_ROWS]),
        decimals=decimals_of([row.value for row in standing.rows]),
    )
    place = f" These are scores of {slice_text(standing.place)}." if standing.place else ""
    return Section(meaning.title, leader_words(standing) + place, (chart, table))


def _slices(board: Board) -> Section | None:
    rows: list[tuple[Cell, ...]] = [
        (standing.meaning.title, slice_text(standing.place), *cells_of(row))
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
    rows = tuple((one.folder, one.benchmark or "unknown", one.why) for one in board.left_out)
    table = Table("Runs without a place", "They are in no table above.", ("folder", "benchmark", "why"), rows)
    return Section("What was left out", f"Run folders that could not be used: {len(rows)}.", (table,))
