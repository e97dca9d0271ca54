"""Leaderboards as data: JSON values for `--json`, and one table of all scores for `leaderboard.parquet`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hardlook.report.formatting import format_slice
from hardlook.report.json_values import to_json_value
from hardlook.report.leaderboard.board import Leaderboard, Row

if TYPE_CHECKING:
    import polars as pl


SCHEMA = "hardlook.leaderboard/1"

COLUMNS = (
    "benchmark",
    "method",
    "kind",
    "score",
    "slice",
    "value",
    "low",
    "high",
    "n",
    "reading",
    "comparable",
    "source",
    "folder",
    "date",
)


def build_document(board: Leaderboard) -> dict[str, Any]:
    """The first run, and every ranking with all its rows, best first."""
    return {
        "benchmark": board.card.name,
        "version": board.card.version,
        "runs": len(board.entries),
        "first_run": board.first.run.folder,
        "standings": [
            {
                "score": ranking.meaning.name,
                "higher_is_better": ranking.meaning.higher_is_better if ranking.meaning.ranked else None,
                "slice": dict(ranking.where),
                "rows": [_build_row(row) for row in ranking.rows],
            }
            for ranking in (*board.rankings, *board.slices)
        ],
    }


def _build_row(row: Row) -> dict[str, Any]:
    fields: dict[str, Any] = to_json_value(
        {
            "rank": row.rank,
            "kind": row.kind,
            "method": row.method,
            "value": row.value,
            "low": row.low,
            "high": row.high,
            "n": row.n,
            "reading": row.reading,
            "comparable": row.note,
            "source": row.source,
            "folder": row.folder,
            "date": row.date,
        }
    )
    return fields


def build_frame(boards: list[Leaderboard]) -> pl.DataFrame:
    """All scores of all runs in all their slices, then everything that is published; texts are empty, not null.

    `kind` is `run` or `published`; `comparable` says why a row can or cannot be compared; `value` is null where a
    score is undefined, `low` and `high` where there is no interval, `n` where the publication does not give it.
    """
    import polars as pl

    rows: list[tuple[Any, ...]] = []
    for board in boards:
        rows += _list_run_rows(board)
        rows += [
            (board.card.name, row.method, "published", name, format_slice(row.where), value, None, None, None, "",
             row.comparable, row.source, "", "")
            for row in board.card.published()
            for name, value in row.values.items()
        ]  # fmt: skip
    types = {"value": pl.Float64, "low": pl.Float64, "high": pl.Float64, "n": pl.Int64}
    schema = {name: types.get(name, pl.String) for name in COLUMNS}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    return frame.with_columns(pl.col("value", "low", "high").fill_nan(None))


def _list_run_rows(board: Leaderboard) -> list[tuple[Any, ...]]:
    rows = []
    for entry in board.entries:
        run, flags = entry.run, "; ".join(entry.flags)
        for score in run.scorecard.scores:
            low, high = (score.interval.low, score.interval.high) if score.interval else (None, None)
            comparable = "; ".join(filter(None, (flags, score.comparable)))
            names = (board.card.name, entry.method, "run", score.name, format_slice(score.slice))
            rows.append((*names, score.value, low, high, score.n, score.reading, comparable, "", run.folder, run.date))
    return rows
