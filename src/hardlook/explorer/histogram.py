"""The spread of a quality as a drawing: bars from counts, so that a million values cost no more than ten."""

from __future__ import annotations

from hardlook.explorer.record_table import Spread
from hardlook.report.charts.palette import ACCENT, INK, RULE
from hardlook.report.charts.scales import LinearScale, fit
from hardlook.report.charts.svg import drawing, segment, x_axis
from hardlook.report.markup import element
from hardlook.report.numerals import counted, decimals_for, numeral

_TALL = 110.0


def draw_histogram(spread: Spread, mean: float | None, title: str, *, key: str, width: float) -> str:
    """The drawing as SVG, with the mean as a line and everything in words; nothing where there is no value."""
    if not spread.counts.sum():
        return ""
    low, high = float(spread.edges[0]), float(spread.edges[-1])
    # The middle keeps whole ends, as 0 and 1, from being taken for counts.
    round_scale = fit([low, (low + high) / 2, high], start=16, stop=width - 16, ticks=8 if width > 500 else 4)
    ticks = tuple(tick for tick in round_scale.ticks if low <= tick <= high)
    scale = LinearScale(low, high, 16, width - 16, ticks)
    base, most = _TALL + 12, spread.counts.max()
    wide = (scale.stop - scale.start) / len(spread.counts)
    bars = "".join(
        f"M{scale.start + place * wide + 0.5:.1f} {base:.1f}v-{max(count / most * _TALL, 1):.1f}"
        f"h{wide - 1:.1f}V{base:.1f}z"
        for place, count in enumerate(spread.counts.tolist())
        if count
    )
    parts = [x_axis(scale, 6, base, title), element("path", d=bars, fill=ACCENT, fill_opacity=0.55)]
    parts.append(segment(scale.start, base, scale.stop, base, RULE))
    if mean is not None:
        parts.append(segment(scale.at(mean), base + 4, scale.at(mean), 6, INK, 1.6))
    return drawing(key, width, base + 46, f"Spread of {title}", in_words(spread, mean, title), *parts)


def in_words(spread: Spread, mean: float | None, title: str) -> str:
    """The drawing in words: how many values, their mean, and where most of them lie.

    >>> import numpy as np
    >>> in_words(Spread(np.array([0.0, 0.5, 1.0]), np.array([1, 3]), 2), 0.6, "IoU")
    'IoU of 4 records, mean 0.600; the fullest of 2 bins, 0.500 to 1.000, holds 3. 2 records have no value.'
    """
    edges, decimals = spread.edges.tolist(), decimals_for(spread.edges.tolist())
    fullest = int(spread.counts.argmax())
    said = f", mean {numeral(mean, decimals)}" if mean is not None else ""
    missing = f" {counted(spread.missing, 'record has', 'records have')} no value." if spread.missing else ""
    return (
        f"{title} of {counted(int(spread.counts.sum()), 'record')}{said}; the fullest of {len(spread.counts)} bins, "
        f"{numeral(edges[fullest], decimals)} to {numeral(edges[fullest + 1], decimals)}, holds "
        f"{numeral(int(spread.counts[fullest]), 0)}.{missing}"
    )
