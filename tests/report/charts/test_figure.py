from __future__ import annotations

import re

import pytest

from hardlook.contract.sections import (
    CurveChart,
    DialChart,
    DistributionChart,
    Dot,
    DotChart,
    Gallery,
    HeatMap,
    Line,
    ScatterChart,
    Spot,
    Table,
)
from hardlook.report.charts import draw, draw_svg

from .. import samples
from ..drawn import Outline, svgs

H = samples.HOSTILE
LINE = Line(H, [0, 1], [0.1, 0.9])
HOSTILE_BLOCKS = [
    DotChart(H, H, (Dot(H, 0.5, 0.4, 0.6, H),), H, ((H, 0.2),)),
    CurveChart(H, H, (LINE,), H, H),
    DialChart(H, H, (LINE,), H, (0.5,), (H,)),
    HeatMap(H, H, (H,), (H,), ((0.5,),), H, H),
    ScatterChart(H, H, (Spot(0.1, 0.2, H, H),), H, H, True),
    DistributionChart(H, H, ((H, (0.1, 0.2)),), H),
    Table(H, H, (H, "n"), ((H, 1),)),
]


def kind(block):
    return type(block).__name__


@pytest.mark.parametrize("block", samples.blocks(), ids=kind)
def test_a_chart_is_a_figure_with_text_alternative_and_numbers(block):
    fragment = draw(block, key="k")
    outline = Outline(fragment)
    assert outline.elements[0][0] == "figure" and outline.all("figcaption")
    ids = [attributes["id"] for _, attributes in outline.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for svg in svgs(fragment):
        assert svg.get("role") == "img"
        titled, worded = svg.get("aria-labelledby").split()
        assert svg.find(f"title[@id='{titled}']").text == block.title
        assert re.search(r"\d", svg.find(f"desc[@id='{worded}']").text)
        assert svg.get("viewBox")
    assert outline.all("table")
    if kind(block) != "Table":
        assert outline.all("details") and "the numbers" in outline.texts


@pytest.mark.parametrize("name", samples.degenerate())
def test_degenerate_blocks_are_drawn_or_say_that_there_is_nothing(name):
    block = samples.degenerate()[name]
    fragment = draw(block)
    outline = Outline(fragment)
    for svg in svgs(fragment):
        numbers = re.findall(r'"(-?nan|-?inf)"', fragment)
        assert svg.find("desc").text and not numbers
    if not svgs(fragment) and not outline.all("table"):
        assert "nothing" in " ".join(outline.texts)


@pytest.mark.parametrize("name", [name for name in samples.degenerate() if name.startswith(("no ", "only", "empty c"))])
def test_what_cannot_be_drawn_is_said_in_a_sentence(name):
    fragment = draw(samples.degenerate()[name])
    assert "There is nothing" in fragment and "<svg" not in fragment


@pytest.mark.parametrize("block", HOSTILE_BLOCKS, ids=kind)
def test_labels_cannot_inject_anything(block):
    fragment = draw(block)
    outline = Outline(fragment)
    assert not outline.all("script")
    for _, attributes in outline.elements:
        assert not any(name.startswith("on") for name in attributes)
    assert "alert(" in " ".join(outline.texts)
    svgs(fragment)


@pytest.mark.parametrize("block", samples.blocks(), ids=kind)
def test_the_same_block_gives_the_same_bytes(block):
    assert draw(block) == draw(block)


def test_a_gallery_is_refused_with_a_pointer():
    with pytest.raises(TypeError, match="draw_gallery"):
        draw(Gallery("t", "c", ()))


def test_a_drawing_alone_is_one_svg_or_nothing():
    assert len(svgs(draw_svg(samples.dots()))) == 1
    assert draw_svg(DotChart("t", "c", ())) == ""


def test_many_numbers_are_cut_with_a_count():
    fragment = draw(samples.scatter(1500))
    assert "The first 1000 rows; 500 more rows not shown." in fragment
