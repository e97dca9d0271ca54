"""Pages of the dashboard from templates, every value escaped; the stylesheet and the script that they share."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import Any

from hardlook.report.charts.palette import stylesheet

_PACKAGE = "hardlook.collect.research"


def render(template: str, **values: object) -> str:
    """A page; texts are escaped, `Markup` is not.

    >>> "&lt;script&gt;" in render("refused.html", title="No", message="<script>")
    True
    """
    page: str = _environment().get_template(template).render(**values)
    return page


@lru_cache(maxsize=1)
def style() -> str:
    """The reports' look, and what the dashboard adds to it."""
    return stylesheet() + _read("hardlook.report", "style.css") + _read(_PACKAGE, "static/research.css")


@lru_cache(maxsize=1)
def script() -> str:
    """The comforts: pages that renew themselves. Every page works without them."""
    return _read(_PACKAGE, "static/research.js")


@lru_cache(maxsize=1)
def icon() -> str:
    """The small picture beside a page's title."""
    return _read(_PACKAGE, "static/icon.svg")


@lru_cache(maxsize=1)
def _environment() -> Any:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    loader = FunctionLoader(lambda name: _read(_PACKAGE, f"templates/{name}"))
    return Environment(
        autoescape=True,
        undefined=StrictUndefined,
        loader=loader,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )


def _read(package: str, name: str) -> str:
    return files(package).joinpath(name).read_text(encoding="utf-8")
