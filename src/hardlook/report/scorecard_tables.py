"""The tables that every run has: headline scores, all scores, what was left out, which readings ran."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from hardlook.contract.scorecard import Score, Scorecard
from hardlook.contract.sections import Table
from hardlook.report.cards import score_decimals

Cell = str | float | int | None


def headline_scores(scorecard: Scorecard, chosen: Collection[str] = ()) -> list[Score]:
    """The scores over all units, of these names only where some are given."""
    return [score for score in scorecard.headline if not chosen or score.name in chosen]


def scores_table(scorecard: Scorecard, chosen: Collection[str] = (), titles: Mapping[str, str] | None = None) -> Table:
    """The headline scores with their intervals.

    >>> scores_table(Scorecard("toss", "1", "planted", (Score("miou", 0.5, 10),))).rows
    [('miou', 0.5, None, None, 10)]
    """
    scores = headline_scores(scorecard, chosen)
    named = titles or {}
    rows = [(named.get(score.name) or score.name, *_numbers(score), score.n) for score in scores]
    columns = ("score", "value", "low", "high", "n")
    return Table("Scores", _resampled(scores), columns, rows, _decimals(scores))


def all_scores_table(scorecard: Scorecard) -> Table:
    """Every score and slice, with reading and comparability where any score has them."""
    rows: list[tuple[Cell, ...]] = []
    for score in scorecard.scores:
        sliced = ", ".join(f"{key}: {value}" for key, value in score.slice.items()) or "all units"
        rows.append((score.name, sliced, *_numbers(score), score.n, score.reading, score.comparable))
    columns = ("score", "slice", "value", "low", "high", "n", "reading", "comparable")
    kept = [index for index in range(len(columns)) if index < 3 or any(row[index] not in (None, "") for row in rows)]
    return Table(
        "All scores and slices",
        _resampled(list(scorecard.scores)),
        [columns[index] for index in kept],
        [[row[index] for index in kept] for row in rows],
        _decimals(list(scorecard.scores)),
    )


def said_once(
    columns: Sequence[str], rows: Sequence[Sequence[Cell]], names: Collection[str]
) -> tuple[str, list[str], list[list[Cell]]]:
    """A sentence for those of these columns that say the same in every row, and the table without them.

    >>> said_once(("score", "comparable"), [("miou", "not comparable"), ("iou", "not comparable")], ("comparable",))
    ('All of these: not comparable.', ['score'], [['miou'], ['iou']])
    """
    alike = [
        index
        for index, name in enumerate(columns)
        if name in names and len(rows) > 1 and rows[0][index] and len({row[index] for row in rows}) == 1
    ]
    said = "; ".join(str(rows[0][index]).rstrip(".") for index in alike)
    kept = [index for index in range(len(columns)) if index not in alike]
    shown = [[row[index] for index in kept] for row in rows]
    return f"All of these: {said}." if said else "", [columns[index] for index in kept], shown


def left_out_table(scorecard: Scorecard) -> Table:
    """What did not enter the scores, how often and why."""
    rows = [(item.what, item.count, item.why, ", ".join(item.examples)) for item in scorecard.left_out]
    return Table("What was left out", "", ("what", "count", "why", "for example"), rows)


def readings_table(scorecard: Scorecard) -> Table:
    """Which readings ran, out of which."""
    rows = [
        (reading.name, reading.value, reading.meaning, reading.default, ", ".join(reading.choices))
        for reading in scorecard.readings
    ]
    return Table("Which readings ran", "", ("reading", "value", "meaning", "default", "choices"), rows)


def _numbers(score: Score) -> tuple[float, float | None, float | None]:
    interval = score.interval
    return float(score.value), interval.low if interval else None, interval.high if interval else None


def _decimals(scores: list[Score]) -> int:
    return max((score_decimals(score) for score in scores), default=3)


def _resampled(scores: list[Score]) -> str:
    """How the intervals were made, where all were made alike."""
    made = {
        (score.interval.level, score.interval.method, score.interval.resampled) for score in scores if score.interval
    }
    if len(made) != 1:
        return ""
    level, method, resampled = made.pop()
    return f"{level:.0%} intervals ({method}, from resampling the {resampled})."
