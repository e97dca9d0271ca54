"""Files that others wrote: one error for whatever they make a library raise, and limits before memory is taken.

A damaged file can make a decoder raise anything: an error of its own, an `IndexError`, a `RecursionError` for lists in
lists, a panic of a compiled library. Every reader works inside `with reading(file, ...)`, so that the caller sees one
error that names the file, what is wrong and what to do about it. Sizes that a file states are checked before memory is
taken for them: an image of 2.6 MB can state 900 megapixels. The limit is `HARDLOOK_MAX_PIXELS`.

>>> with reading("a.json", "not a list of numbers", remedy="write [1, 2]"):
...     sum(json.loads("[1, null]"))
Traceback (most recent call last):
...
hardlook.errors.DataError: not a list of numbers: unsupported operand type(s) for +: 'int' and 'NoneType'
  file: a.json
  remedy: write [1, 2]
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from types import TracebackType
from typing import Any

from hardlook.errors import DataError, HardlookError, OptionError, shorten

MAX_PIXELS = 100_000_000
_VARIABLE = "HARDLOOK_MAX_PIXELS"


class reading:
    """A context in which every error becomes `kind` with the file, what went wrong and the remedy.

    An error of hardlook keeps its class and words; it gets the file where it names none. Interrupts and exits pass.
    """

    def __init__(
        self,
        file: Path | str | None,
        what: str = "the file cannot be read",
        *,
        remedy: str = "copy or write the file again",
        kind: type[HardlookError] = DataError,
    ) -> None:
        self.file, self.what, self.remedy, self.kind = file, what, remedy, kind

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            return
        if isinstance(error, HardlookError):
            if error.file is None and self.file is not None:
                raise error.at(file=self.file) from error
            return
        # Panics of Rust libraries (polars, hotcoco, safetensors) are no `Exception`.
        if isinstance(error, Exception) or type(error).__name__ == "PanicException":
            what = f"{self.what}: {describe_foreign_error(error)}"
            raise self.kind(what, file=self.file, remedy=self.remedy) from error


def describe_foreign_error(error: BaseException) -> str:
    """What a library's error says, in one short line.

    >>> describe_foreign_error(KeyError("images")), describe_foreign_error(RecursionError("maximum recursion depth"))
    ("'images' is missing", 'it is nested too deeply')
    """
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return "it does not exist"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, MemoryError):
        return "it needs more memory than there is"
    if isinstance(error, KeyError) and error.args:
        return f"{shorten(repr(error.args[0]))} is missing"
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return shorten(lines[0])


def read_bytes(path: Path | str) -> bytes:
    """The content of a file; a `DataError` if it is missing, unreadable or empty."""
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise DataError("the file does not exist", file=path, remedy="check the path") from None
    except OSError as error:
        raise DataError(
            f"the file cannot be read: {error.strerror}", file=path, remedy="check its permissions"
        ) from error
    except ValueError as error:  # a zero byte or half of a surrogate pair in it
        raise DataError("no file can have this name", file=repr(str(path)), remedy="correct the name") from error
    if not data:
        raise DataError("the file is empty", file=path, remedy="download or copy it again")
    return data


def read_json(path: Path | str, *, what: str = "not JSON", remedy: str = "download or write it again") -> Any:
    """The content of a JSON file; the error gives line and column."""
    data = read_bytes(path)
    with reading(path, what, remedy=remedy):
        return parse_json(data)


def parse_json(data: bytes) -> Any:
    r"""The value of a JSON text; an error where a text in it is no Unicode, which could never be written again.

    >>> parse_json(b'["\\ud800"]')
    Traceback (most recent call last):
    ...
    ValueError: a text in it is not Unicode: half of a surrogate pair
    """
    value = json.loads(data)
    if b"\\ud" in data or b"\\uD" in data:
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("a text in it is not Unicode: half of a surrogate pair") from None
    return value


def get_max_pixels() -> int:
    """The largest number of pixels that an image, a label map or a mask may have: `HARDLOOK_MAX_PIXELS`."""
    given = os.environ.get(_VARIABLE, "")
    if not given:
        return MAX_PIXELS
    if not (given.isascii() and given.isdigit() and 0 < len(given) < 16):
        raise OptionError(f"{_VARIABLE}={shorten(given, 40)}: not a number of pixels", remedy="give a whole number")
    return int(given)


def check_pixels(width: int, height: int, *, file: Path | str | None = None, unit: str | None = None) -> None:
    """Raise a `DataError` where an image of this size is too large to be read; called before it is decoded.

    >>> check_pixels(30_000, 30_000)
    Traceback (most recent call last):
    ...
    hardlook.errors.DataError: 30000x30000 are 900 megapixels, and at most 100 are read
      remedy: check the file; if its size is right, set HARDLOOK_MAX_PIXELS=900000000
    """
    if width * height > (limit := get_max_pixels()):
        what = f"{width}x{height} are {width * height / 1e6:.0f} megapixels, and at most {limit / 1e6:.0f} are read"
        remedy = f"check the file; if its size is right, set {_VARIABLE}={width * height}"
        raise DataError(what, file=file, unit=unit, remedy=remedy)


def read_id(value: Any) -> int:
    """The id as a whole number; a fraction, which `int` would cut off, is a `ValueError`.

    >>> read_id(7.0)
    7
    >>> read_id(1.5)
    Traceback (most recent call last):
    ...
    ValueError: the id 1.5 is not a whole number
    """
    number = int(value)
    if isinstance(value, float) and number != value:
        raise ValueError(f"the id {value} is not a whole number")
    return number


def is_flag(value: Any) -> bool:
    """Whether this is a yes or no as JSON files write them: true, false, 1 or 0; the text "0", which is true, is none.

    >>> is_flag(1), is_flag(False), is_flag("0"), is_flag(2)
    (True, True, False, False)
    """
    return isinstance(value, int | float) and value in (0, 1)


def read_name(value: Any) -> str:
    r"""The name of a label in one line: records list names by line, with tabs between the columns of some.

    >>> read_name("traffic\n\tlight")
    'traffic light'
    """
    return re.sub(r"\s*[\t\n\r\v\f]\s*", " ", str(value))
