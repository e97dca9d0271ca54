from __future__ import annotations

import re

import numpy as np
import pytest

from hardlook.contract.sections import ScatterChart, Spot
from hardlook.report.charts import draw_svg

from .. import samples
from ..drawn import Axis, svgs


def bars(path: str, along: str) -> list[tuple[float, float]]:
    """(start, length) of each bar of a path that draws them as `M x y v h V z` or `M x y h v H z`."""
    pattern = r"M([-\d.]+) ([-\d.]+)v-([\d.]+)h" if along == "x" else r"M([-\d.]+) ([-\d.]+)h([\d.]+)v"
    found = re.findall(pattern, path)
    return [(float(x if along == "x" else y), float(length)) for x, y, length in found]


def test_bars_are_the_shares_of_numpys_histogram():
    rng = np.random.default_rng(5)
    xs, ys = rng.beta(2, 5, 300), rng.normal(3, 1, 300)
    chart = ScatterChart("t", "c", [Spot(float(a), float(b), "u") for a, b in zip(xs, ys, strict=True)], "x", "y")
    (svg,) = svgs(draw_svg(chart, width=840))
    above, beside = (path.get("d") for path in svg.findall(".//g[@class='marginals']/path"))
    for values, path, along in ((xs, above, "x"), (ys, beside, "y")):
        axis = Axis(svg, f"{along}-axis")
        low, high = axis.ticks[0][1], axis.ticks[-1][1]
        counts, _ = np.histogram(values, np.linspace(low, high, 25))
        lengths = [length for _, length in bars(path, along)]
        assert lengths == pytest.approx((counts[counts > 0] / counts.max() * max(lengths)).tolist(), abs=0.11)
        # A bar begins where its bin does, half a pixel inside.
        first = low + np.flatnonzero(counts)[0] * (high - low) / 24
        assert axis.value(bars(path, along)[0][0]) == pytest.approx(first, abs=(high - low) / 300)


def test_few_spots_have_no_histograms():
    assert "marginals" not in draw_svg(samples.scatter(12), width=840)
    assert "marginals" in draw_svg(samples.scatter(20), width=360)
