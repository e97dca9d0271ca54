"""The tables of a scorecard in a terminal: scores with bars, and a line for each kind of slices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from hardlook.contract.benchmark import ScoreMeaning
from hardlook.contract.scorecard import Score
from hardlook.report.cards import interval_text, score_decimals
from hardlook.report.numerals import is_number, numeral
from hardlook.report.terminal_bars import Range, interval_bar, room_for_bars, strip, with_ends

if TYPE_CHECKING:
    from rich.table import Table

_GAP, _LABEL = 2, 18


@dataclass(frozen=True)
class SliceKind:
    """The defined scores of one name by one kind of slice, worst first, or lowest where none is bad."""

    name: str
    keys: tuple[str, ...]
    scores: tuple[Score, ...]

    @property
    def differ(self) -> bool:
        """Whether the best is better than the worst."""
        return self.scores[0].value != self.scores[-1].value


@dataclass(frozen=True)
class _Column:
    title: str
    cells: Sequence[str]
    side: Literal["left", "right"] = "left"
    style: str = ""

    @property
    def width(self) -> int:
        return max([len(self.title), *map(len, self.cells)])


def arrow(name: str, meanings: Mapping[str, ScoreMeaning]) -> str:
    """Which way is better; nothing where nobody said or neither is.

    >>> arrow("noc", {"noc": ScoreMeaning("noc", "NoC", "clicks", higher_is_better=False)}), arrow("x", {})
    (' ↓', '')
    """
    if name not in meanings or not meanings[name].directed:
        return ""
    return " \N{UPWARDS ARROW}" if meanings[name].higher_is_better else " \N{DOWNWARDS ARROW}"


def slice_kinds(scores: Sequence[Score], names: Sequence[str], meanings: Mapping[str, ScoreMeaning]) -> list[SliceKind]:
    """Of each name its slices of the simplest sort: by class rather than by class and context; at least two a kind.

    >>> rows = [Score("iou", v, 1, slice={"class": c}) for c, v in (("cat", 0.9), ("dog", 0.4))]
    >>> [(kind.keys, kind.scores[0].slice["class"]) for kind in slice_kinds(rows, ["iou"], {})]
    [(('class',), 'dog')]
    """
    kinds: dict[tuple[str, tuple[str, ...]], list[Score]] = {}
    for name in names:
        own = [score for score in scores if score.name == name and score.slice and is_number(score.value)]
        fewest = min((len(score.slice) for score in own), default=0)
        for score in own:
            if len(score.slice) == fewest:
                kinds.setdefault((name, tuple(score.slice)), []).append(score)
    several = ((name, keys, rows) for (name, keys), rows in kinds.items() if len(rows) > 1)
    return [SliceKind(name, keys, _worst_first(rows, name, meanings)) for name, keys, rows in several]


def score_table(
    scores: Sequence[Score], labels: Sequence[str], first: str, ranges: Mapping[str, Range], width: int
) -> Table:
    """Scores with values, intervals and bars, each on the range of its name."""
    values = [numeral(score.value, score_decimals(score)) for score in scores]
    columns = [
        _Column(first, labels),
        _Column("value", values, "right", "bold"),
        _Column(_heading(scores), [interval_text(score) for score in scores], "right"),
        _Column("n", [numeral(score.n, 0) for score in scores], "right"),
    ]
    own = [ranges[score.name] for score in scores]
    room = room_for_bars(width, sum(column.width + _GAP for column in columns), own)
    drawn = [interval_bar(score, span.low, span.high, room) for score, span in zip(scores, own, strict=True) if room]
    return _table(columns, with_ends(drawn, own) if room else [])


def slices_table(
    kinds: Sequence[SliceKind], meanings: Mapping[str, ScoreMeaning], ranges: Mapping[str, Range], width: int
) -> Table:
    """One line a kind of slices: how many there are, the worst, the best, and where all of them lie."""
    labels = [f"{kind.name} by {', '.join(kind.keys)}{arrow(kind.name, meanings)}" for kind in kinds]
    columns = [
        _Column("slices", labels),
        _Column("", [str(len(kind.scores)) for kind in kinds], "right"),
        _Column("worst", [_named(kind.scores[0]) for kind in kinds]),
        _Column("best", [_named(kind.scores[-1]) if kind.differ else "the same" for kind in kinds]),
    ]
    if not all(_has_bad_end(kind, meanings) for kind in kinds):
        columns[2:] = [replace(columns[2], title="worst or lowest"), replace(columns[3], title="best or highest")]
    own = [ranges[kind.name] for kind in kinds]
    room = room_for_bars(width, sum(column.width + _GAP for column in columns), own)
    values = [[score.value for score in kind.scores] for kind in kinds]
    drawn = [strip(row, span.low, span.high, room) for row, span in zip(values, own, strict=True) if room]
    return _table(columns, with_ends(drawn, own) if room else [])


def _has_bad_end(kind: SliceKind, meanings: Mapping[str, ScoreMeaning]) -> bool:
    """Whether the same end is bad in every slice; of scores that are neither good nor bad, none is."""
    known = meanings.get(kind.name)
    return known is None or (known.directed and all(known.within(score.slice) == known for score in kind.scores))


def slice_words(score: Score) -> str:
    """The slice as `class: cat, context: beach`."""
    return ", ".join(f"{key}: {value}" for key, value in score.slice.items())


def _heading(scores: Sequence[Score]) -> str:
    levels = {score.interval.level for score in scores if score.interval is not None}
    return f"{levels.pop():.0%} interval" if len(levels) == 1 else "interval"


def _named(score: Score) -> str:
    name = ", ".join(score.slice.values())
    name = name if len(name) <= _LABEL else f"{name[: _LABEL - 1]}\N{HORIZONTAL ELLIPSIS}"
    return f"{name} {numeral(score.value, score_decimals(score))}"


def _worst_first(scores: Sequence[Score], name: str, meanings: Mapping[str, ScoreMeaning]) -> tuple[Score, ...]:
    higher = name not in meanings or meanings[name].higher_is_better or not meanings[name].directed
    return tuple(sorted(scores, key=lambda score: score.value if higher else -score.value))


def _table(columns: Sequence[_Column], bars: Sequence[str]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="dim")
    for column in columns:
        table.add_column(column.title, justify=column.side, overflow="fold")
    if bars:
        table.add_column("", no_wrap=True)
    for index in range(len(columns[0].cells)):
        cells = [Text(column.cells[index], style=column.style) for column in columns]
        table.add_row(*cells, *([Text(bars[index], style="cyan")] if bars else []))
    return table
