"""A study folder while it is being made: what was begun can be begun again, and nobody else's files are touched.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "study"
>>> with unfinished(path):
...     (path / MARK).is_file()
True
>>> (path / MARK).exists()
False
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hardlook.collect.study.folder import SETTINGS
from hardlook.collect.study.pictures import KINDS, PREVIOUS
from hardlook.errors import DataError

MARK = "unfinished.txt"
_WORDS = "This study is being made, or its making was stopped: give its command again.\n"


@contextmanager
def unfinished(path: Path) -> Iterator[None]:
    """Mark a folder as one that is being made; the mark goes when all went well.

    A folder with a study, and one with other things in it, are refused before anything is written.
    """
    if (path / SETTINGS).exists():
        raise DataError("there is a study here already", file=path, remedy="choose another folder, or delete this one")
    if path.exists() and not path.is_dir():
        raise DataError("a file stands where the study's folder would", file=path, remedy="choose another folder")
    if path.is_dir() and not (path / MARK).exists() and any(path.iterdir()):
        raise DataError("the folder holds other things", file=path, remedy="choose an empty or a new folder")
    path.mkdir(parents=True, exist_ok=True)
    (path / MARK).write_text(_WORDS, encoding="utf-8")
    yield
    (path / MARK).unlink(missing_ok=True)


def remove_leftovers(path: Path, named: Iterable[str]) -> None:
    """Delete the pictures of an earlier attempt in a marked folder: all but those of these names."""
    kept = {path / name for name in named}
    for kind in (*KINDS, PREVIOUS):
        for file in (path / kind).rglob("*"):
            if file.is_file() and file not in kept:
                file.unlink()
