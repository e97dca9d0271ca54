from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import pytest
import report_samples
from drawn_charts import Outline, svgs

from hardlook.errors import OptionError
from hardlook.harness.sections import (
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
from hardlook.report.charts import draw, draw_svg, palette
from hardlook.report.charts.standalone import standalone_svg

H = report_samples.HOSTILE

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


@pytest.mark.parametrize("block", report_samples.blocks(), ids=kind)
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


@pytest.mark.parametrize("name", report_samples.degenerate())
def test_degenerate_blocks_are_drawn_or_say_that_there_is_nothing(name):
    block = report_samples.degenerate()[name]
    fragment = draw(block)
    outline = Outline(fragment)
    for svg in svgs(fragment):
        numbers = re.findall(r'"(-?nan|-?inf)"', fragment)
        assert svg.find("desc").text and not numbers
    if not svgs(fragment) and not outline.all("table"):
        assert "nothing" in " ".join(outline.texts)


@pytest.mark.parametrize(
    "name", [name for name in report_samples.degenerate() if name.startswith(("no ", "only", "empty c"))]
)
def test_what_cannot_be_drawn_is_said_in_a_sentence(name):
    fragment = draw(report_samples.degenerate()[name])
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


@pytest.mark.parametrize("block", report_samples.blocks(), ids=kind)
def test_the_same_block_gives_the_same_bytes(block):
    assert draw(block) == draw(block)


def test_a_gallery_is_refused_with_a_pointer():
    with pytest.raises(TypeError, match="draw_gallery"):
        draw(Gallery("t", "c", ()))


def test_a_drawing_alone_is_one_svg_or_nothing():
    assert len(svgs(draw_svg(report_samples.dots()))) == 1
    assert draw_svg(DotChart("t", "c", ())) == ""


def test_many_numbers_are_cut_with_a_count():
    fragment = draw(report_samples.scatter(1500))
    assert "The first 1000 rows; 500 more rows not shown." in fragment


CHARTS = [
    report_samples.dots(),
    report_samples.curves(),
    report_samples.dial(),
    report_samples.heat(),
    report_samples.scatter(30),
    report_samples.slopes(),
]

CHARTS += [report_samples.distribution(), report_samples.degenerate()["signed cells"]]

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: type(chart).__name__)
def test_a_file_of_its_own_needs_no_stylesheet(chart, dark):
    text = standalone_svg(chart, width=120, dark=dark)
    root = ElementTree.fromstring(text.encode())
    assert root.tag == f"{SVG}svg"
    assert "var(" not in text and "system-ui" not in text and "Source Sans" in root.get("font-family")
    colours = set(re.findall(r'(?:fill|stroke)="(#[0-9a-f]+)"', text))
    page, other = palette.list_colours(dark=dark), palette.list_colours(dark=not dark)
    assert page["muted"] in colours and other["muted"] not in colours


@pytest.mark.parametrize("width", [50, 85, 120, 180])
def test_the_size_is_in_millimetres_and_keeps_its_proportions(width):
    for chart in CHARTS:
        root = ElementTree.fromstring(standalone_svg(chart, width=width).encode())
        wide, tall = (float(root.get(name).removesuffix("mm")) for name in ("width", "height"))
        _, _, across, down = map(float, root.get("viewBox").split())
        assert wide == pytest.approx(width) or type(chart).__name__ == "HeatMap"
        assert wide <= width + 1e-9
        assert wide / tall == pytest.approx(across / down, rel=1e-4)


def test_a_page_is_painted_behind_dark_and_filled_drawings_only():
    chart = report_samples.dots()
    for settings, painted in (({}, None), ({"dark": True}, "#14171b"), ({"filled": True}, "#ffffff")):
        root = ElementTree.fromstring(standalone_svg(chart, **settings).encode())
        first = root[0]
        assert (first.get("fill") if first.tag == f"{SVG}rect" else None) == painted


def test_the_words_stay_and_nothing_else_changes():
    chart = report_samples.heat()
    root = ElementTree.fromstring(standalone_svg(chart, width=200).encode())
    page = ElementTree.fromstring(draw_svg(chart, width=200 / 25.4 * 96))
    assert root.findtext(f"{SVG}desc") == page.findtext("desc")
    assert len(list(root.iter())) == len(list(page.iter()))


def test_a_chart_without_values_is_empty_and_odd_widths_are_refused():
    assert standalone_svg(report_samples.degenerate()["no dots"]) == ""
    for width in (0, -3, 5000, float("nan")):
        with pytest.raises(OptionError, match="mm"):
            standalone_svg(report_samples.dots(), width=width)
