from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import pytest

from hardlook.errors import OptionError
from hardlook.report.charts import draw_svg, palette
from hardlook.report.charts.standalone import standalone_svg

from .. import samples

CHARTS = [samples.dots(), samples.curves(), samples.dial(), samples.heat(), samples.scatter(30), samples.slopes()]
CHARTS += [samples.distribution(), samples.degenerate()["signed cells"]]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: type(chart).__name__)
def test_a_file_of_its_own_needs_no_stylesheet(chart, dark):
    text = standalone_svg(chart, width=120, dark=dark)
    root = ElementTree.fromstring(text.encode())
    assert root.tag == f"{SVG}svg"
    assert "var(" not in text and "system-ui" not in text and "Source Sans" in root.get("font-family")
    colours = set(re.findall(r'(?:fill|stroke)="(#[0-9a-f]+)"', text))
    page, other = palette.pages()[dark], palette.pages()[not dark]
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
    chart = samples.dots()
    for settings, painted in (({}, None), ({"dark": True}, "#14171b"), ({"filled": True}, "#ffffff")):
        root = ElementTree.fromstring(standalone_svg(chart, **settings).encode())
        first = root[0]
        assert (first.get("fill") if first.tag == f"{SVG}rect" else None) == painted


def test_the_words_stay_and_nothing_else_changes():
    chart = samples.heat()
    root = ElementTree.fromstring(standalone_svg(chart, width=200).encode())
    page = ElementTree.fromstring(draw_svg(chart, width=200 / 25.4 * 96))
    assert root.findtext(f"{SVG}desc") == page.findtext("desc")
    assert len(list(root.iter())) == len(list(page.iter()))


def test_a_chart_without_values_is_empty_and_odd_widths_are_refused():
    assert standalone_svg(samples.degenerate()["no dots"]) == ""
    for width in (0, -3, 5000, float("nan")):
        with pytest.raises(OptionError, match="mm"):
            standalone_svg(samples.dots(), width=width)
