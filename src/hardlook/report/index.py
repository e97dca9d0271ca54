"""A landing page that links several reports, each with a sentence, its headline scores and a small drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from hardlook.errors import OptionError
from hardlook.harness.scorecard import Score
from hardlook.harness.sections import DotChart, Section
from hardlook.report.charts import draw_svg
from hardlook.report.charts.flat import describe_flat
from hardlook.report.formatting import format_number
from hardlook.report.markup import render_inline, render_paragraphs, strip_backticks
from hardlook.report.page import render_template
from hardlook.report.score_display import choose_score_decimals, format_score_interval

_MAX_PREVIEW_ROWS = 12
# Wide enough for names of rows and lines in full; the stylesheet gives it as much room.
PREVIEW_WIDTH = 520.0


@dataclass(frozen=True)
class IndexEntry:
    """One report: `href` is relative or http(s); `thumbnail` is SVG made by `charts.draw_svg`, trusted as it is.

    `caption` is what the report says below the same chart.
    """

    title: str
    sentence: str
    href: str
    scores: Sequence[Score] = ()
    thumbnail: str = ""
    caption: str = ""


def render_index(entries: Sequence[IndexEntry], *, title: str = "Evaluation reports", text: str = "") -> str:
    """The landing page as HTML, in the order of the entries.

    >>> 'href="toss/report.html"' in render_index([IndexEntry("TOSS", "One sentence.", "toss/report.html")])
    True
    """
    from markupsafe import Markup

    return render_template(
        "index_template.html",
        title=strip_backticks(title),
        text=Markup(render_paragraphs(text)),
        entries=[
            {
                "title": strip_backticks(entry.title),
                "sentence": Markup(render_inline(entry.sentence)),
                "href": _check_link(entry.href),
                "scores": [_prepare_score(score) for score in entry.scores],
                "thumbnail": Markup(entry.thumbnail),
                "caption": Markup(render_inline(entry.caption)),
            }
            for entry in entries
        ],
    )


def draw_preview(sections: Sequence[Section], *, key: str) -> tuple[str, str]:
    """The first dot chart of few rows whose values differ: SVG and caption; both empty where there is none."""
    for section in sections:
        for block in section.blocks:
            if isinstance(block, DotChart) and 1 < len(block.rows) <= _MAX_PREVIEW_ROWS and not describe_flat(block):
                return draw_svg(block, key=key, width=PREVIEW_WIDTH), block.caption
    return "", ""


def _prepare_score(score: Score) -> dict[str, str]:
    shown = ", ".join(filter(None, (format_score_interval(score), f"n = {format_number(score.n, 0)}")))
    return {"name": score.name, "value": format_number(score.value, choose_score_decimals(score)), "interval": shown}


def _check_link(href: str) -> str:
    """The link; an error where it would run as a script."""
    if urlsplit(href.strip()).scheme.lower() not in ("", "http", "https"):
        raise OptionError(f"expected a relative or http(s) link, got {href!r}", remedy="link the report's file")
    return href
