"""The scorecard in a terminal, on one screen: headline scores with bars, the worst and best slices, the fine print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hardlook.contract.benchmark import ScoreMeaning
from hardlook.contract.scorecard import Score, Scorecard
from hardlook.report.cards import score_decimals
from hardlook.report.numerals import counted, is_number, numeral
from hardlook.report.terminal_bars import Range, ranges_by_name
from hardlook.report.terminal_tables import SliceKind, arrow, score_table, slice_kinds, slice_words, slices_table

if TYPE_CHECKING:
    from rich.console import Console

_MOST_KINDS, _MOST_OTHERS = 10, 30


def print_scorecard(
    scorecard: Scorecard, console: Console, meanings: Sequence[ScoreMeaning] = (), *, full: bool = False
) -> None:
    """Print the scorecard: about 40 lines, or every score and every slice when it is to be `full`.

    Headline scores are those that `meanings` call so, or all over all units where it calls none.

    >>> from rich.console import Console
    >>> console = Console(width=60, record=True, quiet=True)
    >>> print_scorecard(Scorecard("toss", "1", "planted", (Score("miou", 0.5, 10),)), console)
    """
    known = {meaning.name: meaning for meaning in meanings}
    over_all = scorecard.headline
    first = [score for score in over_all if score.name in known and known[score.name].headline] or list(over_all)
    shown = list(over_all) if full else first
    kinds = [] if full else _kinds(scorecard, first, known)
    ranges = ranges_by_name(scorecard.scores if full else first, (one for kind in kinds for one in kind.scores))
    units = scorecard.units
    _say(console, f"{scorecard.benchmark} {scorecard.version}  {scorecard.model}", "bold")
    _say(console, f"{counted(units.planned, 'unit')} planned, {units.scored} scored, {units.failed} failed", "dim")
    if shown:
        labels = [f"{score.name}{arrow(score.name, known)}" for score in shown]
        console.print()
        console.print(score_table(shown, labels, "score", ranges, console.width))
        for name in dict.fromkeys(score.name for score in shown if score.name in known):
            _say(console, f"{name}: {known[name].meaning}", "dim")
    if full:
        _every_slice(scorecard, console, known, ranges)
    else:
        _others(over_all, first, console)
        if kinds:
            console.print()
            console.print(slices_table(kinds[:_MOST_KINDS], known, ranges, console.width))
        if len(kinds) > _MOST_KINDS:
            _say(console, f"and {counted(len(kinds) - _MOST_KINDS, 'more kind')} of slices", "dim")
    _fine_print(scorecard, first, console, full=full)


def _others(over_all: Sequence[Score], first: Sequence[Score], console: Console) -> None:
    """What else is known over all units, as a list in running text."""
    others = [score for score in over_all if score not in first]
    if not others:
        return
    words = [f"{score.name} {numeral(score.value, score_decimals(score))}" for score in others[:_MOST_OTHERS]]
    if len(others) > _MOST_OTHERS:
        words.append(f"and {len(others) - _MOST_OTHERS} more")
    console.print()
    _say(console, "Other scores", "bold")
    line = " "
    for number, word in enumerate(words):
        piece = word if number == len(words) - 1 else f"{word},"
        if len(line) + len(piece) + 1 > console.width and line.strip():
            _say(console, line)
            line = " "
        line += f" {piece}"
    _say(console, line)


def _kinds(scorecard: Scorecard, first: Sequence[Score], known: Mapping[str, ScoreMeaning]) -> list[SliceKind]:
    """Slices of headline scores, and of scores that exist in slices alone, such as the IoU of a class."""
    over_all = {score.name for score in scorecard.headline}
    names = [score.name for score in scorecard.scores if score.name not in over_all]
    return slice_kinds(scorecard.scores, list(dict.fromkeys([*(score.name for score in first), *names])), known)


def _every_slice(
    scorecard: Scorecard, console: Console, known: Mapping[str, ScoreMeaning], ranges: Mapping[str, Range]
) -> None:
    for name in dict.fromkeys(score.name for score in scorecard.scores if score.slice):
        own = [score for score in scorecard.scores if score.name == name and score.slice]
        directed = name not in known or known[name].directed
        higher = name not in known or known[name].higher_is_better or not directed
        own.sort(key=lambda score: (not is_number(score.value), score.value if higher else -score.value))
        console.print()
        order = "worst first" if directed else "lowest first"
        _say(console, f"{name}{arrow(name, known)}, {counted(len(own), 'slice')}, {order}", "bold")
        console.print(score_table(own, [slice_words(score) for score in own], "slice", ranges, console.width))


def _fine_print(scorecard: Scorecard, first: Sequence[Score], console: Console, *, full: bool) -> None:
    lines = []
    for said in dict.fromkeys(score.comparable for score in (scorecard.headline if full else first)):
        lines += [f"Beside the paper: {said}"] if said else []
    if scorecard.left_out and full:
        lines += [f"Left out: {item.count} {item.what}: {item.why}" for item in scorecard.left_out]
    elif scorecard.left_out:
        lines.append("Left out: " + "; ".join(f"{numeral(item.count, 0)} {item.what}" for item in scorecard.left_out))
    changed = {
        reading.name: f"{reading.name}={reading.value}"
        + (f" (default {reading.default})" if reading.default not in ("", reading.value) else "")
        for reading in scorecard.readings
    }
    if full:
        lines += [f"Reading {changed[reading.name]}: {reading.meaning}" for reading in scorecard.readings]
    elif changed:
        lines.append(f"Readings: {', '.join(changed.values())}")
    if not full and len(scorecard.scores) > len(first):
        lines.append(f"{counted(len(scorecard.scores), 'score')} in all: --full prints them, the report draws them")
    if lines:
        console.print()
    for line in lines:
        _say(console, line)


def _say(console: Console, text: str, style: str = "") -> None:
    """Print as it is: names may look like markup."""
    from rich.text import Text

    console.print(Text(text, style=style))
