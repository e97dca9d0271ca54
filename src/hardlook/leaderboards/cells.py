"""Rows of a standing as cells of a table."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hardlook.leaderboards.standing import Row

MOST_ROWS = 500
Cell = str | float | int | None
COLUMNS = ("rank", "method", "kind", "note", "value", "low", "high", "n", "reading", "folder or source")


def cells_of(row: Row, marks: str) -> tuple[Cell, ...]:
    """The cells of `COLUMNS`; `marks` are the numbers of its notes.

    >>> cells_of(Row("run", "net", 0.5, n=9, folder="runs/a", rank=1), "2")
    (1, 'net', 'run', '2', 0.5, None, None, 9, '', 'runs/a')
    """
    where = row.folder or row.source
    return (row.rank, row.method, row.kind, marks, value_of(row), row.low, row.high, row.n, row.reading, where)


def value_of(row: Row | None) -> float | None:
    """The value where there is one."""
    return None if row is None or math.isnan(row.value) else row.value


def decimals_of(values: Sequence[float]) -> int:
    """Three for scores below 10, two for percent and clicks.

    >>> decimals_of([0.5, 0.25]), decimals_of([95.2, math.nan])
    (3, 2)
    """
    return 3 if max((abs(value) for value in values if not math.isnan(value)), default=0.0) < 10 else 2


def cut(count: int, most: int = MOST_ROWS) -> str:
    """What is said below a table that would be too long.

    >>> cut(3), cut(900)
    ('', ' The first 500 of 900 rows; leaderboard.parquet has all.')
    """
    return f" The first {most} of {count} rows; leaderboard.parquet has all." if count > most else ""
