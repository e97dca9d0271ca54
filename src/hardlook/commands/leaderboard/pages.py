"""The files of a leaderboard: a page for each benchmark, a landing page where there are several, and the table."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

from hardlook.leaderboards.board import Board


def write_pages(boards: Sequence[Board], out: Path) -> tuple[list[Path], Path]:
    """Write them into a folder; the paths of the pages, the one to open first, and of the table."""
    from hardlook.leaderboards.sections import leader_words
    from hardlook.leaderboards.table import leaderboard_frame
    from hardlook.report.index import IndexEntry, render_index
    from hardlook.runs.folder import write_whole

    if len(boards) == 1:
        pages = [out / "leaderboard.html"]
        write_whole(pages[0], page_of(boards[0]))
    else:
        pages, entries = [out / "leaderboard.html"], []
        for board in boards:
            page = out / f"leaderboard-{file_name(board.card.name)}.html"
            write_whole(page, page_of(board))
            pages.append(page)
            words = leader_words(board.standings[0]) if board.standings else "No run has a headline score."
            entries.append(IndexEntry(board.card.title, f"Runs: {len(board.entrants)}. {words}", page.name))
        write_whole(pages[0], render_index(entries, title="Leaderboards"))
    table, content = out / "leaderboard.parquet", io.BytesIO()
    leaderboard_frame(list(boards)).write_parquet(content)
    write_whole(table, content.getvalue())
    return pages, table


def page_of(board: Board) -> str:
    """The page of one leaderboard."""
    from hardlook.leaderboards.sections import board_sections
    from hardlook.report.page import render_study

    card = board.card
    return render_study(
        board_sections(board),
        kind="Leaderboard",
        title=f"Leaderboard of {card.title}",
        summary=f"{card.summary}" + (f" Source: {card.citation}" if card.citation else ""),
        provenance={
            "benchmark": {"name": card.name, "version": card.version},
            "first run": board.first.run.folder,
            "runs": len(board.entrants),
        },
    )


def file_name(benchmark: str) -> str:
    """A benchmark's name as part of a file's.

    >>> file_name("closed-miou"), file_name("my/../own")
    ('closed-miou', 'my-..-own')
    """
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in benchmark)
