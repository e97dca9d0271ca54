r"""Word vectors as text: one word and its numbers a line, with a first line `COUNT DIMENSION` or without.

GloVe writes no such line, word2vec and fastText (.vec) do. Some GloVe words hold spaces, so the numbers are counted
from the right. A line costs one look at its first word; numbers are read only of the words asked for.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "two.vec"
>>> _ = path.write_text("2 3\ncat 1 0 0.5\ndog 0 1 0\n")
>>> dimension, vectors = read_text_vectors(path, {"cat", "gnu"}, header=True)
>>> dimension, {word: vector.tolist() for word, vector in vectors.items()}
(3, {'cat': [1.0, 0.0, 0.5]})
"""

from __future__ import annotations

import re
from collections.abc import Set
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import DataError

_HEADER = re.compile(rb"\d+[ \t]+\d+[ \t]*\r?\n?")
_NUMBER = re.compile(rb"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
_AGAIN = "the file is cut off or damaged: download or convert it again"


def parse_header(line: bytes) -> tuple[int, int] | None:
    """(number of words, dimension) where the line says that and nothing else."""
    if not _HEADER.fullmatch(line):
        return None
    count, dimension = map(int, line.split())
    return (count, dimension) if dimension else None


def is_number(text: bytes) -> bool:
    """Whether the text is a plain decimal number (`nan` and `inf` are words here)."""
    return _NUMBER.fullmatch(text) is not None


def read_text_vectors(path: Path, words: Set[str], *, header: bool) -> tuple[int, dict[str, NDArray[np.float32]]]:
    """The dimension D and the vectors (D,) float32 of those `words` that the file has.

    Reading stops when all are found. Of a word that comes twice the first counts. A line with more or fewer numbers
    than D, or (where read to its end) another number of lines than the header says, is a `DataError`.
    """
    wanted = {word.encode() for word in words}
    found: dict[str, NDArray[np.float32]] = {}
    count, dimension, seen = None, 0, 0
    with path.open("rb") as stream:
        if header:
            said = parse_header(stream.readline(1024))
            if said is None:
                remedy = "the first line must be COUNT DIMENSION; say format=glove where there is none"
                raise DataError("the file has no header", file=path, unit="line 1", remedy=remedy)
            count, dimension = said
        for number, line in enumerate(stream, 1 + header):
            line = line.rstrip()
            if not line:
                continue
            seen += 1
            spaces = line.count(b" ")
            dimension = dimension or _dimension(path, line)
            if spaces != dimension and not _holds_spaces(line, spaces, dimension):
                what = f"expected a word and {dimension} numbers, came {spaces} numbers"
                raise DataError(what, file=path, unit=f"line {number}", remedy=_AGAIN)
            if line[: line.index(b" ")] not in wanted:
                continue
            word, *parts = line.rsplit(b" ", dimension)
            if word in wanted:
                found.setdefault(word.decode(), _numbers(path, f"line {number}", parts))
                if len(found) == len(wanted):
                    return dimension, found
    if not seen:
        raise DataError("the file holds no vectors", file=path, remedy=_AGAIN)
    if count is not None and seen != count:
        raise DataError(f"the header says {count} words, there are {seen}", file=path, remedy=_AGAIN)
    return dimension, found


def _dimension(path: Path, line: bytes) -> int:
    parts = line.split(b" ")
    numbers = 0
    while numbers < len(parts) - 1 and is_number(parts[-1 - numbers]):
        numbers += 1
    if not numbers:
        remedy = "give word vectors: one word and its numbers a line, single spaces between"
        raise DataError("no numbers follow the first word", file=path, unit="line 1", remedy=remedy)
    return numbers


def _holds_spaces(line: bytes, spaces: int, dimension: int) -> bool:
    # A word with spaces and a line with too many numbers look alike but for the part before the last D.
    return spaces > dimension and not is_number(line.rsplit(b" ", dimension + 1)[1])


def _numbers(path: Path, at: str, parts: list[bytes]) -> NDArray[np.float32]:
    try:
        vector = np.array([float(part) for part in parts], np.float32)
    except ValueError as error:
        raise DataError(f"not a number: {error}", file=path, unit=at, remedy=_AGAIN) from None
    if not np.isfinite(vector).all():
        raise DataError("a number is not finite", file=path, unit=at, remedy=_AGAIN)
    return vector
