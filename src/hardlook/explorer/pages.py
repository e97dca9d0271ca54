"""Pages from templates, every value escaped; the stylesheet and the script that they share."""

from __future__ import annotations

from functools import lru_cache

from hardlook.report.charts.palette import stylesheet
from hardlook.serving.templates import environment_of, text_file


def render(template: str, **values: object) -> str:
    """A page; texts are escaped, `Markup` is not.

    >>> "&lt;script&gt;" in render("refused.html", title="No", message="<script>")
    True
    """
    return environment_of("hardlook.explorer").get_template(template).render(**values)


@lru_cache(maxsize=1)
def style() -> str:
    """The reports' look, and what the explorer adds to it."""
    return (
        stylesheet() + text_file("hardlook.report", "style.css") + text_file("hardlook.explorer", "static/explorer.css")
    )


@lru_cache(maxsize=1)
def script() -> str:
    """The comforts: copying, moving by keys. Every page works without them."""
    return text_file("hardlook.explorer", "static/explorer.js")
