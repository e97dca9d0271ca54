"""Charts whose values are all equal, as one sentence: a column of equal dots shows nothing that a number does not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hardlook.harness import sections
from hardlook.report.formatting import (
    choose_decimals,
    format_count,
    format_interval,
    format_number,
    is_number,
    keep_finite,
)


def describe_flat(block: sections.Chart) -> str:
    """A sentence in place of the chart where all its values are shown as the same number; empty for other charts.

    A chart of one value is drawn, for its interval and references; so is a dial, whose flat line is a finding.

    >>> rows = [sections.Dot("cat", 1.0, 0.9, 1.0), sections.Dot("dog", 1.0, 0.8, 1.0), sections.Dot("cow", 1.0)]
    >>> describe_flat(sections.DotChart("IoU", "", rows, "IoU"))
    'All 3 values are 1.000 (IoU). The widest interval is 0.800 to 1.000, that of dog.'
    >>> describe_flat(sections.DotChart("IoU", "", [sections.Dot("cat", 1.0), sections.Dot("dog", 0.9)]))
    ''
    """
    match block:
        case sections.DotChart():
            return _describe_dots(block)
        case sections.CurveChart():
            return _describe_curves(block)
        case sections.HeatMap():
            values = [value for row in block.values for value in row]
            return _describe_values(values, "cell", missing="is empty", decimals=block.decimals)
        case sections.ScatterChart():
            return _describe_spots(block)
        case sections.SlopeChart():
            return _describe_values([value for row in block.rows for value in (row.left, row.right)], axis=block.axis)
        case sections.DistributionChart():
            return _describe_values([value for _, group in block.groups for value in group], axis=block.axis)
        case sections.DialChart():
            return ""


def _describe_values(
    values: Sequence[float], noun: str = "value", *, axis: str = "", missing: str = "is undefined", decimals: int = -1
) -> str:
    known = keep_finite(values)
    shown = _find_common_text(known, decimals)
    if not shown:
        return ""
    which = f"Both {noun}s" if len(known) == 2 else f"All {format_count(len(known), noun)}"
    left = len(values) - len(known)
    rest = f"; {left} {missing if left == 1 else missing.replace('is', 'are', 1)}" if left else ""
    return f"{which} are {shown}{f' ({axis})' if axis else ''}{rest}."


def _describe_dots(chart: sections.DotChart) -> str:
    text = _describe_values([row.value for row in chart.rows], axis=chart.axis)
    if not text:
        return ""
    text += _describe_intervals(chart.rows)
    references = [(name, value) for name, value in chart.references if is_number(value)]
    if differing := [(name, value) for name, value in references if value != chart.rows[0].value]:
        listed = ", ".join(f"{name} {format_number(value, choose_decimals([value]))}" for name, value in differing)
        text += f" For comparison: {listed}."
    return text


def _describe_intervals(rows: Sequence[sections.Dot]) -> str:
    """The interval that the rows share, or the widest one and whose it is; empty where none has any width."""
    known = [(row.low, row.high, row) for row in rows if is_number(row.low) and is_number(row.high)]
    low, high, widest = max(known, key=lambda one: one[1] - one[0], default=(0.0, 0.0, None))
    if widest is None or low == high:
        return ""
    bounds = format_interval(low, high, choose_decimals([widest.value, low, high]))
    if len(known) == len(rows) and len({one[:2] for one in known}) == 1:
        return f" The interval of each is {bounds}."
    return f" The widest interval is {bounds}, that of {', '.join(filter(None, (widest.group, widest.label)))}."


def _describe_curves(chart: sections.CurveChart) -> str:
    shown = _find_common_text(keep_finite(y for line in chart.lines for y in line.y))
    if not shown:
        return ""
    count = sum(any(map(is_number, line.y)) for line in chart.lines)
    curves = {1: "The curve stays", 2: "Both curves stay"}.get(count, f"All {count} curves stay")
    return f"{curves} at {shown}{f' ({chart.y_axis})' if chart.y_axis else ''}."


def _describe_spots(chart: sections.ScatterChart) -> str:
    known = [spot for spot in chart.spots if is_number(spot.x) and is_number(spot.y)]
    x, y = (_find_common_text(values) for values in ([spot.x for spot in known], [spot.y for spot in known]))
    if not x or not y:
        return ""
    which = "Both points" if len(known) == 2 else f"All {format_count(len(known), 'point')}"
    return f"{which} lie at {x} ({chart.x_axis}) and {y} ({chart.y_axis})."


def _find_common_text(values: Iterable[float], decimals: int = -1) -> str:
    """The number that all of at least two values are shown as; empty where they differ."""
    numbers = list(values)
    if len(numbers) < 2:
        return ""
    decimals = choose_decimals(numbers) if decimals < 0 else decimals
    texts = {format_number(number, decimals) for number in numbers}
    return texts.pop() if len(texts) == 1 else ""
