"""The participants' pages: texts by language, templates, and the static files that pages load.

>>> load_texts("de")["work.pause"], list_languages()
('Pause', ('de', 'en'))
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING

from hardlook.collect.web.refusals import RequestRefused
from hardlook.report.charts.palette import stylesheet
from hardlook.serving import template_environment

if TYPE_CHECKING:
    from jinja2 import Environment
    from starlette.requests import Request
    from starlette.responses import Response

ENGLISH = "en"
_PACKAGE = "hardlook.collect.web"
_TEXTS = files(_PACKAGE).joinpath("texts")
_IMAGE_TYPES = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg", b"RIFF": "image/webp"}
_MEDIA_TYPES = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8", "svg": "image/svg+xml"}


@cache
def list_languages() -> tuple[str, ...]:
    """Codes of the languages that have a file of texts, sorted."""
    return tuple(sorted(file.name.removesuffix(".json") for file in _TEXTS.iterdir() if file.name.endswith(".json")))


def resolve_language(language: str) -> str:
    """The language of the texts: `language` where it has a file, else English.

    A study may bring a consent text of its own in a language that the buttons are not translated to.

    >>> resolve_language("de"), resolve_language("tlh")
    ('de', 'en')
    """
    return language if language in list_languages() else ENGLISH


def language_name(language: str) -> str:
    """A language's name in that language; its code where it has no file.

    >>> language_name("de"), language_name("tlh")
    ('Deutsch', 'tlh')
    """
    return load_texts(language)["language.name"] if language in list_languages() else language


@cache
def load_texts(language: str) -> Mapping[str, str]:
    """All texts by key, in a language or, where it has no file, in English; `{name}` stands for a value."""
    file = _TEXTS.joinpath(f"{resolve_language(language)}.json")
    return MappingProxyType(json.loads(file.read_text(encoding="utf-8")))


def render_page(template: str, language: str, /, **values: object) -> str:
    """A page in a language; every value is escaped, also inside texts.

    `template` is one of welcome.html, window.html, work.html, done.html, full.html, privacy.html and refused.html.

    >>> page = render_page("refused.html", "de", title="Tassen", message="<script>")
    >>> '<html lang="de">' in page, "&lt;script&gt;" in page
    (True, True)
    """
    texts = load_texts(language)
    shared = {
        "language": language,
        "lang": resolve_language(language),
        "t": lambda key, **values: texts[key].format(**values),
        "words": texts,
    }
    return _environment().get_template(template).render({**shared, **values})


@cache
def load_static_files() -> Mapping[str, tuple[bytes, str]]:
    """What is served under /static/: content and media type by name."""
    loaded = {}
    for file in sorted(files(_PACKAGE).joinpath("static").iterdir(), key=lambda file: file.name):
        if media_type := _MEDIA_TYPES.get(file.name.rpartition(".")[2]):
            start = stylesheet().encode() if file.name == "study.css" else b""
            loaded[file.name] = (start + file.read_bytes(), media_type)
    return MappingProxyType(loaded)


def serve_static_file(request: Request) -> Response:
    """A static file by name, or 304 where the browser has it already; a name is looked up, never used as a path."""
    from starlette.responses import Response

    name = str(request.path_params["name"])
    if name not in load_static_files():
        raise RequestRefused(404, "nowhere", "There is no such page.")
    content, media_type = load_static_files()[name]
    headers = {"etag": f'"{hashlib.sha256(content).hexdigest()[:16]}"'}
    if headers["etag"] in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=media_type)


def find_image_type(data: bytes) -> str:
    r"""The media type of an image file by its first bytes; empty where the format is not known.

    >>> find_image_type(b"\x89PNG..."), find_image_type(b"GIF89a")
    ('image/png', '')
    """
    return next((kind for start, kind in _IMAGE_TYPES.items() if data.startswith(start)), "")


def split_paragraphs(text: str) -> list[str]:
    r"""The paragraphs of a text that a researcher wrote, separated by empty lines.

    >>> split_paragraphs("One.\n\n  Two,\nstill two.\n")
    ['One.', 'Two,\nstill two.']
    """
    parts = "\n".join(line.strip() for line in text.splitlines()).split("\n\n")
    return [part.strip() for part in parts if part.strip()]


@cache
def _environment() -> Environment:
    environment = template_environment(_PACKAGE)
    environment.filters["paragraphs"] = split_paragraphs
    environment.filters["json"] = lambda texts: json.dumps(dict(texts), ensure_ascii=False)
    # Named in the page, modules load at once and not one after another as they import each other.
    modules = [name for name in load_static_files() if name.endswith(".js") and name != "done.js"]
    environment.globals["modules"] = lambda: modules
    environment.globals["language_name"] = language_name
    environment.globals["has_texts"] = lambda language: language in list_languages()
    return environment
