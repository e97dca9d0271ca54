"""The scorecard in a terminal, on one screen: headline scores with bars, the worst and best slices, the fine print.

Scores between 0 and 1 share that range for their bars. Any other score has a range of its own, which starts at zero and
covers its slices too, so that lengths are never compared between scores of different scales.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from hardlook.harness.benchmark import ScoreMeaning
from hardlook.harness.scorecard import Score, Scorecard
from hardlook.report.charts.drawing import fit_scale
from hardlook.report.formatting import format_count, format_level, format_number, format_slice, is_number, keep_finite
from hardlook.report.score_display import (
    choose_score_decimals,
    format_basis,
    format_score_interval,
    format_undefined,
    format_wider_interval,
    get_bounds,
    warn_of_few_clusters,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

MIN_BAR, MAX_BAR = 6, 24
_EMPTY, _LINE, _DOT, _BULLET = "·", "─", "●", "•"
_GAP, _LABEL = 2, 18
_MAX_KINDS, _MAX_OTHERS = 10, 48
_FIRST_OTHERS = 30  # where there are more than all can be printed


def print_scorecard(
    scorecard: Scorecard,
    console: Console,
    meanings: Sequence[ScoreMeaning] = (),
    *,
    full: bool = False,
    models: Mapping[str, str] | None = None,
) -> None:
    """Print the scorecard: about 40 lines, or every score and every slice with `full`.

    `models` are those that the model works with, by role, such as an encoder.

    Headline scores are those that `meanings` mark as such, or all scores over all units where none is marked.

    >>> from rich.console import Console
    >>> console = Console(width=60, record=True, quiet=True)
    >>> print_scorecard(Scorecard("toss", "1", "planted", (Score("miou", 0.5, 10),)), console)
    """
    known = {meaning.name: meaning for meaning in meanings}
    over_all = scorecard.headline
    first = [score for score in over_all if score.name in known and known[score.name].headline] or list(over_all)
    shown = list(over_all) if full else first
    # Slices of headline scores, and of scores that have slices only, such as the IoU of a class.
    sliced = dict.fromkeys(score.name for score in scorecard.scores if score.name not in {one.name for one in over_all})
    kinds = [] if full else group_slices(scorecard.scores, [*{one.name: None for one in first} | sliced], known)
    ranges = fit_ranges(scorecard.scores if full else first, (one for kind in kinds for one in kind.scores))
    units = scorecard.units
    _print_line(console, f"{scorecard.benchmark} {scorecard.version}  {scorecard.model}", "bold")
    for role, name in (models or {}).items():
        _print_line(console, f"{role}: {name}", "dim")
    counts = f"{format_count(units.planned, 'unit')} planned, {units.scored} scored, {units.failed} failed"
    _print_line(console, counts, "dim")
    if shown:
        labels = [f"{score.name}{format_direction(score.name, known)}" for score in shown]
        console.print()
        console.print(build_score_table(shown, labels, "score", ranges, console.width))
        for name in dict.fromkeys(score.name for score in shown if score.name in known):
            _print_line(console, f"{name}: {known[name].meaning}", "dim")
        for line in describe_bases(shown):
            _print_line(console, line)
    if full:
        _print_all_slices(scorecard, console, known, ranges)
    else:
        _print_others(over_all, first, console)
        if kinds:
            console.print()
            console.print(build_slices_table(kinds[:_MAX_KINDS], known, ranges, console.width))
        if len(kinds) > _MAX_KINDS:
            _print_line(console, f"and {format_count(len(kinds) - _MAX_KINDS, 'more kind')} of slices", "dim")
    _print_fine_print(scorecard, first, console, full=full)


def describe_bases(scores: Sequence[Score]) -> list[str]:
    """What the scores rest on, those with the same basis in one line; then why a score has no interval or no value.

    >>> describe_bases([Score("scs", 0.5, 9, rests_on={"query image": 9, "class": 1}, undefined=0.7)])
    ['scs rests on 9 query images, 1 class', 'scs has no interval: 70 % of the resamples are undefined']
    """
    bases: dict[str, list[str]] = {}
    for score in scores:
        if basis := format_basis(score):
            bases.setdefault(basis, []).append(score.name)
    lines = [
        f"{', '.join(names)} {'rests' if len(names) == 1 else 'rest'} on {basis}" for basis, names in bases.items()
    ]
    for score in scores:
        if score.reason and not is_number(score.value):
            lines.append(f"{score.name} is undefined: {score.reason}")
        elif undefined := format_undefined(score):
            lines.append(f"{score.name}{'' if score.interval else ' has no interval'}: {undefined}")
        for more in filter(None, (format_wider_interval(score), warn_of_few_clusters(score))):
            lines.append(f"{score.name}: {more}")
    return lines


def _print_others(over_all: Sequence[Score], first: Sequence[Score], console: Console) -> None:
    """Print the other scores over all units as running text."""
    others = [score for score in over_all if score not in first]
    if not others:
        return
    listed = others if len(others) <= _MAX_OTHERS else others[:_FIRST_OTHERS]
    words = [f"{score.name} {format_number(score.value, choose_score_decimals(score))}" for score in listed]
    if len(others) > len(listed):
        words.append(f"and {len(others) - len(listed)} more")
    console.print()
    _print_line(console, "Other scores", "bold")
    # A name and its value stay on one line.
    text = ", ".join(word.replace(" ", "\0") for word in words)
    wrapped = textwrap.wrap(text, console.width - 2, break_long_words=False, break_on_hyphens=False)
    for line in wrapped:
        _print_line(console, f"  {line}".replace("\0", " "))


def _print_all_slices(
    scorecard: Scorecard, console: Console, known: Mapping[str, ScoreMeaning], ranges: Mapping[str, Range]
) -> None:
    for name in dict.fromkeys(score.name for score in scorecard.scores if score.slice):
        own = _sort_worst_first([one for one in scorecard.scores if one.name == name and one.slice], name, known)
        order = "worst first" if name not in known or known[name].ranked else "lowest first"
        heading = f"{name}{format_direction(name, known)}, {format_count(len(own), 'slice')}, {order}"
        console.print()
        _print_line(console, heading, "bold")
        labels = [format_slice(score.slice) for score in own]
        console.print(build_score_table(own, labels, "slice", ranges, console.width))


def _print_fine_print(scorecard: Scorecard, first: Sequence[Score], console: Console, *, full: bool) -> None:
    texts = dict.fromkeys(score.comparable for score in (scorecard.headline if full else first))
    warnings = [note for note in scorecard.noted if note.warning]
    noted = [note for note in scorecard.noted if not note.warning]
    lines = [f"Warning: {note.what}: {note.why}" for note in warnings]
    lines += [f"Beside the paper: {text}" for text in texts if text]
    if scorecard.left_out and full:
        lines += [f"Left out: {item.count} {item.what}: {item.why}" for item in scorecard.left_out]
    elif scorecard.left_out:
        lines.append(
            "Left out: " + "; ".join(f"{format_number(item.count, 0)} {item.what}" for item in scorecard.left_out)
        )
    if full:
        lines += [f"Noted: {item.count} {item.what}: {item.why}" for item in noted]
    elif noted:
        lines.append("Noted: " + "; ".join(f"{format_number(item.count, 0)} {item.what}" for item in noted))
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
        lines.append(
            f"{format_count(len(scorecard.scores), 'score')} in all: --full prints them, the report draws them"
        )
    if lines:
        console.print()
    for line in lines:
        _print_line(console, line)


def _print_line(console: Console, text: str, style: str = "") -> None:
    """Print the text as it is, without markup."""
    from rich.text import Text

    console.print(Text(text, style=style))


@dataclass(frozen=True)
class SliceGroup:
    """The defined scores of one name by one kind of slice, worst first, or lowest where none is bad."""

    name: str
    keys: tuple[str, ...]
    scores: tuple[Score, ...]


def group_slices(
    scores: Sequence[Score], names: Sequence[str], meanings: Mapping[str, ScoreMeaning]
) -> list[SliceGroup]:
    """The slices of each name by the fewest properties: by class rather than by class and context; at least two each.

    >>> rows = [Score("iou", v, 1, slice={"class": c}) for c, v in (("cat", 0.9), ("dog", 0.4))]
    >>> [(kind.keys, kind.scores[0].slice["class"]) for kind in group_slices(rows, ["iou"], {})]
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
    return [SliceGroup(name, keys, _sort_worst_first(rows, name, meanings)) for name, keys, rows in several]


def _sort_worst_first(scores: Sequence[Score], name: str, meanings: Mapping[str, ScoreMeaning]) -> tuple[Score, ...]:
    higher = name not in meanings or meanings[name].higher_is_better or not meanings[name].ranked
    return tuple(sorted(scores, key=lambda one: (not is_number(one.value), one.value if higher else -one.value)))


def build_score_table(
    scores: Sequence[Score], labels: Sequence[str], first: str, ranges: Mapping[str, Range], width: int
) -> Table:
    """Scores with values, intervals and bars, each on the range of its name."""
    values = [format_number(score.value, choose_score_decimals(score)) for score in scores]
    levels = {score.interval.level for score in scores if score.interval is not None}
    interval = f"{format_level(levels.pop())} interval" if len(levels) == 1 else "interval"
    columns = [
        _Column(first, labels),
        _Column("value", values, "right", "bold"),
        _Column(interval, [format_score_interval(score) for score in scores], "right"),
        _Column("n", [format_number(score.n, 0) for score in scores], "right"),
    ]
    bars = [partial(draw_text_bar, score) for score in scores]
    return _make_table(columns, [ranges[score.name] for score in scores], bars, width)


def build_slices_table(
    kinds: Sequence[SliceGroup], meanings: Mapping[str, ScoreMeaning], ranges: Mapping[str, Range], width: int
) -> Table:
    """One line per kind of slice: how many there are, the worst, the best, and a strip of all values."""
    labels = [f"{kind.name} by {', '.join(kind.keys)}{format_direction(kind.name, meanings)}" for kind in kinds]
    ends = [(kind.scores[0], kind.scores[-1]) for kind in kinds]
    columns = [
        _Column("slices", labels),
        _Column("", [str(len(kind.scores)) for kind in kinds], "right"),
        _Column("worst", [_format_named_score(worst) for worst, _ in ends]),
        _Column("best", ["the same" if high.value == low.value else _format_named_score(high) for low, high in ends]),
    ]
    if not all(_has_bad_end(kind, meanings) for kind in kinds):
        columns[2:] = [replace(columns[2], title="worst or lowest"), replace(columns[3], title="best or highest")]
    strips = [partial(draw_value_strip, [score.value for score in kind.scores]) for kind in kinds]
    return _make_table(columns, [ranges[kind.name] for kind in kinds], strips, width)


def _has_bad_end(kind: SliceGroup, meanings: Mapping[str, ScoreMeaning]) -> bool:
    """Whether the same end is bad in every slice; of scores that are neither good nor bad, none is."""
    known = meanings.get(kind.name)
    return known is None or (known.ranked and all(known.within(score.slice) == known for score in kind.scores))


def _format_named_score(score: Score) -> str:
    name = ", ".join(score.slice.values())
    name = name if len(name) <= _LABEL else f"{name[: _LABEL - 1]}\N{HORIZONTAL ELLIPSIS}"
    return f"{name} {format_number(score.value, choose_score_decimals(score))}"


@dataclass(frozen=True)
class _Column:
    title: str
    cells: Sequence[str]
    side: Literal["left", "right"] = "left"
    style: str = ""

    @property
    def width(self) -> int:
        return max([len(self.title), *map(len, self.cells)])


def _make_table(
    columns: Sequence[_Column], ranges: Sequence[Range], draw: Sequence[Callable[[float, float, int], str]], width: int
) -> Table:
    """The columns and, where `width` leaves room, bars; `draw` has one per row, of its range and its width."""
    from rich.table import Table
    from rich.text import Text

    room = compute_bar_width(width, sum(column.width + _GAP for column in columns), ranges)
    drawn = [bar(span.low, span.high, room) for bar, span in zip(draw, ranges, strict=True)] if room else []
    bars = add_range_ends(drawn, ranges) if room else []
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="dim")
    for column in columns:
        table.add_column(column.title, justify=column.side, overflow="fold")
    if bars:
        table.add_column("", no_wrap=True)
    for index in range(len(columns[0].cells)):
        cells = [Text(column.cells[index], style=column.style) for column in columns]
        table.add_row(*cells, *([Text(bars[index], style="cyan")] if bars else []))
    return table


def format_direction(name: str, meanings: Mapping[str, ScoreMeaning]) -> str:
    """An arrow for the better direction; empty where it is unknown or neither is better.

    >>> clicks = ScoreMeaning("noc", "NoC", "clicks", higher_is_better=False)
    >>> format_direction("noc", {"noc": clicks}), format_direction("x", {})
    (' ↓', '')
    """
    if name not in meanings or not meanings[name].ranked:
        return ""
    return " \N{UPWARDS ARROW}" if meanings[name].higher_is_better else " \N{DOWNWARDS ARROW}"


@dataclass(frozen=True)
class Range:
    """The two ends of a bar, as numbers and as texts."""

    low: float
    high: float
    left: str
    right: str


def fit_range(numbers: Iterable[float]) -> Range:
    """The range for bars of these numbers: 0 to 1 where it covers all of them, else a round one with zero.

    >>> fit_range([0.5, 0.75])
    Range(low=0.0, high=1.0, left='0', right='1')
    >>> fit_range([3.25, 7.0])
    Range(low=0.0, high=10.0, left='0', right='10')
    """
    known = keep_finite(numbers)
    if all(0 <= number <= 1 for number in known):
        return Range(0.0, 1.0, "0", "1")
    scale = fit_scale([0.0, *known], start=0, stop=1, ticks=2)
    left, right = (f"{end:g}".replace("-", "\N{MINUS SIGN}") for end in (scale.low, scale.high))
    return Range(scale.low, scale.high, left, right)


def fit_ranges(scores: Iterable[Score], by_value: Iterable[Score] = ()) -> dict[str, Range]:
    """One range per name for `scores` with their intervals and those `by_value` without.

    >>> fit_ranges([Score("clicks", 3.0, 9)], [Score("clicks", 7.0, 4, slice={"size": "small"})])["clicks"].right
    '10'
    """
    numbers: dict[str, list[float]] = {}
    for score in scores:
        numbers.setdefault(score.name, []).extend(keep_finite((score.value, *get_bounds(score))))
    for score in by_value:
        numbers.setdefault(score.name, []).append(score.value)
    return {name: fit_range(values) for name, values in numbers.items()}


def draw_text_bar(score: Score, low: float, high: float, width: int = MAX_BAR) -> str:
    """Value and interval as characters on the range low to high.

    >>> from hardlook.harness.stats.intervals import Interval
    >>> draw_text_bar(Score("a", 0.5, 9, Interval(0.25, 0.75, 0.95, "t", 9, "fold")), 0, 1, width=9)
    '··──●──··'
    """
    cells = [_EMPTY] * width
    start, stop = get_bounds(score)
    if is_number(start) and is_number(stop):
        first, last = (_locate(end, low, high, width) for end in (start, stop))
        cells[first : last + 1] = [_LINE] * (last - first + 1)
    if is_number(score.value):
        cells[_locate(score.value, low, high, width)] = _DOT
    return "".join(cells)


def draw_value_strip(values: Iterable[float], low: float, high: float, width: int = MAX_BAR) -> str:
    """Many values as dots on the range.

    >>> draw_value_strip([0.0, 0.5, 0.52, float("nan")], 0, 1, width=9)
    '•···•····'
    """
    cells = [_EMPTY] * width
    for value in keep_finite(values):
        cells[_locate(value, low, high, width)] = _BULLET
    return "".join(cells)


def add_range_ends(bars: Sequence[str], ranges: Sequence[Range]) -> list[str]:
    """The bars between the ends of their ranges, aligned.

    >>> add_range_ends(["●··", "··●"], [Range(0, 1, "0", "1"), Range(-5, 10, "-5", "10")])
    [' 0 ●·· 1', '-5 ··● 10']
    """
    left = max((len(span.left) for span in ranges), default=0)
    return [f"{span.left:>{left}} {bar} {span.right}" for bar, span in zip(bars, ranges, strict=True)]


def compute_bar_width(width: int, taken: int, ranges: Sequence[Range]) -> int:
    """The width of a bar beside `taken` characters; 0 where too few are left."""
    ends = max((len(span.left) for span in ranges), default=0) + max((len(span.right) for span in ranges), default=0)
    room = min(width - taken - ends - 2, MAX_BAR)
    return room if room >= MIN_BAR else 0


def _locate(value: float, low: float, high: float, width: int) -> int:
    share = (value - low) / (high - low) if high > low else 0.5
    return round(min(max(share, 0.0), 1.0) * (width - 1))
