"""HTML and SVG as text: elements with escaped attributes, and words in backticks as code.

>>> element("p", escape("a < b"), class_="note")
'<p class="note">a &lt; b</p>'
>>> render_paragraphs("Read `miou` first.")
'<p>Read <code>miou</code> first.</p>'
"""

from __future__ import annotations

import html
import math
import re

# XML 1.0 forbids these even as references, and a label may contain them.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")

# Words in backticks.
CODE = re.compile(r"`([^`]+)`")


def escape(text: object) -> str:
    """Text that is safe as content and inside double quotes, in HTML and in XML."""
    return html.escape(_FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", str(text)), quote=True)


def element(name: str, *content: str, **attributes: object) -> str:
    """An element; `content` is markup already, attributes are escaped here.

    Underscores in attribute names become hyphens and a last one is dropped (`class_`). None leaves an attribute
    out, True writes it empty, and floats have two decimals.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_format_attribute(value)}"'
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    return f"<{name}{written}>{''.join(content)}</{name}>"


def render_paragraphs(text: str) -> str:
    """Text as paragraphs (separated by empty lines), with words in backticks as code."""
    paragraphs = [part.strip() for part in re.split(r"\n\s*\n", text) if part.strip()]
    return "".join(f"<p>{render_inline(part)}</p>" for part in paragraphs)


def render_inline(text: str) -> str:
    """Text within a line, escaped, with words in backticks as code."""
    return CODE.sub(r"<code>\1</code>", escape(text))


def strip_backticks(text: str) -> str:
    """The text without backticks, where markup is not allowed."""
    return CODE.sub(r"\1", text)


def _format_attribute(value: object) -> str:
    if value is True:
        return ""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"expected a finite coordinate, got {value}")
        return f"{value:.2f}".rstrip("0").rstrip(".") if abs(value) >= 0.005 else "0"
    return escape(value)
