"""The scorecard in a terminal: headline scores with small interval bars, the worst and best slices, the fine print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hardlook.contract.scorecard import Score, Scorecard
from hardlook.report.cards import interval_text, score_decimals
from hardlook.report.charts.scales import fit
from hardlook.report.numerals import counted, finite, is_number, numeral

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_BAR = 24


def print_scorecard(
    scorecard: Scorecard,
    console: Console,
    explanations: Mapping[str, str] | None = None,
    higher_is_better: Mapping[str, bool] | None = None,
    most_slices: int = 5,
) -> None:
    """Print the scorecard; of a score with many slices the `most_slices` worst and best are shown.

    >>> from rich.console import Console
    >>> console = Console(width=60, record=True, quiet=True)
    >>> print_scorecard(Scorecard("toss", "1", "planted", (Score("miou", 0.5, 10),)), console)
    """
    from rich.text import Text

    explanations, better = explanations or {}, higher_is_better or {}
    console.print(Text(f"{scorecard.benchmark} {scorecard.version}  {scorecard.model}", style="bold"))
    console.print(Text(_units(scorecard), style="dim"))
    if scorecard.headline:
        console.print(_table(scorecard.headline, first="score", names=[score.name for score in scorecard.headline]))
        for name in dict.fromkeys(score.name for score in scorecard.headline if score.name in explanations):
            console.print(Text(f"{name}: {explanations[name]}", style="dim"))
    for name in dict.fromkeys(score.name for score in scorecard.scores if score.slice):
        slices = [score for score in scorecard.scores if score.name == name and score.slice]
        shown, title = _bounded(slices, most_slices, higher=better.get(name, True))
        names = [", ".join(f"{key}: {value}" for key, value in score.slice.items()) for score in shown]
        console.print()
        console.print(Text(f"{name}, {title}", style="bold"))
        console.print(_table(shown, first="slice", names=names, one_scale=True))
    _fine_print(scorecard, console)


def interval_bar(score: Score, low: float, high: float, width: int = _BAR) -> str:
    """Value and interval as characters on the range low to high.

    >>> from hardlook.contract.scorecard import Interval
    >>> interval_bar(Score("a", 0.5, 9, Interval(0.25, 0.75, 0.95, "t", 9, "fold")), 0, 1, width=9)
    '··──●──··'
    """
    cells = ["·"] * width

    def place(value: float) -> int:
        share = (value - low) / (high - low) if high > low else 0.5
        return round(min(max(share, 0.0), 1.0) * (width - 1))

    if interval_text(score) and score.interval is not None:
        first, last = place(score.interval.low), place(score.interval.high)
        cells[first : last + 1] = ["─"] * (last - first + 1)
    if is_number(score.value):
        cells[place(score.value)] = "●"
    return "".join(cells)


def _table(scores: Sequence[Score], *, first: str, names: Sequence[str], one_scale: bool = False) -> Table:
    """Scores with bars: on one scale where all are of one name, else shares on 0 to 1 and the rest on their own."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column(first, overflow="fold")
    for column in ("value", "interval", "n"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("")
    for score, name in zip(scores, names, strict=True):
        low, high = _range([other for other in scores if one_scale or _unit(other) == _unit(score)])
        bar = Text(interval_bar(score, low, high), style="cyan", no_wrap=True)
        value = numeral(score.value, score_decimals(score))
        table.add_row(Text(name), Text(value, style="bold"), interval_text(score), numeral(score.n, 0), bar)
    return table


def _range(scores: Sequence[Score]) -> tuple[float, float]:
    """The range of the bars: 0 to 1 for scores that live there, else a round one."""
    if all(_unit(score) for score in scores):
        return 0.0, 1.0
    scale = fit([number for score in scores for number in _numbers(score)], start=0, stop=1)
    return scale.low, scale.high


def _unit(score: Score) -> bool:
    return all(0 <= number <= 1 for number in _numbers(score))


def _numbers(score: Score) -> list[float]:
    bounds = () if score.interval is None else (score.interval.low, score.interval.high)
    return finite([score.value, *bounds])


def _bounded(slices: Sequence[Score], most: int, *, higher: bool) -> tuple[list[Score], str]:
    """The slices worst first; only both ends of the order when there are too many."""
    known = [score for score in slices if is_number(score.value)]
    ordered = sorted(known, key=lambda score: score.value if higher else -score.value)
    ordered += [score for score in slices if not is_number(score.value)]
    if len(ordered) <= 2 * most:
        return ordered, f"{counted(len(ordered), 'slice')}, worst first"
    return ordered[:most] + ordered[
        len(known) - most : len(known)
    ], f"the {most} worst and {most} best of {len(slices)}"


def _units(scorecard: Scorecard) -> str:
    units = scorecard.units
    return f"{counted(units.planned, 'unit')} planned, {units.scored} scored, {units.failed} failed"


def _fine_print(scorecard: Scorecard, console: Console) -> None:
    from rich.text import Text

    if scorecard.left_out:
        console.print()
        console.print(Text("Left out", style="bold"))
        for item in scorecard.left_out:
            console.print(Text(f"  {numeral(item.count, 0)}  {item.what}: {item.why}"))
    if scorecard.readings:
        console.print()
        console.print(Text("Readings", style="bold"))
        for reading in scorecard.readings:
            default = "" if reading.value == reading.default or not reading.default else f" (default {reading.default})"
            console.print(Text(f"  {reading.name} = {reading.value}{default}: {reading.meaning}"))
