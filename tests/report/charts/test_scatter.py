from __future__ import annotations

import re

import numpy as np
import pytest
import report_samples
from drawn_charts import Axis, dots, path_points, svgs, words

from hardlook.harness.sections import ScatterChart, Spot
from hardlook.harness.stats.pareto import find_front
from hardlook.report.charts import draw_svg
from hardlook.report.charts.drawing import SMALL, fit_log_scale, text_width
from hardlook.report.charts.scatter import draw_scatter, tabulate_scatter


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


def test_a_logarithmic_axis_has_equal_ratios_equally_far_apart():
    spots = (Spot(3.0, 1, "a"), Spot(30.0, 2, "b"), Spot(300.0, 3, "c"), Spot(0.0, 2, "nowhere"))
    (svg,) = svgs(draw_scatter(ScatterChart("t", "c", spots, "ms", "y", log_x=True), "k", 840))
    places = {title.split(":")[0]: cx for cx, _, title in dots(svg)}
    assert set(places) == {"a", "b", "c"}, "0 has no logarithm"
    assert places["b"] - places["a"] == pytest.approx(places["c"] - places["b"], abs=0.2)
    ticks = dict((value, place) for place, value in Axis(svg, "x-axis").ticks)
    assert {10.0, 100.0} <= set(ticks)
    assert places["a"] < ticks[10.0] < places["b"] < ticks[100.0] < places["c"]
    assert "1 spot without a place" in words(svg)


@pytest.mark.parametrize("values", [[7.0], [1.0, 1.05], [0.02, 0.9], [1, 10], [3, 40_000_000], [999, 1001]])
def test_logarithmic_scales_hold_their_values_and_have_a_few_ticks(values):
    scale = fit_log_scale(values, start=10, stop=310)
    assert scale.low <= min(values) and max(values) <= scale.high
    assert 2 <= len(scale.ticks) <= 7 and all(scale.low <= tick <= scale.high for tick in scale.ticks)
    assert len(set(scale.tick_texts())) == len(scale.ticks)
    assert scale.at(scale.low) == 10 and scale.at(scale.high) == 310


def test_many_spots_on_a_logarithmic_axis_have_histograms_of_equal_ratios():
    spots = [Spot(10.0 ** (place / 10), place % 7, "") for place in range(41)]
    (svg,) = svgs(draw_scatter(ScatterChart("t", "c", spots, "ms", "y", log_x=True), "k", 840))
    above = svg.find(".//g[@class='marginals']/path").get("d")
    lengths = [length for _, length in bars(above, "x")]
    assert len(lengths) == 24 and max(lengths) <= 2.1 * min(lengths), "evenly spread over four powers of ten"


def front_chart(count=37):
    rng = np.random.default_rng(3)
    ms = 10 ** rng.normal(1.6, 0.4, count)
    clicks = 2 + rng.gamma(2, 1, count)
    spots = [
        Spot(float(x), float(y), f"checkpoint_{place}_itermask")
        for place, (x, y) in enumerate(zip(ms, clicks, strict=True))
    ]
    return ScatterChart("t", "c", spots, "ms", "NoC", front=tuple(find_front(ms, clicks)), log_x=True)


def test_the_front_is_joined_by_steps_and_told_in_words_and_numbers():
    spots = (Spot(10.0, 5, "fast"), Spot(20.0, 6, "beaten"), Spot(40.0, 2, "good"))
    chart = ScatterChart("t", "c", spots, "ms", "NoC", front=(0, 2))
    (svg,) = svgs(draw_scatter(chart, "k", 840))
    front, at = svg.find(".//g[@class='front']"), {t.split(":")[0]: (x, y) for x, y, t in dots(svg) if t}
    rings = [(float(ring.get("cx")), float(ring.get("cy"))) for ring in front.iter("circle")]
    assert rings == [at["fast"], at["good"]]
    corners = path_points(front.find("path").get("d"))
    expected = [at["fast"], (at["good"][0], at["fast"][1]), at["good"]]
    np.testing.assert_allclose(corners[1:4], expected, atol=0.1)
    assert "On the Pareto front: fast, good." in words(svg)
    table = tabulate_scatter(chart)
    assert table.columns[-1] == "Pareto front" and [row[-1] for row in table.rows] == ["yes", "", "yes"]
    assert tabulate_scatter(ScatterChart("t", "c", spots, "ms", "NoC")).columns == ("name", "ms", "NoC")


@pytest.mark.parametrize("width", [840.0, 360.0])
def test_no_name_covers_another_or_a_spot_and_those_on_the_front_come_first(width):
    chart = front_chart()
    (svg,) = svgs(draw_scatter(chart, "k", width))
    boxes = []
    for text in svg.find(".//g[@class='names']").iter("text"):
        x, y = float(text.get("x")), float(text.get("y"))
        boxes.append((x, y - 9, x + text_width(text.text, SMALL), y + 3))
    assert all(box[0] >= 0 and box[2] <= width for box in boxes)
    spots = [(x - 4, y - 4, x + 4, y + 4) for x, y, title in dots(svg) if title]
    for place, one in enumerate(boxes):
        for other in (*boxes[:place], *spots):
            assert one[0] >= other[2] or other[0] >= one[2] or one[1] >= other[3] or other[1] >= one[3]
    named = [text.findtext("title") or text.text for text in svg.find(".//g[@class='names']").iter("text")]
    front = [chart.spots[place].label for place in chart.front]
    assert len(front) > 3
    if width > 600:
        assert named[: len(front)] == front and len(named) >= 25
    else:
        assert named[0] == front[0] and len(named) >= 10, "a phone has no room for all"
