"""SVG drawings as PDF and PNG, through the extra `figures`: typst embeds the font, so that text stays text."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Literal

from hardlook.errors import HardlookError
from hardlook.extras import require

_DOCUMENT = """\
#set document(title: sys.inputs.title)
#set page(width: auto, height: auto, margin: 0pt, fill: none)
#image("figure.svg", alt: sys.inputs.words)
"""


def typeset(svg: str, form: Literal["pdf", "png"], *, title: str = "", words: str = "", ppi: float = 300.0) -> bytes:
    """The drawing as a document of one page that fits it; `words` are its text alternative in a PDF.

    `ppi` is the resolution of a PNG, in pixels an inch.
    """
    typst = require("typst", extra="figures")
    font = require("font_source_sans_pro", extra="figures")
    with tempfile.TemporaryDirectory() as folder:
        main = Path(folder) / "main.typ"
        main.write_text(_DOCUMENT, encoding="utf-8")
        (Path(folder) / "figure.svg").write_text(svg, encoding="utf-8")
        settings = {"ppi": ppi} if form == "png" else {}
        try:
            made: bytes = typst.compile(
                str(main),
                root=folder,
                format=form,
                font_paths=[str(font.font_directory)],
                sys_inputs={"title": title, "words": words},
                **settings,
            )
        except RuntimeError as error:
            raise HardlookError(
                f"typst could not set the figure: {error}", remedy="--format svg needs no typst"
            ) from None
    return made
