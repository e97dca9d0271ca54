"""Distributions: one histogram per group on a shared axis, each scaled to its own fullest bin."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hardlook.harness.sections import DistributionChart
from hardlook.report.charts import drawing as svg
from hardlook.report.charts.palette import ACCENT, INK, MUTED, RULE
from hardlook.report.formatting import choose_decimals, format_count, format_number, keep_finite
from hardlook.report.html_tables import TableData
from hardlook.report.markup import element, escape

Floats = NDArray[np.float64]


def draw_distribution(chart: DistributionChart, key: str, width: float) -> str:
    """The chart as SVG: names and counts beside the histograms, or above them where it is narrow."""
    beside = width > 600
    values = [_finite_array(group) for _, group in chart.groups]
    everything = np.concatenate(values) if values else np.zeros(0)
    decimals = _choose_decimals(chart)
    means = [f", mean {format_number(float(group.mean()), decimals)}" if len(group) else "" for group in values]
    notes = [f"n = {len(group)}{mean}" for group, mean in zip(values, means, strict=True)]
    widest = max(svg.max_text_width([name for name, _ in chart.groups], svg.SIZE), svg.max_text_width(notes, svg.SMALL))
    room = min(widest + 18, width * 0.34) if beside else 0.0
    scale = svg.fit_scale(everything.tolist(), start=room + 10, stop=width - 16, ticks=8 if beside else 4)
    row_height = 58.0 if len(values) <= 12 else 40.0
    parts, y = [], 8.0
    for (name, _), group, note in zip(chart.groups, values, notes, strict=True):
        head = 0.0 if beside else 20.0
        base = y + head + row_height - 10
        if beside:
            parts.append(svg.label(0, base - 16, name, room=room - 10))
            parts.append(svg.label(0, base, note, size=svg.SMALL, fill=MUTED, room=room - 10))
        else:
            parts.append(svg.label(0, y + 14, name, room=width - svg.max_text_width([note], svg.SMALL) - 14))
            parts.append(svg.label(width, y + 14, note, size=svg.SMALL, fill=MUTED, anchor="end"))
        parts.append(_draw_histogram(group, scale, base, row_height - 16, name))
        y += head + row_height
    axis = svg.x_axis(scale, 4, y, chart.axis)
    height = y + (46 if chart.axis else 24)
    return svg.svg_drawing(key, width, height, chart.title, describe_distribution(chart), axis, *parts)


def describe_distribution(chart: DistributionChart) -> str:
    """The text alternative: each group's count, mean, and first to third quartile."""
    decimals = _choose_decimals(chart)
    words = [f"{format_count(len(chart.groups), 'distribution')} of {chart.axis}."]
    for name, group in chart.groups:
        values = _finite_array(group)
        if not len(values):
            words.append(f"{name}: no value.")
            continue
        first, third = np.quantile(values, (0.25, 0.75))
        words.append(
            f"{name}: {format_count(len(values), 'value')}, mean {format_number(float(values.mean()), decimals)}, "
            f"middle half {format_number(float(first), decimals)} to {format_number(float(third), decimals)}."
        )
    return " ".join(words)


def tabulate_distribution(chart: DistributionChart) -> TableData:
    """Counts, means and quartiles per group; the values themselves are in the run's records."""
    rows: list[tuple[str | float | int | None, ...]] = []
    for name, group in chart.groups:
        values = _finite_array(group)
        undefined = len(group) - len(values)
        if len(values):
            spread = float(values.std(ddof=1)) if len(values) > 1 else None
            quantiles = np.quantile(values, (0, 0.25, 0.5, 0.75, 1)).tolist()
            rows.append((name, len(values), undefined, float(values.mean()), spread, *quantiles))
        else:
            rows.append((name, 0, undefined, *[None] * 7))
    quartiles = ("lowest", "first quarter", "median", "third quarter", "highest")
    return TableData(("group", "n", "undefined", "mean", "std", *quartiles), rows, _choose_decimals(chart))


def _draw_histogram(values: Floats, scale: svg.LinearScale, base: float, height: float, name: str) -> str:
    line = svg.segment(scale.start, base, scale.stop, base, RULE)
    if not len(values):
        return line + svg.label(scale.start + 4, base - 6, "no value", size=svg.SMALL, fill=MUTED)
    counts, _ = np.histogram(values, np.linspace(scale.low, scale.high, 41))
    bars = svg.histogram_path(counts.tolist(), scale, base, height)
    mean = scale.at(float(values.mean()))
    shape = element("path", element("title", escape(name)), d=bars, fill=ACCENT, fill_opacity=0.55)
    at_mean = element("g", svg.segment(mean, base + 4, mean, base - height - 3, INK, 1.6), class_="mean")
    return element("g", shape, line, at_mean)


def _finite_array(group: Sequence[float]) -> Floats:
    return np.asarray(keep_finite(group), dtype=np.float64)


def _choose_decimals(chart: DistributionChart) -> int:
    return choose_decimals([value for _, group in chart.groups for value in group])
