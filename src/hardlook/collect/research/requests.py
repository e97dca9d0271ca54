"""Requests to the dashboard and pages in response: checked parameters, pagination, templates and static files.

>>> parameters = Parameters([("sort", "inside"), ("page", "2")], known=("sort", "page"))
>>> parameters.choice("sort", ("participant", "inside")), parameters.whole("page", 1, 1, 100), parameters.text("sort")
('inside', 2, 'inside')
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlencode

from hardlook.collect.web.refusals import RequestRefused
from hardlook.report.charts.palette import stylesheet
from hardlook.serving import read_package_text, template_environment

Pairs = list[tuple[str, str]]

Row = TypeVar("Row")

MAX_PARAMETERS, MAX_TEXT_LENGTH = 50, 300

# Served to anybody, by media type. Every page works without the script, which reloads pages that change.
STATIC_FILES = {"style.css": "text/css", "research.js": "text/javascript", "icon.svg": "image/svg+xml"}

_PACKAGE = "hardlook.collect.research"


def parse_pairs(query: bytes) -> Pairs:
    """The parameters of an address, or the fields of a form.

    >>> parse_pairs(b"a=1&b=")
    [('a', '1'), ('b', '')]
    """
    try:
        return parse_qsl(query.decode("ascii"), keep_blank_values=True, max_num_fields=MAX_PARAMETERS, errors="replace")
    except ValueError:
        raise _bad_parameter("The address or the form cannot be read.") from None


class Parameters:
    """The parameters of one request, each at most once and each known to the page."""

    def __init__(self, pairs: Iterable[tuple[str, str]], known: Sequence[str]) -> None:
        self.values: dict[str, str] = {}
        for name, value in pairs:
            if name not in known:
                raise _bad_parameter(f"There is no parameter {shorten(name)}.")
            if name in self.values:
                raise _bad_parameter(f"The parameter {name} is given twice.")
            self.values[name] = value

    def text(self, name: str, most: int = MAX_TEXT_LENGTH) -> str:
        """A text without blanks around it, of at most `most` characters."""
        value = self.values.get(name, "").strip()
        if len(value) > most:
            raise _bad_parameter(f"The parameter {name} has {len(value)} characters; {most} are allowed.")
        return value

    def choice(self, name: str, choices: Sequence[str], default: str | None = None) -> str:
        """One of the choices; the first, or `default`, where the parameter is missing or empty."""
        value = self.values.get(name, "") or (choices[0] if default is None else default)
        if value != default and value not in choices:
            raise _bad_parameter(f"The parameter {name} is one of {', '.join(choices)}, not {shorten(value)}.")
        return value

    def whole(self, name: str, default: int, least: int, most: int) -> int:
        """A whole number from `least` to `most`."""
        value = self.values.get(name, "").strip()
        if not value:
            return default
        if not (value.isascii() and value.isdigit()) or len(value) > 9 or not least <= int(value) <= most:
            raise _bad_parameter(f"{name} is a whole number from {least} to {most}, not {shorten(value)}.")
        return int(value)

    def address(self, path: str, **changes: object) -> str:
        """The address of this page with some parameters changed; empty ones are left out.

        >>> Parameters([("q", "cat"), ("page", "2")], ("q", "page")).address("/research/images", page=3)
        '/research/images?q=cat&page=3'
        """
        values = {**self.values, **{name: str(value) for name, value in changes.items()}}
        query = urlencode([(name, value) for name, value in values.items() if value])
        return f"{path}?{query}" if query else path


def paginate(
    rows: Sequence[Row], parameters: Parameters, address: str, size: int
) -> tuple[Sequence[Row], dict[str, Any]]:
    """The rows of the page that the parameter `page` names, counted from 1, and its neighbours' addresses.

    >>> rows, pager = paginate("abcde", Parameters([("page", "2")], ("page",)), "/here", 2)
    >>> rows, pager["last"], pager["before"], pager["after"]
    ('cd', 3, '/here?page=1', '/here?page=3')
    """
    last = max(1, -(-len(rows) // size))
    page = parameters.whole("page", 1, 1, 10_000_000)
    if page > last:
        raise RequestRefused(404, "nowhere", f"There is no page {page}: this list has {last}.")
    pager = {
        "page": page,
        "last": last,
        "before": parameters.address(address, page=page - 1) if page > 1 else "",
        "after": parameters.address(address, page=page + 1) if page < last else "",
    }
    return rows[(page - 1) * size : page * size], pager


def shorten(text: str, length: int = 60) -> str:
    """A text from a request, short enough to be shown in a message.

    >>> shorten("a" * 100, 3)
    'aaa\N{HORIZONTAL ELLIPSIS}'
    """
    return text if len(text) <= length else f"{text[:length]}\N{HORIZONTAL ELLIPSIS}"


def render_page(template: str, **values: object) -> str:
    """A page; texts are escaped, `Markup` is not.

    >>> "&lt;script&gt;" in render_page("refused.html", title="No", message="<script>")
    True
    """
    return template_environment(_PACKAGE).get_template(template).render(**values)


@cache
def load_static_file(name: str) -> str:
    """One of `STATIC_FILES`; the stylesheet is that of the reports with the dashboard's own rules."""
    if name == "style.css":
        return (
            stylesheet()
            + read_package_text("hardlook.report", name)
            + read_package_text(_PACKAGE, "static/research.css")
        )
    return read_package_text(_PACKAGE, f"static/{name}")


def _bad_parameter(message: str) -> RequestRefused:
    return RequestRefused(400, "parameter", message)
