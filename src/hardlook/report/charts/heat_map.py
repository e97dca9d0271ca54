"""Heat maps: a matrix with its values written in the cells, coloured in steps of one ramp, or of two for both signs."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from hardlook.harness.sections import HeatMap
from hardlook.report.charts.drawing import SIZE, SMALL, label, max_text_width, svg_drawing, text_width
from hardlook.report.charts.palette import GRID, MUTED, STEPS, step_colour, step_text
from hardlook.report.formatting import format_number, is_number, keep_finite
from hardlook.report.html_tables import Cell, TableData
from hardlook.report.markup import element, escape

MAX_WRITTEN, _TITLED_CELLS = 30, 900
_LONGEST_LABEL, _LONGEST_AXES = 170.0, 420.0


@dataclass(frozen=True)
class _Layout:
    """The positions of cells: the first at (left, top), each `width` by `height`."""

    left: float
    top: float
    width: float
    height: float
    written: bool
    turned: bool
    letters: float


@dataclass(frozen=True)
class _Ramp:
    """Which step of the ramp a value takes."""

    low: float
    high: float
    diverging: bool

    def step(self, value: float) -> int:
        share = (value - self.low) / (self.high - self.low) if self.high > self.low else 1.0
        return min(max(round(share * STEPS), 0), STEPS)


def draw_heat(chart: HeatMap, key: str, width: float) -> str:
    """The map as SVG at its natural width: cells keep a readable size, and the box around it scrolls."""
    layout, ramp = _compute_layout(chart, width), _choose_ramp(chart)
    right = layout.left + layout.width * len(chart.columns)
    bottom = layout.top + layout.height * len(chart.rows)
    drawn_key, key_end = _draw_ramp_key(ramp, layout.left, bottom + 16, chart.decimals)
    named = (("rows", chart.row_axis), ("columns", chart.column_axis))
    axes = "; ".join(f"{side}: {name}" for side, name in named if name)
    overhang = _compute_overhang(chart, layout) if layout.turned else 8
    total = max(right + overhang, key_end, min(text_width(axes, SMALL) + 4, _LONGEST_AXES))
    heading = label(0, 12, axes, size=SMALL, fill=MUTED, room=total) if axes else ""
    parts = (heading, _draw_labels(chart, layout), _draw_cells(chart, layout, ramp), drawn_key)
    return svg_drawing(key, total, bottom + 46, chart.title, describe_heat(chart), *parts, fixed=True)


def describe_heat(chart: HeatMap) -> str:
    """The text alternative: its size, its highest and lowest cells, and how many are empty."""
    named = [
        (value, f"{chart.rows[row]} by {chart.columns[column]}")
        for row, values in enumerate(chart.values)
        for column, value in enumerate(values)
        if is_number(value)
    ]
    across = f" of {chart.row_axis} by {chart.column_axis}" if chart.row_axis and chart.column_axis else ""
    words = [f"A matrix{across}, {len(chart.rows)} rows by {len(chart.columns)} columns."]
    if named:
        high, low = max(named, key=lambda pair: pair[0]), min(named, key=lambda pair: pair[0])
        words.append(f"Highest: {high[1]}, {format_number(high[0], chart.decimals)}.")
        words.append(f"Lowest: {low[1]}, {format_number(low[0], chart.decimals)}.")
    empty = len(chart.rows) * len(chart.columns) - len(named)
    return " ".join([*words, f"{empty} empty." if empty else ""]).strip()


def tabulate_heat(chart: HeatMap) -> TableData:
    """The matrix itself, its row names in the first column."""
    rows: list[list[Cell]] = [[name, *values] for name, values in zip(chart.rows, chart.values, strict=True)]
    return TableData((chart.row_axis or "row", *chart.columns), rows, chart.decimals)


def _compute_layout(chart: HeatMap, page: float) -> _Layout:
    texts = [format_number(value, chart.decimals) for values in chart.values for value in values]
    needed = max_text_width(texts, SMALL) + 10
    written = len(chart.columns) <= MAX_WRITTEN and needed <= 72
    letters = SIZE if written else 10.5
    left = min(max_text_width(chart.rows, letters), _LONGEST_LABEL) + 12
    small = min(max((page - left - 8) / max(len(chart.columns), 1), 11.0), 22.0)
    width = max(needed, 30.0 if len(chart.columns) > 6 else 56.0) if written else small
    height = (26.0 if len(chart.rows) > 6 else 38.0) if written else min(small, 13.0)
    turned = max_text_width(chart.columns, letters) > width - 4
    longest = min(max_text_width(chart.columns, letters), _LONGEST_LABEL)
    # Turned labels rise by the sine of 45 degrees; where cells are small they are vertical.
    rise = (longest if width < 20 else longest * 0.72 + 6) if turned else letters
    top = rise + 12 + (18 if chart.column_axis or chart.row_axis else 0)
    return _Layout(left, top, width, height, written, turned, letters)


def _compute_overhang(chart: HeatMap, layout: _Layout) -> float:
    """How far the last turned labels reach beyond the last cell."""
    if layout.width < 20:
        return 8.0
    wide = (min(text_width(name, layout.letters), _LONGEST_LABEL) for name in reversed(chart.columns))
    return max(0.0, *(one * 0.72 - (place + 0.5) * layout.width for place, one in enumerate(wide))) + 10


def _choose_ramp(chart: HeatMap) -> _Ramp:
    numbers = keep_finite(value for values in chart.values for value in values)
    low, high = (min(numbers), max(numbers)) if numbers else (0.0, 1.0)
    if low < 0 < high:
        furthest = max(-low, high)
        return _Ramp(-furthest, furthest, diverging=True)
    # Starting at zero keeps a small value pale, unless all the values are far from it.
    return _Ramp(0.0 if 0 <= low <= high / 2 or 0 <= low == high else low, high, diverging=False)


def _draw_labels(chart: HeatMap, layout: _Layout) -> str:
    parts = []
    for row, name in enumerate(chart.rows):
        y = layout.top + (row + 0.5) * layout.height + layout.letters * 0.35
        parts.append(label(layout.left - 7, y, name, size=layout.letters, anchor="end", room=_LONGEST_LABEL))
    for column, name in enumerate(chart.columns):
        x, y = layout.left + (column + 0.5) * layout.width, layout.top - 7
        angle = (-90 if layout.width < 20 else -45) if layout.turned else 0
        x += layout.letters * 0.35 if angle == -90 else 0
        turn = f"rotate({angle} {x:.2f} {y:.2f})" if angle else None
        anchor = "start" if layout.turned else "middle"
        parts.append(label(x, y, name, size=layout.letters, anchor=anchor, room=_LONGEST_LABEL, transform=turn))
    return "".join(parts)


def _draw_cells(chart: HeatMap, layout: _Layout, ramp: _Ramp) -> str:
    """Rectangles with titles; large maps draw one path per step, which is a tenth of the bytes."""
    paths: dict[int, list[str]] = defaultdict(list)
    parts = []
    few = len(chart.rows) * len(chart.columns) <= _TITLED_CELLS
    gap = 1.5 if layout.written else 0.5
    width, height = layout.width - gap, layout.height - gap
    for row, values in enumerate(chart.values):
        for column, value in enumerate(values):
            x, y = layout.left + column * layout.width, layout.top + row * layout.height
            if not is_number(value):
                if few:
                    parts.append(element("rect", x=x, y=y, width=width, height=height, fill="none", stroke=GRID))
                continue
            step = ramp.step(value)
            if not few:
                paths[step].append(f"M{x:.1f} {y:.1f}h{width:g}v{height:g}h-{width:g}z")
                continue
            text = format_number(value, chart.decimals)
            title = element("title", escape(f"{chart.rows[row]} by {chart.columns[column]}: {text}"))
            fill = step_colour(step, diverging=ramp.diverging)
            parts.append(element("rect", title, x=x, y=y, width=width, height=height, fill=fill))
            if layout.written:
                colour = step_text(step, diverging=ramp.diverging)
                middle = y + height / 2 + 4
                parts.append(label(x + width / 2, middle, text, size=SMALL, anchor="middle", fill=colour))
    steps = ((step_colour(step, diverging=ramp.diverging), "".join(pieces)) for step, pieces in sorted(paths.items()))
    return element("g", *parts, *(element("path", d=path, fill=fill) for fill, path in steps), class_="cells")


def _draw_ramp_key(ramp: _Ramp, x: float, y: float, decimals: int) -> tuple[str, float]:
    """The ramp from its lowest to its highest value, and where it ends."""
    low, high = format_number(ramp.low, decimals), format_number(ramp.high, decimals)
    start = x + text_width(low, SMALL) + 6
    colours = (step_colour(step, diverging=ramp.diverging) for step in range(STEPS + 1))
    boxes = "".join(
        element("rect", x=start + step * 8, y=y, width=8.0, height=10.0, fill=colour)
        for step, colour in enumerate(colours)
    )
    after = start + (STEPS + 1) * 8 + 6
    texts = label(x, y + 9, low, size=SMALL, fill=MUTED) + label(after, y + 9, high, size=SMALL, fill=MUTED)
    return element("g", boxes, texts, class_="ramp"), after + text_width(high, SMALL) + 4
