"""Reads drawings back: trees of SVG, and values from places by the tick labels, without the code's own scales."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

VOID = {"meta", "link", "img", "input", "br", "hr"}


class Outline(HTMLParser):
    """The elements of a page in order; an assertion fails where tags do not close in the order they opened."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open, f"never closed: {self._open}"

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self._open and self._open[-1] == tag, f"</{tag}> closes {self._open[-1:]}"
        self._open.pop()

    def handle_data(self, data):
        self.texts.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def svgs(fragment: str) -> list[ElementTree.Element]:
    """Every SVG of a fragment, parsed as XML."""
    return [ElementTree.fromstring(text) for text in re.findall(r"<svg.*?</svg>", fragment, flags=re.DOTALL)]


def number(text: str) -> float:
    return float(text.replace("\N{MINUS SIGN}", "-").replace(",", ""))


class Axis:
    """The values of an axis by its tick labels: a straight line through the first and the last."""

    def __init__(self, svg: ElementTree.Element, name: str) -> None:
        coordinate = {"x-axis": "x", "y-axis": "y"}[name]
        texts = svg.findall(f".//g[@class='{name}']/g[@class='tick']/text")
        # The labels of a vertical axis hang a little lower than their lines, all by the same amount.
        shift = 4.0 if name == "y-axis" else 0.0
        self.ticks = [(float(text.get(coordinate)) - shift, number(text.text)) for text in texts]

    def value(self, place: float) -> float:
        (start, low), (stop, high) = self.ticks[0], self.ticks[-1]
        return low + (place - start) / (stop - start) * (high - low)


def dots(svg: ElementTree.Element) -> list[tuple[float, float, str]]:
    """Every circle as (cx, cy, title)."""
    circles = svg.iter("circle")
    return [(float(c.get("cx")), float(c.get("cy")), c.findtext("title") or "") for c in circles]


def path_points(d: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", d)]


def words(svg: ElementTree.Element) -> str:
    return svg.findtext("desc") or ""
