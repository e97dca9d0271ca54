"""The leaderboard of one benchmark: its runs and the published rows, by every headline score and in shared slices."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hardlook.contract.benchmark import Benchmark, BenchmarkCard, ScoreMeaning
from hardlook.contract.published import PublishedResult
from hardlook.contract.scorecard import Score
from hardlook.errors import OptionError
from hardlook.leaderboards.entrants import Entrant, Marks, Place, make_entrants
from hardlook.leaderboards.gather import Omitted
from hardlook.leaderboards.run_files import GatheredRun
from hardlook.leaderboards.standing import (
    NOT,
    Row,
    Standing,
    compares_with_the_paper,
    ranked,
    run_row,
    slice_text,
    why_not,
)

Key = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Board:
    """Everything a leaderboard shows; `first` is the run that the others are held against."""

    card: BenchmarkCard
    entrants: tuple[Entrant, ...]
    first: Entrant
    standings: tuple[Standing, ...]
    slices: tuple[Standing, ...]
    left_out: tuple[Omitted, ...]


def make_board(
    benchmark: Benchmark,
    runs: Sequence[GatheredRun],
    left_out: Sequence[Omitted] = (),
    *,
    sort: str | None = None,
    marks: Marks | None = None,
) -> Board:
    """Rank the runs; `sort` is the score that comes first; `marks` tells the marks of a model, such as transductive."""
    card = benchmark.card
    entrants, first = make_entrants(benchmark, runs, marks)
    shown = shown_scores(card, sort)
    standings = [standing for meaning in shown if (standing := _overall(card, meaning, entrants, first)).of("run")]
    slices = [standing for meaning in shown for standing in _sliced(card, meaning, entrants, first)]
    return Board(card, entrants, first, tuple(standings), tuple(slices), tuple(left_out))


def shown_scores(card: BenchmarkCard, sort: str | None = None) -> list[ScoreMeaning]:
    """The headline scores, the one to sort by first; all scores where none is a headline."""
    headline = [meaning for meaning in card.scores if meaning.headline] or list(card.scores)
    if sort is None:
        return headline
    chosen = next((meaning for meaning in card.scores if meaning.name == sort), None)
    if chosen is None:
        names = [meaning.name for meaning in card.scores]
        near = difflib.get_close_matches(sort, names, n=3) or names
        raise OptionError(f"--sort {sort}: {card.name} has no such score", remedy=f"one of {', '.join(near)}")
    return [chosen, *(meaning for meaning in headline if meaning != chosen)]


def _overall(card: BenchmarkCard, meaning: ScoreMeaning, entrants: Sequence[Entrant], first: Entrant) -> Standing:
    """Scores over all units, beside published rows of the first run's place; others where there are none."""
    rows = [
        _row(score, entrant, entrant.place)
        for entrant in entrants
        for score in entrant.run.scorecard.headline
        if score.name == meaning.name
    ]
    published = [row for row in card.published if meaning.name in row.values]
    chosen = [row for row in published if row.where == first.place] or [row for row in published if not row.where]
    return _standing(meaning, first.place, rows, chosen or published)


def _sliced(card: BenchmarkCard, meaning: ScoreMeaning, entrants: Sequence[Entrant], first: Entrant) -> list[Standing]:
    """Slices that runs and published rows share, beside the one that the first run as a whole stands for."""
    published: dict[Key, list[PublishedResult]] = {}
    for result in card.published:
        if meaning.name in result.values and result.where and result.where != first.place:
            published.setdefault(_key(result.where), []).append(result)
    rows: dict[Key, list[Row]] = {}
    for entrant in entrants if published else ():
        for score in entrant.run.scorecard.scores:
            if score.name == meaning.name and score.slice:
                place = {**entrant.place, **score.slice}
                if _key(place) in published:
                    rows.setdefault(_key(place), []).append(_row(score, entrant, place))
    return [_standing(meaning, dict(key), some, published[key]) for key, some in sorted(rows.items())]


def _standing(meaning: ScoreMeaning, place: Place, rows: list[Row], published: Sequence[PublishedResult]) -> Standing:
    unflagged = [row for row in rows if not row.flags]
    agreed = any(compares_with_the_paper(row.comparable) for row in unflagged)
    for result in published:
        flags = []
        if result.where != place:
            flags.append(f"of other units: {slice_text(result.where) or 'all units of the paper'}")
        if result.comparable.lower().startswith(NOT):
            flags.append(result.comparable)
        elif not agreed:
            flags.append(why_not([row.comparable for row in unflagged]))
        row = Row(
            "published",
            result.method,
            result.values[meaning.name],
            comparable=result.comparable,
            flags=tuple(flags),
            place=result.where,
            source=result.source,
        )
        rows.append(row)
    return Standing(meaning, place, ranked(rows, meaning))


def _row(score: Score, entrant: Entrant, place: Place) -> Row:
    run = entrant.run
    return run_row(score, entrant.method, place, flags=entrant.flags, folder=run.folder, date=run.date)


def _key(where: Mapping[str, str]) -> Key:
    return tuple(sorted(where.items()))
