"""A leaderboard as one table: a row for each run or published row, score and slice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hardlook.leaderboards.board import Board
from hardlook.leaderboards.standing import slice_text

if TYPE_CHECKING:
    import polars as pl

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


def leaderboard_frame(boards: list[Board]) -> pl.DataFrame:
    """All scores of all runs in all their slices, then everything that is published; texts are empty, not null.

    `kind` is `run` or `published`; `comparable` says why a row can or cannot be compared; `value` is null where a
    score is undefined, `low` and `high` where there is no interval, `n` where the publication does not tell.
    """
    import polars as pl

    rows: list[tuple[Any, ...]] = []
    for board in boards:
        rows += _runs(board)
        rows += _published(board)
    types = {"value": pl.Float64, "low": pl.Float64, "high": pl.Float64, "n": pl.Int64}
    schema = {name: types.get(name, pl.String) for name in COLUMNS}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    return frame.with_columns(pl.col("value", "low", "high").fill_nan(None))


def _runs(board: Board) -> list[tuple[Any, ...]]:
    rows = []
    texts: dict[tuple[tuple[str, str], ...], str] = {}
    for entrant in board.entrants:
        run, flags = entrant.run, "; ".join(entrant.flags)
        for score in run.scorecard.scores:
            key = tuple(score.slice.items())
            if key not in texts:
                texts[key] = slice_text(score.slice)
            low, high = (score.interval.low, score.interval.high) if score.interval else (None, None)
            words = f"{flags}; {score.comparable}" if flags and score.comparable else flags or score.comparable
            what = (board.card.name, entrant.method, "run", score.name, texts[key])
            rows.append((*what, score.value, low, high, score.n, score.reading, words, "", run.folder, run.date))
    return rows


def _published(board: Board) -> list[tuple[Any, ...]]:
    return [
        (board.card.name, row.method, "published", name, slice_text(row.where), value, None, None, None, "",
         row.comparable, row.source, "", "")
        for row in board.card.published
        for name, value in row.values.items()
    ]  # fmt: skip
