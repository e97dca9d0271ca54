from __future__ import annotations

import re

import numpy as np
import pytest
import report_samples
from drawn_charts import Axis, dots, svgs, words

from hardlook.harness.sections import ScatterChart, Spot
from hardlook.report.charts import draw_svg
from hardlook.report.charts.scatter import draw_scatter


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
    assert "marginals" not in draw_svg(report_samples.scatter(12), width=840)
    assert "marginals" in draw_svg(report_samples.scatter(20), width=360)


@pytest.mark.parametrize("width", [840.0, 360.0])
def test_spots_sit_where_the_axes_say(width):
    spots = (Spot(0.1, -3, "a"), Spot(0.45, 12.5, "b"), Spot(0.9, 4, "c"))
    (svg,) = svgs(draw_scatter(ScatterChart("t", "c", spots, "x", "y"), "k", width))
    x, y = Axis(svg, "x-axis"), Axis(svg, "y-axis")
    places = {title.split(":")[0]: (x.value(cx), y.value(cy)) for cx, cy, title in dots(svg)}
    for spot in spots:
        assert places[spot.label] == pytest.approx((spot.x, spot.y), abs=0.03)


def test_the_diagonal_runs_through_equal_values():
    (svg,) = svgs(draw_scatter(report_samples.scatter(), "k", 840))
    x, y = Axis(svg, "x-axis"), Axis(svg, "y-axis")
    line = next(line for line in svg.findall("line") if line.get("stroke-dasharray"))
    for end in "12":
        assert x.value(float(line.get(f"x{end}"))) == pytest.approx(y.value(float(line.get(f"y{end}"))), abs=5e-3)
    assert "0 of 12 lie above the diagonal" in words(svg)


def test_groups_are_named_with_their_colour():
    (svg,) = svgs(draw_scatter(report_samples.scatter(), "k", 840))
    legend = svg.find(".//g[@class='legend']")
    assert [text.text for text in legend.iter("text")] == ["a", "b"]


def test_a_cloud_is_drawn_whole_in_few_bytes():
    text = draw_scatter(report_samples.scatter(3000), "k", 840)
    assert text.count("h0") == 3000 and len(text) < 80_000


def test_names_are_whole_where_there_is_room_and_cut_where_there_is_not():
    name = "SimpleClick ViT-XT (COCO+LVIS)"
    lone = ScatterChart("t", "c", (Spot(0.1, 0.1, name), Spot(0.9, 0.9, "b")), "x", "y")
    (svg,) = svgs(draw_scatter(lone, "k", 840))
    assert [text.text for text in svg.find(".//g[@class='names']").iter("text")] == [name, "b"]
    long = ScatterChart("t", "c", (Spot(0.1, 0.1, name * 3), Spot(0.9, 0.9, "b")), "x", "y")
    (svg,) = svgs(draw_scatter(long, "k", 840))
    [cut, _] = [text.text for text in svg.find(".//g[@class='names']").iter("text")]
    assert cut.endswith("…") and name.startswith(cut[:20])
