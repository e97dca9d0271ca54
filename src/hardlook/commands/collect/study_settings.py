"""Settings of a study from the command line: errors name the setting, texts come from files by language.

>>> settings_of({"kind": "clicks", "title": "Cups", "modes": ("cut-out",)}).title
'Cups'
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from hardlook.collect.study.setting_errors import in_words
from hardlook.collect.study.settings import StudySettings
from hardlook.commands import grammar
from hardlook.data.images import read_bytes
from hardlook.errors import DataError, OptionError

# Settings whose option has another name.
_FLAGS = {"modes": "--mode", "devices": "--devices", "languages": "--language", "title": "--title"}


def settings_of(values: Mapping[str, Any]) -> StudySettings:
    """The settings; a value that cannot be is an `OptionError` that names it."""
    try:
        return StudySettings.model_validate(values)
    except ValidationError as error:
        named = error.errors()[0]["loc"]
        flag = _FLAGS.get(str(named[0])) if named else None
        remedy = f"change {flag}" if flag else "change this option"
        raise OptionError(in_words(error, StudySettings), remedy=remedy) from error


def texts_of(given: list[str] | None, flag: str, languages: Sequence[str]) -> dict[str, str]:
    """Texts by language from `FILE`, which is in the first of the languages, or `LANGUAGE=FILE`.

    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "consent.txt"
    >>> _ = path.write_text("I agree.")
    >>> texts_of([str(path)], "--consent", ("en", "de"))
    {'en': 'I agree.'}
    """
    found = {}
    for language, path in grammar.paths(given, flag, alone=languages[0]).items():
        if language not in languages:
            known = ", ".join(languages)
            raise OptionError(f"{flag} {language}: no language of this study", remedy=f"it has {known}; add --language")
        try:
            found[language] = read_bytes(path).decode("utf-8-sig").strip()
        except UnicodeDecodeError as error:
            raise DataError("not a text in UTF-8", file=path, remedy="store it as UTF-8") from error
    return found
