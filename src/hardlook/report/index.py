"""A landing page that links several reports, each with a sentence, its headline scores and a small drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from hardlook.contract.scorecard import Score
from hardlook.contract.sections import DotChart, Section
from hardlook.errors import OptionError
from hardlook.report.cards import interval_text, score_decimals
from hardlook.report.charts import draw_svg
from hardlook.report.markup import inline, plain, prose
from hardlook.report.numerals import numeral
from hardlook.report.templates import fill

_ROWS_AT_A_GLANCE = 12


@dataclass(frozen=True)
class IndexEntry:
    """One report: `href` is relative or http(s); `thumbnail` is SVG made by `charts.draw_svg`, trusted as it is."""

    title: str
    sentence: str
    href: str
    scores: Sequence[Score] = ()
    thumbnail: str = ""


def render_index(entries: Sequence[IndexEntry], *, title: str = "Evaluation reports", text: str = "") -> str:
    """The landing page as HTML, in the order of the entries.

    >>> 'href="toss/report.html"' in render_index([IndexEntry("TOSS", "One sentence.", "toss/report.html")])
    True
    """
    from markupsafe import Markup

    return fill(
        "index_template.html",
        title=plain(title),
        text=Markup(prose(text)),
        entries=[
            {
                "title": plain(entry.title),
                "sentence": Markup(inline(entry.sentence)),
                "href": _checked(entry.href),
                "scores": [_score(score) for score in entry.scores],
                "thumbnail": Markup(entry.thumbnail),
            }
            for entry in entries
        ],
    )


def glance(sections: Sequence[Section], *, key: str) -> str:
    """The first dot chart that is small enough to be read at a glance, as a drawing; empty where there is none."""
    for section in sections:
        for block in section.blocks:
            if isinstance(block, DotChart) and 1 < len(block.rows) <= _ROWS_AT_A_GLANCE:
                return draw_svg(block, key=key)
    return ""


def _score(score: Score) -> dict[str, str]:
    bounds = interval_text(score)
    shown = f"{bounds}, n = {numeral(score.n, 0)}" if bounds else f"n = {numeral(score.n, 0)}"
    return {"name": score.name, "value": numeral(score.value, score_decimals(score)), "interval": shown}


def _checked(href: str) -> str:
    """The link, unless it would run as a script."""
    if urlsplit(href.strip()).scheme.lower() not in ("", "http", "https"):
        raise OptionError(f"expected a relative or http(s) link, got {href!r}", remedy="link the report's file")
    return href
