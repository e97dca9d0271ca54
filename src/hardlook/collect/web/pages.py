"""The pages that participants see: templates in their language, and the files that the pages load."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING

from hardlook.collect.web.texts import name_of, spoken, texts
from hardlook.report.charts.palette import stylesheet
from hardlook.serving.templates import environment_of

if TYPE_CHECKING:
    from jinja2 import Environment

_PACKAGE = "hardlook.collect.web"
_MEDIA = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8", "svg": "image/svg+xml"}


def render(template: str, language: str, /, **values: object) -> str:
    """A page in a language; every value is escaped, also those inside texts.

    `template` is one of welcome.html, work.html, done.html, privacy.html and refused.html.

    >>> page = render("refused.html", "de", title="Tassen", message="<script>")
    >>> '<html lang="de">' in page, "&lt;script&gt;" in page
    (True, True)
    """
    words = texts(language)
    own = {"language": language, "lang": spoken(language), "t": _translator(words), "words": words}
    return _environment().get_template(template).render({**own, **values})


@cache
def static_files() -> Mapping[str, tuple[bytes, str]]:
    """What is served under /static/: content and media type by name.

    >>> static_files()["study.css"][1]
    'text/css; charset=utf-8'
    """
    found = {}
    for file in files(_PACKAGE).joinpath("static").iterdir():
        media = _MEDIA.get(file.name.rpartition(".")[2])
        if media:
            found[file.name] = (file.read_bytes(), media)
    content, media = found["study.css"]
    found["study.css"] = (stylesheet().encode() + content, media)
    return MappingProxyType(dict(sorted(found.items())))


def paragraphs(text: str) -> list[str]:
    r"""The paragraphs of a text that a researcher wrote, which an empty line parts.

    >>> paragraphs("One.\n\n  Two,\nstill two.\n")
    ['One.', 'Two,\nstill two.']
    """
    parts = "\n".join(line.strip() for line in text.splitlines()).split("\n\n")
    return [part.strip() for part in parts if part.strip()]


def _translator(words: Mapping[str, str]) -> Callable[..., str]:
    def translate(key: str, **values: object) -> str:
        return words[key].format(**values)

    return translate


@cache
def _environment() -> Environment:
    environment = environment_of(_PACKAGE)
    environment.filters["paragraphs"] = paragraphs
    environment.filters["json"] = lambda words: json.dumps(dict(words), ensure_ascii=False)
    # Named in the page, modules come at once and not one after another as they import each other.
    environment.globals["modules"] = lambda: [
        name for name in static_files() if name.endswith(".js") and name != "done.js"
    ]
    environment.globals["name_of"] = name_of
    environment.globals["speaks"] = lambda language: spoken(language) == language
    return environment
