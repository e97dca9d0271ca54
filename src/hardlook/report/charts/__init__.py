"""Charts in one visual language, as inline SVG with a text alternative and the numbers behind them."""

from __future__ import annotations

from hardlook.report.charts.figure import describe, draw, draw_svg, tabulate

__all__ = ["describe", "draw", "draw_svg", "tabulate"]
