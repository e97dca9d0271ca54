"""URLs of the explorer's pages, their parameters, and error messages without absolute paths."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

from hardlook.errors import HardlookError

Parameters = list[tuple[str, str]]
MAX_PARAMETERS = 200
_PATH = re.compile(r"(?<![\w.:/\\])(?:[A-Za-z]:)?[/\\][^\s'\"<>|;,()]*[^\s'\"<>|;,().:]")


class PageError(Exception):
    """A request that cannot be answered: HTTP status and a sentence."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.message, self.status = message, status


def describe_error(error: Exception, root: Path) -> str:
    """An error as a page shows it: files by name, paths relative to `root`.

    >>> describe_error(HardlookError("not a PNG", file="/home/me/data/a.png", remedy="convert it"), Path("/runs"))
    'not a PNG (a.png); convert it'
    >>> describe_error(FileNotFoundError(2, "No such file or directory", "/home/me/data/a.png"), Path("/runs"))
    'No such file or directory (a.png)'
    """
    if isinstance(error, HardlookError):
        named = f" ({Path(error.file).name})" if error.file else ""
        return remove_paths(f"{error.what}{named}" + (f"; {error.remedy}" if error.remedy else ""), root)
    if isinstance(error, OSError):
        named = f" ({Path(str(error.filename)).name})" if error.filename else ""
        return f"{error.strerror or type(error).__name__}{named}"
    return f"{type(error).__name__}; the terminal of the server shows the rest"


def remove_paths(text: str, root: Path) -> str:
    """The text with absolute paths shortened to file names, or made relative to `root`.

    >>> remove_paths("read /home/me/data/a.png and /runs/b/run.json", Path("/runs"))
    'read a.png and b/run.json'
    """
    # The pattern ends at a space. These folders are known and may have spaces in their names: replace them first.
    for known in (f"{root}/", f"{Path.home()}/", f"{Path.cwd()}/"):
        if len(known) > 3:
            text = text.replace(known, "" if known == f"{root}/" else "/")
    return _PATH.sub(lambda match: re.split(r"[/\\]", match[0])[-1], text)


def parse_parameters(query: bytes) -> Parameters:
    """The parameters of a query string, including empty ones.

    >>> parse_parameters(b"id=a%2Fb&q=")
    [('id', 'a/b'), ('q', '')]
    """
    try:
        text = query.decode("ascii")
        return parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_PARAMETERS, errors="replace")
    except ValueError:
        raise PageError("The address cannot be read.") from None


def split_parameters(parameters: Parameters, names: Sequence[str]) -> tuple[dict[str, list[str]], Parameters]:
    """The values of the named parameters, and the other parameters."""
    named = {name: [value for key, value in parameters if key == name] for name in names}
    return named, [(key, value) for key, value in parameters if key not in named]


def get_single_value(values: list[str], name: str, default: str = "") -> str:
    """The value of a parameter that is given at most once."""
    if len(values) > 1:
        raise PageError(f"The parameter {name} is given twice.")
    return values[0] if values else default


def run_url(key: str, query: str = "") -> str:
    """The URL of a run's page."""
    return f"/run/{key}" + (f"?{query}" if query else "")


def unit_url(key: str, unit: str, more: Sequence[tuple[str, str]] = ()) -> str:
    """The URL of a unit's page; the id is a query parameter, as it can hold any character.

    >>> unit_url("ab12", "a/b <c>")
    '/run/ab12/unit?id=a%2Fb+%3Cc%3E'
    """
    return f"/run/{key}/unit?" + urlencode([("id", unit), *more])


def picture_url(key: str, unit: str, number: int, *, overlay: bool) -> str:
    """The URL of a picture of a unit."""
    shown = "on" if overlay else "off"
    return f"/run/{key}/picture?" + urlencode([("id", unit), ("number", str(number)), ("overlay", shown)])


def thumbnail_url(key: str, unit: str, overlay: str, version: str) -> str:
    """The URL of a unit's thumbnail; `version` changes with the run's records, so that browsers may keep it."""
    return f"/run/{key}/thumbnail?" + urlencode([("id", unit), ("overlay", overlay), ("v", version)])


def compare_url(first: str, second: str, quality: str = "", more: Sequence[tuple[str, str]] = ()) -> str:
    """The URL of the page that compares two runs unit by unit."""
    named = [("quality", quality)] if quality else []
    return "/compare?" + urlencode([("first", first), ("second", second), *named, *more])
