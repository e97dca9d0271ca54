"""A chart as a file of its own, for papers and slides: a size in millimetres, and colours written out.

On a page colours are CSS variables and follow its light or dark; programs that place an SVG know no variables.
"""

from __future__ import annotations

import re

from hardlook.contract.sections import Chart, HeatMap
from hardlook.errors import OptionError
from hardlook.report.charts.figure import draw_svg
from hardlook.report.charts.palette import colours
from hardlook.report.charts.svg import FONT

PAPER_FONT = "'Source Sans 3','Source Sans Pro','Helvetica Neue',Helvetica,Arial,sans-serif"
NARROWEST, WIDEST = 40.0, 1000.0
_PIXELS_A_MM = 96 / 25.4
# Below this, labels would be cut to nothing: the drawing is made at this width and shrunk instead.
_LEAST_PIXELS = 320.0
_VARIABLE = re.compile(r"var\(--([a-z0-9]+)(?:,[^)]*)?\)")
_SIZE = re.compile(r'viewBox="0 0 (\d+) (\d+)" width="\d+" height="\d+"')


def standalone_svg(chart: Chart, *, width: float = 165.0, dark: bool = False, filled: bool = False) -> str:
    """The chart as an SVG document, `width` millimetres wide; text is 9 points high where it is drawn at full size.

    A heat map is as wide as its cells need, and at most `width`. `filled` paints the page's colour behind the
    drawing, which dark ones always have. Empty where there is nothing to draw.

    >>> from hardlook.contract.sections import Dot, DotChart
    >>> text = standalone_svg(DotChart("IoU", "", (Dot("cat", 0.8),)), width=85)
    >>> 'width="85mm"' in text, "var(" in text
    (True, False)
    """
    if not NARROWEST <= width <= WIDEST:
        raise OptionError(f"expected a width of {NARROWEST:g} to {WIDEST:g} mm, got {width:g}", remedy="85 is a column")
    drawn = draw_svg(chart, key="figure", width=max(width * _PIXELS_A_MM, _LEAST_PIXELS))
    if not drawn:
        return ""
    known = colours(dark=dark)
    text = _VARIABLE.sub(lambda match: known[match[1]], drawn).replace(FONT.replace("'", "&#x27;"), PAPER_FONT)
    match = _SIZE.search(text)
    assert match is not None
    wide, tall = int(match[1]), int(match[2])
    factor = min(width / wide, 1 / _PIXELS_A_MM) if isinstance(chart, HeatMap) else width / wide
    size = f'viewBox="0 0 {wide} {tall}" width="{wide * factor:g}mm" height="{tall * factor:g}mm"'
    text = text.replace(match[0], f'xmlns="http://www.w3.org/2000/svg" {size}', 1)
    if dark or filled:
        head, tail = text.split(">", 1)
        text = f'{head}><rect width="{wide}" height="{tall}" fill="{known["page"]}"/>{tail}'
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'
