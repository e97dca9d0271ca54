from __future__ import annotations

import pytest

from hardlook.contract.sections import ScatterChart, Spot
from hardlook.report.charts.scatter import draw_scatter

from .. import samples
from ..drawn import Axis, dots, svgs, words


@pytest.mark.parametrize("width", [840.0, 360.0])
def test_spots_sit_where_the_axes_say(width):
    spots = (Spot(0.1, -3, "a"), Spot(0.45, 12.5, "b"), Spot(0.9, 4, "c"))
    (svg,) = svgs(draw_scatter(ScatterChart("t", "c", spots, "x", "y"), "k", width))
    x, y = Axis(svg, "x-axis"), Axis(svg, "y-axis")
    places = {title.split(":")[0]: (x.value(cx), y.value(cy)) for cx, cy, title in dots(svg)}
    for spot in spots:
        assert places[spot.label] == pytest.approx((spot.x, spot.y), abs=0.03)


def test_the_diagonal_runs_through_equal_values():
    (svg,) = svgs(draw_scatter(samples.scatter(), "k", 840))
    x, y = Axis(svg, "x-axis"), Axis(svg, "y-axis")
    line = next(line for line in svg.findall("line") if line.get("stroke-dasharray"))
    for end in "12":
        assert x.value(float(line.get(f"x{end}"))) == pytest.approx(y.value(float(line.get(f"y{end}"))), abs=5e-3)
    assert "0 of 12 lie above the diagonal" in words(svg)


def test_groups_are_named_with_their_colour():
    (svg,) = svgs(draw_scatter(samples.scatter(), "k", 840))
    legend = svg.find(".//g[@class='legend']")
    assert [text.text for text in legend.iter("text")] == ["a", "b"]


def test_a_cloud_is_drawn_whole_in_few_bytes():
    text = draw_scatter(samples.scatter(3000), "k", 840)
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
