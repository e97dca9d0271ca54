"""What is not answered: a status, a sentence for people, and no path of this machine."""

from __future__ import annotations

import re
from pathlib import Path

from hardlook.errors import HardlookError

_PATH = re.compile(r"(?<![\w.:/\\])(?:[A-Za-z]:)?[/\\][^\s'\"<>|;,()]*[^\s'\"<>|;,().:]")


class Refused(Exception):
    """A request that gets no page: HTTP status and a sentence."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.message, self.status = message, status


def in_words(error: Exception, root: Path) -> str:
    """An error as a page may tell it: files by name, paths below `root` as they are from there.

    >>> in_words(HardlookError("not a PNG", file="/home/me/data/a.png", remedy="mend it"), Path("/runs"))
    'not a PNG (a.png); mend it'
    >>> in_words(FileNotFoundError(2, "No such file or directory", "/home/me/data/a.png"), Path("/runs"))
    'No such file or directory (a.png)'
    """
    if isinstance(error, HardlookError):
        named = f" ({Path(error.file).name})" if error.file else ""
        return without_paths(f"{error.what}{named}" + (f"; {error.remedy}" if error.remedy else ""), root)
    if isinstance(error, OSError):
        named = f" ({Path(str(error.filename)).name})" if error.filename else ""
        return f"{error.strerror or type(error).__name__}{named}"
    return f"{type(error).__name__}; the terminal of the server shows the rest"


def without_paths(text: str, root: Path) -> str:
    """The text with absolute paths cut down to file names, or to what lies below `root`.

    >>> without_paths("read /home/me/data/a.png and /runs/b/run.json", Path("/runs"))
    'read a.png and b/run.json'
    """
    # Folders may have spaces in their names, which no pattern can see the end of; these two are known.
    for known in (f"{root}/", f"{Path.home()}/", f"{Path.cwd()}/"):
        if len(known) > 3:
            text = text.replace(known, "" if known == f"{root}/" else "/")
    return _PATH.sub(lambda match: re.split(r"[/\\]", match[0])[-1], text)
