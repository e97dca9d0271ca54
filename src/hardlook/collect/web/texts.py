"""The words of the participants' pages, one file a language.

>>> texts("de")["work.pause"], languages()
('Pause', ('de', 'en'))
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

ENGLISH = "en"
_FOLDER = files("hardlook.collect.web").joinpath("texts")


@cache
def languages() -> tuple[str, ...]:
    """Codes of the languages that have a file, sorted."""
    return tuple(sorted(file.name.removesuffix(".json") for file in _FOLDER.iterdir() if file.name.endswith(".json")))


def spoken(language: str) -> str:
    """The language that is used where `language` is asked for: itself where it has a file, else English.

    A study may bring a consent of its own in a language that the buttons do not speak.

    >>> spoken("de"), spoken("tlh")
    ('de', 'en')
    """
    return language if language in languages() else ENGLISH


def name_of(language: str) -> str:
    """A language as its speakers call it; its code where it has no file.

    >>> name_of("de"), name_of("tlh")
    ('Deutsch', 'tlh')
    """
    return texts(language)["language.name"] if spoken(language) == language else language


@cache
def texts(language: str) -> Mapping[str, str]:
    """All texts by key, in a language or, where it has no file, in English; `{name}` stands for a value."""
    read: dict[str, str] = json.loads(_FOLDER.joinpath(f"{spoken(language)}.json").read_text(encoding="utf-8"))
    return MappingProxyType(read)
