"""What all dashboard pages use: checked request parameters, pagination, templates and static files.

>>> parameters = Parameters([("sort", "inside"), ("page", "2")], known=("sort", "page"))
>>> parameters.get_choice("sort", ("participant", "inside")), parameters.get_integer("page", 1, 1, 100)
('inside', 2)
>>> parameters.get_text("sort")
'inside'
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlencode

from hardlook.collect.web.refusals import RequestRefused
from hardlook.report.charts.palette import stylesheet
from hardlook.report.formatting import format_count
from hardlook.serving import read_package_text, template_environment

Pairs = list[tuple[str, str]]
Row = TypeVar("Row")
MAX_PARAMETERS, MAX_TEXT_LENGTH = 50, 300

# File name to media type; served without a login. Pages also work without the script, which only reloads them.
STATIC_FILES = {"style.css": "text/css", "research.js": "text/javascript", "icon.svg": "image/svg+xml"}
_PACKAGE = "hardlook.collect.research"


def parse_pairs(query: bytes) -> Pairs:
    """Parse a query string or the body of a form into (name, value) pairs.

    >>> parse_pairs(b"a=1&b=")
    [('a', '1'), ('b', '')]
    """
    try:
        return parse_qsl(query.decode("ascii"), keep_blank_values=True, max_num_fields=MAX_PARAMETERS, errors="replace")
    except ValueError:
        raise _bad_parameter("The address or the form cannot be read.") from None


class Parameters:
    """The parameters of one request; one that is repeated or not in `known` is refused."""

    def __init__(self, pairs: Iterable[tuple[str, str]], known: Sequence[str]) -> None:
        self.values: dict[str, str] = {}
        for name, value in pairs:
            if name not in known:
                raise _bad_parameter(f"There is no parameter {shorten(name)}.")
            if name in self.values:
                raise _bad_parameter(f"The parameter {name} is given twice.")
            self.values[name] = value

    def get_text(self, name: str, max_length: int = MAX_TEXT_LENGTH) -> str:
        """The parameter as a stripped text of at most `max_length` characters; empty where it is missing."""
        value = self.values.get(name, "").strip()
        if len(value) > max_length:
            raise _bad_parameter(f"The parameter {name} has {len(value)} characters; {max_length} are allowed.")
        return value

    def get_choice(self, name: str, choices: Sequence[str], default: str | None = None) -> str:
        """One of the choices; the first, or `default`, where the parameter is missing or empty."""
        value = self.values.get(name, "") or (choices[0] if default is None else default)
        if value != default and value not in choices:
            raise _bad_parameter(f"The parameter {name} is one of {', '.join(choices)}, not {shorten(value)}.")
        return value

    def get_integer(self, name: str, default: int, minimum: int, maximum: int) -> int:
        """The parameter as an integer from `minimum` to `maximum`; `default` where it is missing."""
        value = self.values.get(name, "").strip()
        if not value:
            return default
        if not (value.isascii() and value.isdigit()) or len(value) > 9 or not minimum <= int(value) <= maximum:
            raise _bad_parameter(f"{name} is a whole number from {minimum} to {maximum}, not {shorten(value)}.")
        return int(value)

    def build_address(self, path: str, **changes: object) -> str:
        """The address of a page with these parameters, some of them changed; empty ones are left out.

        >>> Parameters([("q", "cat"), ("page", "2")], ("q", "page")).build_address("/research/images", page=3)
        '/research/images?q=cat&page=3'
        """
        values = {**self.values, **{name: str(value) for name, value in changes.items()}}
        query = urlencode([(name, value) for name, value in values.items() if value])
        return f"{path}?{query}" if query else path


def paginate(
    rows: Sequence[Row], parameters: Parameters, address: str, size: int, *, noun: str, total: int
) -> tuple[Sequence[Row], dict[str, Any]]:
    """The rows of one page, and the values that its template shows about the whole list.

    The parameter `page` counts from 1, and a page has `size` rows. The values are the number of rows with their `noun`,
    the number without filters (`total`), and the addresses of the previous and the next page.

    >>> rows, values = paginate("abcde", Parameters([("page", "2")], ("page",)), "/here", 2, noun="letter", total=26)
    >>> rows, values["counted"], values["filtered"], values["pager"]["last"], values["pager"]["after"]
    ('cd', '5 letters', True, 3, '/here?page=3')
    """
    last = max(1, -(-len(rows) // size))
    page = parameters.get_integer("page", 1, 1, 10_000_000)
    if page > last:
        raise RequestRefused(404, "nowhere", f"There is no page {page}: this list has {last}.")
    pager = {
        "page": page,
        "last": last,
        "before": parameters.build_address(address, page=page - 1) if page > 1 else "",
        "after": parameters.build_address(address, page=page + 1) if page < last else "",
    }
    values = {"pager": pager, "counted": format_count(len(rows), noun), "total": total, "filtered": len(rows) < total}
    return rows[(page - 1) * size : page * size], values


def shorten(text: str, length: int = 60) -> str:
    """A text from a request, short enough to be shown in a message.

    >>> shorten("a" * 100, 3)
    'aaa\N{HORIZONTAL ELLIPSIS}'
    """
    return text if len(text) <= length else f"{text[:length]}\N{HORIZONTAL ELLIPSIS}"


def render_page(template: str, **values: object) -> str:
    """Render a template as HTML; texts are escaped, `Markup` is not.

    >>> "&lt;script&gt;" in render_page("refused.html", title="No", message="<script>")
    True
    """
    return template_environment(_PACKAGE).get_template(template).render(**values)


@cache
def load_static_file(name: str) -> str:
    """The text of one of `STATIC_FILES`; the stylesheet is that of the reports and the dashboard's own rules."""
    if name == "style.css":
        own = read_package_text(_PACKAGE, "static/research.css")
        return stylesheet() + read_package_text("hardlook.report", name) + own
    return read_package_text(_PACKAGE, f"static/{name}")


def _bad_parameter(message: str) -> RequestRefused:
    return RequestRefused(400, "parameter", message)
