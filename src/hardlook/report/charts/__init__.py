"""Charts in one visual language, as inline SVG with a text alternative and the numbers behind them."""

from hardlook.report.charts.figure import draw, draw_svg

__all__ = ["draw", "draw_svg"]
