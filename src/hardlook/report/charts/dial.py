"""Dial against score: the lines of an instrument with their rank correlations, and controls that stay flat."""

from __future__ import annotations

from hardlook.contract.sections import DialChart
from hardlook.report.charts.curves import tabulate_lines
from hardlook.report.charts.numbers import Numbers
from hardlook.report.charts.palette import MUTED, category, dash
from hardlook.report.charts.svg import drawing
from hardlook.report.charts.traces import Trace, draw_traces, finite_points
from hardlook.report.numerals import counted, decimals_for, is_number, numeral

_SETTING = "dial setting"


def draw_dial(chart: DialChart, key: str, width: float) -> str:
    """The chart as SVG; controls are grey and dashed, every line ends in its name and Spearman's rho."""
    traces = []
    colours = 0
    for index, line in enumerate(chart.lines):
        note = _rho(chart, index)
        if line.name in chart.controls:
            traces.append(Trace(line, line.name, MUTED, "6 4", note))
        else:
            traces.append(Trace(line, line.name, category(colours), dash(colours), note))
            colours += 1
    plane, height = draw_traces(traces, width, _SETTING, chart.score, x_range=(0, 1))
    return drawing(key, width, height, chart.title, describe_dial(chart), plane)


def describe_dial(chart: DialChart) -> str:
    """The chart in words: each line's range and rank correlation, and which lines are controls."""
    words = [f"{counted(len(chart.lines), 'line')} of {chart.score} over the {_SETTING} from 0 to 1."]
    for index, line in enumerate(chart.lines):
        control = " (control, meant to stay flat)" if line.name in chart.controls else ""
        points = finite_points(line)
        if not points:
            words.append(f"{line.name}{control}: no defined point.")
            continue
        decimals = decimals_for(line.y)
        moved = f"from {numeral(points[0][1], decimals)} to {numeral(points[-1][1], decimals)}"
        rho = chart.spearman[index] if index < len(chart.spearman) else None
        words.append(f"{line.name}{control}: {moved}, Spearman's rho {numeral(rho, 2)}.")
    return " ".join(words)


def tabulate_dial(chart: DialChart) -> Numbers:
    """One row a point, with the rank correlation of its line."""
    table = tabulate_lines(chart.lines, _SETTING, chart.score)
    rho = {line.name: chart.spearman[index] for index, line in enumerate(chart.lines) if index < len(chart.spearman)}
    rows = [(*row, rho.get(str(row[0]))) for row in table.rows]
    return Numbers((*table.columns, "Spearman's rho"), rows, table.decimals)


def _rho(chart: DialChart, index: int) -> str:
    if chart.lines[index].name in chart.controls:
        return "control"  # the rank correlation of a flat line says nothing
    known = index < len(chart.spearman) and is_number(chart.spearman[index])
    # Greek rho, as printed in papers.
    return f"\N{GREEK SMALL LETTER RHO} = {numeral(chart.spearman[index], 2)}" if known else ""
