"""A leaderboard as plain values, for `--json`."""

from __future__ import annotations

import math
from typing import Any

from hardlook.leaderboards.board import Board
from hardlook.leaderboards.gather import Omitted
from hardlook.leaderboards.standing import Row, Standing

SCHEMA = "hardlook.leaderboard/1"


def board_document(board: Board) -> dict[str, Any]:
    """The first run, and every standing with all its rows, best first."""
    return {
        "benchmark": board.card.name,
        "version": board.card.version,
        "runs": len(board.entrants),
        "first_run": board.first.run.folder,
        "standings": [_standing(standing) for standing in (*board.standings, *board.slices)],
    }


def omitted_document(one: Omitted) -> dict[str, str]:
    """A run that is in no leaderboard."""
    return {"folder": one.folder, "benchmark": one.benchmark, "why": one.why, "remedy": one.remedy}


def _standing(standing: Standing) -> dict[str, Any]:
    return {
        "score": standing.meaning.name,
        "higher_is_better": standing.meaning.higher_is_better if standing.meaning.directed else None,
        "slice": dict(standing.place),
        "rows": [_row(row) for row in standing.rows],
    }


def _row(row: Row) -> dict[str, Any]:
    return {
        "rank": row.rank,
        "kind": row.kind,
        "method": row.method,
        "value": _number(row.value),
        "low": _number(row.low),
        "high": _number(row.high),
        "n": row.n,
        "reading": row.reading,
        "comparable": row.note,
        "source": row.source,
        "folder": row.folder,
        "date": row.date,
    }


def _number(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else value
