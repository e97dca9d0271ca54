"""Errors that name the file, the unit and the remedy.

>>> raise HardlookError("mask is empty", file="a.png", unit="cat_1", remedy="redraw it or leave it out")
Traceback (most recent call last):
...
hardlook.errors.HardlookError: mask is empty
  file: a.png
  unit: cat_1
  remedy: redraw it or leave it out
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Self

_LONGEST_WHAT, _LONGEST_PART = 2000, 600  # characters that are printed


def shorten(text: str, longest: int = 300) -> str:
    """The text, cut where it is too long to be read.

    >>> shorten("abcdefghij", 6)
    'abc...'
    """
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


# In a list or in JSON, too. Python reads a byte that is not UTF-8 as one of these code points.
_UNREADABLE_NAME = re.compile(r'[^"\n]*[\udc80-\udcff][^"\n]*')


class HardlookError(Exception):
    """An error with the file, the unit and the remedy; the command line prints it without a traceback."""

    def __init__(
        self,
        what: str,
        *,
        file: str | Path | None = None,
        unit: str | None = None,
        remedy: str | None = None,
    ) -> None:
        self.what = what
        self.file = str(file) if file is not None else None
        self.unit = unit
        self.remedy = remedy
        super().__init__(what, self.file, unit, remedy)

    def __str__(self) -> str:
        # A damaged file can put a megabyte into any of them.
        named = (("file", self.file), ("unit", self.unit), ("remedy", self.remedy))
        longest = {"remedy": _LONGEST_WHAT}  # A remedy may be a command to type.
        lines = [f"  {name}: {shorten(value, longest.get(name, _LONGEST_PART))}" for name, value in named if value]
        return "\n".join([shorten(self.what, _LONGEST_WHAT), *lines])

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword-only arguments are not pickled by default, and errors are sent between processes.
        return partial(type(self), self.what, file=self.file, unit=self.unit, remedy=self.remedy), ()

    def at(self, *, file: str | Path | None = None, unit: str | None = None) -> Self:
        """The same error with the file or unit filled in where it was not known."""
        return type(self)(self.what, file=self.file or file or None, unit=self.unit or unit, remedy=self.remedy)


class MissingExtra(HardlookError):
    """An optional dependency is not installed; the remedy names the extra that installs it."""


class DataError(HardlookError):
    """A file is missing, truncated, of the wrong size or has invalid content."""


class OptionError(HardlookError):
    """An option does not fit the benchmark, the data or another option."""


class ModelError(HardlookError):
    """A model cannot be found, built, or does not keep its role's contract."""


class RunError(HardlookError):
    """A run folder cannot be created, resumed or read."""


class DamagedFile(RunError):
    """A file of a run is not what was written: torn, empty, or with bits that changed."""


class TooManyFailures(RunError):
    """More units of a run failed than its options allow."""


class ChangedRun(RunError):
    """A run folder has records of other units, of another model, or from other data."""


class RunWarning(UserWarning):
    """Something about a run that its user should know and that does not end it."""


def find_unreadable_name(error: UnicodeEncodeError) -> DataError | None:
    r"""The error for the name of a file that is not UTF-8, which a text that could not be encoded holds; else None.

    >>> try:
    ...     '{"file": "data/caf\udce9.png"}'.encode()
    ... except UnicodeEncodeError as error:
    ...     print(find_unreadable_name(error))
    the name of a file or folder is not UTF-8
      file: data/caf\xe9.png
      remedy: rename it, for example with: convmv -f latin1 -t utf-8 --notest FILE
    """
    found = _UNREADABLE_NAME.search(error.object)
    if found is None:
        return None
    name = found[0].encode(errors="surrogateescape").decode(errors="backslashreplace")
    remedy = "rename it, for example with: convmv -f latin1 -t utf-8 --notest FILE"
    return DataError("the name of a file or folder is not UTF-8", file=name, remedy=remedy)
