"""What the system says of a file, in words that name the file and the remedy."""

from __future__ import annotations

import re
from pathlib import Path

# Files are written under such a name beside their place first (runs/folder.py); it tells a user nothing.
_BESIDE = re.compile(r"\.(?P<name>.+)\.\d+\.[0-9a-f]{8}")
_WORDS: tuple[tuple[type[OSError], str, str], ...] = (
    (IsADirectoryError, "this is a folder, and a file was expected", "give the name of a file"),
    (NotADirectoryError, "a file stands where a folder was expected", "give a folder, such as that of a run"),
    (FileExistsError, "there is something else of this name already", "choose another name"),
    (FileNotFoundError, "there is no such file or folder, and it cannot be made", "check the path"),
    (PermissionError, "no permission to read or write this", "change its permissions, or choose another place"),
)


def in_words(error: OSError) -> str:
    """The message of an error of the file system: what is wrong, the file, and what to do about it.

    >>> print(in_words(IsADirectoryError(21, "Is a directory", "runs/.x.html.12.0123abcd", None, "runs/x.html")))
    this is a folder, and a file was expected
      file: runs/x.html
      remedy: give the name of a file
    """
    named = error.filename2 or error.filename
    said, remedy = error.strerror or str(error), ""
    for kind, words, advice in _WORDS:
        if isinstance(error, kind) and named:
            said, remedy = words, advice
    file = f"\n  file: {_place(named)}" if isinstance(named, str | bytes | Path) else ""
    return said + file + (f"\n  remedy: {remedy}" if remedy else "")


def _place(named: str | bytes | Path) -> Path:
    """The file that was meant: a name beside its place stands for the place."""
    path = Path(named.decode(errors="replace") if isinstance(named, bytes) else named)
    beside = _BESIDE.fullmatch(path.name)
    return path.with_name(beside["name"]) if beside else path
