"""Markup as text: elements with escaped attributes, and the one bit of markup that captions know.

>>> element("p", escape("a < b"), class_="note")
'<p class="note">a &lt; b</p>'
>>> prose("Read `miou` first.")
'<p>Read <code>miou</code> first.</p>'
"""

from __future__ import annotations

import html
import math
import re

# XML 1.0 forbids these even as references, and a label from a broken file may hold them.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_CODE = re.compile(r"`([^`]+)`")


def escape(text: object) -> str:
    """Text that is safe as content and inside double quotes, in HTML and in XML alike."""
    return html.escape(_FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", str(text)), quote=True)


def element(name: str, *content: str, **attributes: object) -> str:
    """An element; `content` is markup already, attributes are escaped here.

    Underscores in attribute names become hyphens and a last one is dropped (`class_`). None leaves an attribute
    out, True writes it empty, and floats keep two decimals, which is below what a screen can show.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_attribute(value)}"'
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    return f"<{name}{written}>{''.join(content)}</{name}>"


def prose(text: str) -> str:
    """Plain sentences as paragraphs (parted by empty lines), with back-ticked words as code."""
    paragraphs = [part.strip() for part in re.split(r"\n\s*\n", text) if part.strip()]
    return "".join(f"<p>{inline(part)}</p>" for part in paragraphs)


def inline(text: str) -> str:
    """One run of text, escaped, with back-ticked words as code."""
    return _CODE.sub(r"<code>\1</code>", escape(text))


def plain(text: str) -> str:
    """The text without its back-ticks, for places that hold no markup."""
    return _CODE.sub(r"\1", text)


def _attribute(value: object) -> str:
    if value is True:
        return ""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"expected a finite coordinate, got {value}")
        return f"{value:.2f}".rstrip("0").rstrip(".") if abs(value) >= 0.005 else "0"
    return escape(value)
