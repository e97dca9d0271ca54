r"""word2vec's binary file: a line `COUNT DIMENSION`, then for each word its bytes, a space and float32 numbers.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "two.bin"
>>> rows = b"".join(word + b" " + np.array(row, "<f4").tobytes() + b"\n" for word, row in [(b"cat", [1, 2])])
>>> _ = path.write_bytes(b"1 2\n" + rows)
>>> read_word2vec_binary(path, {"cat"})[1]["cat"].tolist()
[1.0, 2.0]
"""

from __future__ import annotations

from collections.abc import Set
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hardlook.data.text_vectors import parse_header
from hardlook.errors import DataError

BLOCK = 1 << 22
"""Bytes read at a time."""
LONGEST = 1 << 16
"""Bytes without a space after which this cannot be a list of words."""
_AGAIN = "the file is cut off or damaged: download or convert it again"


def read_word2vec_binary(path: Path, words: Set[str]) -> tuple[int, dict[str, NDArray[np.float32]]]:
    """The dimension D and the vectors (D,) float32 of those `words` that the file has.

    Reading stops when all are found. Of a word that comes twice the first counts.
    """
    wanted = {word.encode() for word in words}
    found: dict[str, NDArray[np.float32]] = {}
    with path.open("rb") as stream:
        header = parse_header(stream.readline(1024))
        if header is None:
            remedy = "the first line must be COUNT DIMENSION; is it another format?"
            raise DataError("the file has no header", file=path, unit="line 1", remedy=remedy)
        count, dimension = header
        width = 4 * dimension
        buffer, start = b"", 0
        for index in range(count):
            while True:
                space = buffer.find(b" ", start)
                if 0 <= space and space + 1 + width <= len(buffer):
                    break
                block = stream.read(BLOCK)
                if not block or (space < 0 and len(buffer) - start > LONGEST):
                    what = f"the header says {count} words of {dimension} numbers, the file ends in or before this one"
                    raise DataError(what, file=path, unit=f"word {index + 1}", remedy=_AGAIN)
                buffer, start = buffer[start:] + block, 0
            word = buffer[start:space].lstrip(b"\n")
            start = space + 1 + width
            if word in wanted and word.decode() not in found:
                vector = np.frombuffer(buffer, "<f4", dimension, space + 1).astype(np.float32)
                if not np.isfinite(vector).all():
                    raise DataError("a number is not finite", file=path, unit=f"word {index + 1}", remedy=_AGAIN)
                found[word.decode()] = vector
                if len(found) == len(wanted):
                    return dimension, found
        if (buffer[start:] + stream.read(64)).strip(b"\n"):
            what = f"more data than {count} words of {dimension} numbers, as the header says"
            raise DataError(what, file=path, remedy="the header is wrong, or this is another format")
    return dimension, found
