"""A chart as a file for papers and slides: SVG of a size in millimetres, and PDF or PNG through the extra `figures`.

On a page colours are CSS variables and follow its light or dark scheme; in a file they are written out. For PDF and PNG
typst embeds the font, so that text stays text.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any, Literal

from hardlook.errors import HardlookError, OptionError
from hardlook.extras import require
from hardlook.harness.sections import Chart, HeatMap
from hardlook.report.charts.drawing import FONT
from hardlook.report.charts.figure import draw_svg
from hardlook.report.charts.palette import list_colours

PAPER_FONT = "'Source Sans 3','Source Sans Pro','Helvetica Neue',Helvetica,Arial,sans-serif"
NARROWEST, WIDEST = 40.0, 1000.0
_PIXELS_PER_MM = 96 / 25.4

# Below this, labels would be cut to nothing: the drawing is made at this width and shrunk instead.
_MIN_PIXELS = 320.0
_VARIABLE = re.compile(r"var\(--([a-z0-9]+)(?:,[^)]*)?\)")
_SIZE = re.compile(r'viewBox="0 0 (\d+) (\d+)" width="\d+" height="\d+"')

_DOCUMENT = """\
#set document(title: sys.inputs.title)
#set page(width: auto, height: auto, margin: 0pt, fill: none)
#image("figure.svg", alt: sys.inputs.words)
"""


def standalone_svg(chart: Chart, *, width: float = 165.0, dark: bool = False, filled: bool = False) -> str:
    """The chart as an SVG document, `width` millimetres wide; text has 9 points at full size.

    A heat map is as wide as its cells need, and at most `width`. `filled` paints the page's colour behind the
    drawing, as dark ones always have it. Empty where there is nothing to draw.

    >>> from hardlook.harness.sections import Dot, DotChart
    >>> text = standalone_svg(DotChart("IoU", "", (Dot("cat", 0.8),)), width=85)
    >>> 'width="85mm"' in text, "var(" in text
    (True, False)
    """
    if not NARROWEST <= width <= WIDEST:
        raise OptionError(f"expected a width of {NARROWEST:g} to {WIDEST:g} mm, got {width:g}", remedy="85 is a column")
    drawn = draw_svg(chart, key="figure", width=max(width * _PIXELS_PER_MM, _MIN_PIXELS))
    if not drawn:
        return ""
    known = list_colours(dark=dark)
    text = _VARIABLE.sub(lambda match: known[match[1]], drawn).replace(FONT.replace("'", "&#x27;"), PAPER_FONT)
    match = _SIZE.search(text)
    assert match is not None
    wide, tall = int(match[1]), int(match[2])
    factor = min(width / wide, 1 / _PIXELS_PER_MM) if isinstance(chart, HeatMap) else width / wide
    size = f'viewBox="0 0 {wide} {tall}" width="{wide * factor:g}mm" height="{tall * factor:g}mm"'
    text = text.replace(match[0], f'xmlns="http://www.w3.org/2000/svg" {size}', 1)
    if dark or filled:
        head, tail = text.split(">", 1)
        text = f'{head}><rect width="{wide}" height="{tall}" fill="{known["page"]}"/>{tail}'
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def compile_figure(
    svg: str, form: Literal["pdf", "png"], *, title: str = "", words: str = "", ppi: float = 300.0
) -> bytes:
    """Convert an SVG drawing; `words` are the text alternative of a PDF, `ppi` the pixels per inch of a PNG."""
    typst = require("typst", extra="figures")
    font = require("font_source_sans_pro", extra="figures")
    with tempfile.TemporaryDirectory() as folder:
        main = Path(folder) / "main.typ"
        main.write_text(_DOCUMENT, encoding="utf-8")
        (Path(folder) / "figure.svg").write_text(svg, encoding="utf-8")
        settings: dict[str, Any] = {"font_paths": [str(font.font_directory)]} | ({"ppi": ppi} if form == "png" else {})
        inputs = {"title": title, "words": words}
        try:
            made: bytes = typst.compile(str(main), root=folder, format=form, sys_inputs=inputs, **settings)
        except RuntimeError as error:
            raise HardlookError(
                f"typst could not set the figure: {error}", remedy="--format svg needs no typst"
            ) from None
    return made
