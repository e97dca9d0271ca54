"""The tables that every run has: headline scores, all scores, what was left out, which readings ran."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from hardlook.harness.benchmark import ScoreMeaning
from hardlook.harness.scorecard import Score, Scorecard
from hardlook.harness.sections import Table
from hardlook.report.formatting import format_level, format_slice, pluralize
from hardlook.report.html_tables import Cell
from hardlook.report.score_display import choose_score_decimals, format_basis, get_bounds


def build_scores_table(
    scorecard: Scorecard, chosen: Collection[str] = (), titles: Mapping[str, str] | None = None
) -> Table:
    """The scores over all units, of the `chosen` names only where some are given, with their intervals.

    >>> build_scores_table(Scorecard("toss", "1", "planted", (Score("miou", 0.5, 10),))).rows
    [('miou', 0.5, None, None, 10)]
    """
    scores = [score for score in scorecard.headline if not chosen or score.name in chosen]
    named = titles or {}
    rows = [(named.get(score.name) or score.name, *_list_numbers(score)) for score in scores]
    columns, rows = _drop_empty(("score", *_NUMBERS), rows, range(5))
    return Table("Scores", _describe_intervals(scores), columns, rows, _choose_decimals(scores))


def build_other_scores_table(scores: Sequence[Score], meanings: Mapping[str, ScoreMeaning]) -> Table:
    """Scores over all units that have no card: all that a card says, one row each.

    >>> meanings = {"auc": ScoreMeaning("auc", "AuC", "area under the curve")}
    >>> build_other_scores_table([Score("auc", 0.5, 10)], meanings).rows
    [('AuC', 0.5, None, None, 10, 'area under the curve', 'higher is better')]
    """
    rows: list[tuple[Cell, ...]] = []
    for score in scores:
        meaning = meanings.get(score.name) or ScoreMeaning(score.name, score.name, "", ranked=False)
        words = (score.reason, meaning.meaning, meaning.direction, score.reading, score.comparable)
        rows.append((meaning.title or score.name, *_list_numbers(score), *words))
    names = ("score", *_NUMBERS, "why undefined", "meaning", "direction", "reading", "comparable")
    columns, rows = _drop_empty(names, rows, range(5))
    return Table("Other scores over all units", _describe_intervals(scores), columns, rows, _choose_decimals(scores))


_NUMBERS = ("value", "low", "high", "n", "rests on", "undefined resamples", "low, images drawn", "high, images drawn")


def _list_numbers(score: Score) -> tuple[Cell, ...]:
    """Value, bounds and n; what the score rests on, the share of undefined resamples if not 0, the wider interval."""
    wider = (score.wider.low, score.wider.high) if score.wider else (None, None)
    return (float(score.value), *get_bounds(score), score.n, format_basis(score), score.undefined or None, *wider)


def _drop_empty(
    columns: Sequence[str], rows: Sequence[tuple[Cell, ...]], always: Collection[int]
) -> tuple[list[str], list[tuple[Cell, ...]]]:
    """The table without columns that are empty in every row, those in `always` excepted."""
    kept = [
        index for index in range(len(columns)) if index in always or any(row[index] not in (None, "") for row in rows)
    ]
    return [columns[index] for index in kept], [tuple(row[index] for index in kept) for row in rows]


def build_all_scores_table(scorecard: Scorecard) -> Table:
    """Every score and slice, with reading and comparability where any score has them."""
    rows: list[tuple[Cell, ...]] = []
    for score in scorecard.scores:
        where = format_slice(score.slice) or "all units"
        rows.append((score.name, where, *_list_numbers(score), score.reason, score.reading, score.comparable))
    names = ("score", "slice", *_NUMBERS, "why undefined", "reading", "comparable")
    columns, rows = _drop_empty(names, rows, range(3))
    return Table(
        "All scores and slices",
        _describe_intervals(scorecard.scores),
        columns,
        rows,
        _choose_decimals(scorecard.scores),
    )


def factor_out_constant_columns(
    columns: Sequence[str], rows: Sequence[Sequence[Cell]], names: Collection[str]
) -> tuple[str, list[str], list[list[Cell]]]:
    """A sentence for those of the named columns that are the same in every row, and the table without them.

    >>> rows = [("miou", "not comparable"), ("iou", "not comparable")]
    >>> factor_out_constant_columns(("score", "comparable"), rows, ("comparable",))
    ('All of these: not comparable.', ['score'], [['miou'], ['iou']])
    """
    constant = [
        index
        for index, name in enumerate(columns)
        if name in names and len(rows) > 1 and rows[0][index] and len({row[index] for row in rows}) == 1
    ]
    text = "; ".join(str(rows[0][index]).rstrip(".") for index in constant)
    kept = [index for index in range(len(columns)) if index not in constant]
    shown = [[row[index] for index in kept] for row in rows]
    return f"All of these: {text}." if text else "", [columns[index] for index in kept], shown


def build_left_out_table(scorecard: Scorecard) -> Table:
    """What was left out of the scores, how often and why."""
    rows = [(item.what, item.count, item.why, ", ".join(item.examples)) for item in scorecard.left_out]
    return Table("What was left out", "", ("what", "count", "why", "for example"), rows)


def build_noted_table(scorecard: Scorecard) -> Table:
    """What there is to know and was not left out."""
    rows = [(item.what, item.count, item.why, ", ".join(item.examples)) for item in scorecard.noted]
    return Table(
        "What else there is to know", "These are in the scores.", ("what", "count", "why", "for example"), rows
    )


def build_readings_table(scorecard: Scorecard) -> Table:
    """The readings that ran, and their choices."""
    rows = [
        (reading.name, reading.value, reading.meaning, reading.default, ", ".join(reading.choices))
        for reading in scorecard.readings
    ]
    return Table("Which readings ran", "", ("reading", "value", "meaning", "default", "choices"), rows)


def _choose_decimals(scores: Sequence[Score]) -> int:
    return max((choose_score_decimals(score) for score in scores), default=3)


def _describe_intervals(scores: Sequence[Score]) -> str:
    """How the intervals were made, where all were made in the same way."""
    made = {
        (score.interval.level, score.interval.method, score.interval.resampled) for score in scores if score.interval
    }
    if len(made) != 1:
        return ""
    level, method, resampled = made.pop()
    return f"{format_level(level)} intervals ({method}, over {pluralize(resampled)})."
