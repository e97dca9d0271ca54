"""Leaderboards as data: JSON values for `--json`, and one table of all scores for `leaderboard.parquet`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hardlook.report.formatting import format_slice
from hardlook.report.json_values import to_json_value
from hardlook.report.leaderboard.board import Leaderboard, Row
from hardlook.report.score_display import get_bounds

if TYPE_CHECKING:
    import polars as pl

SCHEMA = "hardlook.leaderboard/1"
NUMBERS, ORIGIN = ("value", "low", "high", "n"), ("reading", "comparable", "source", "folder", "date")
COLUMNS = ("benchmark", "method", "kind", "score", "slice", *NUMBERS, *ORIGIN)


def build_document(board: Leaderboard) -> dict[str, Any]:
    """A leaderboard as JSON: its benchmark, the first run, and every ranking with all its rows, best first."""
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
    fields: dict[str, Any] = {name: getattr(row, name) for name in ("rank", "kind", "method", *NUMBERS, *ORIGIN)}
    return {name: to_json_value(value) for name, value in {**fields, "comparable": row.note}.items()}


def build_frame(boards: list[Leaderboard]) -> pl.DataFrame:
    """The rows of `leaderboard.parquet`: all scores of all runs in all slices, then all published ones.

    `kind` is `run` or `published`; `comparable` says why a row can or cannot be compared; `value` is null where a
    score is undefined, `low` and `high` where there is no interval, `n` where the publication does not give it. Missing
    texts are empty, not null.
    """
    import polars as pl

    rows: list[tuple[Any, ...]] = []
    for board in boards:
        for entry in board.entries:
            run, flags = entry.run, "; ".join(entry.flags)
            for score in run.scorecard.scores:
                comparable = "; ".join(filter(None, (flags, score.comparable)))
                names = (board.card.name, entry.method, "run", score.name, format_slice(score.slice))
                numbers = (score.value, *get_bounds(score), score.n)
                rows.append((*names, *numbers, score.reading, comparable, "", run.folder, run.date))
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
