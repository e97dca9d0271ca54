"""Read fastText's binary model (.bin): a dictionary, then a matrix with a row per word and per bucket of n-grams.

Bojanowski et al., "Enriching word vectors with subword information", TACL 2017. A word's vector is the mean of its
own row and the rows of its character n-grams; a word outside the dictionary is composed from its n-grams alone. The
dictionary is read once, and of the matrix only the rows needed.

>>> [gram.decode() for gram in character_ngrams("cat", 3, 4)]
['<ca', '<cat', 'cat', 'cat>', 'at>']
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import DataError

MAGIC = 793_712_314
VERSIONS = (11, 12)
END_OF_SENTENCE = "</s>"

_BLOCK_BYTES = 1 << 20
_SUPERVISED = 3
_DAMAGED = "the file is cut off or damaged: download it again"
_ARGUMENTS = struct.Struct("<12id")
_COUNTS = struct.Struct("<3i2q")
_ENTRY = struct.Struct("<qb")


@dataclass(frozen=True)
class FastTextModel:
    """A model's header: n-gram lengths, buckets, rows of requested words, the matrix; `pruned`: kept buckets."""

    dimension: int
    shortest: int
    longest: int
    buckets: int
    words: int
    rows: Mapping[str, int]
    offset: int
    shape: tuple[int, int]
    pruned: Mapping[int, int] | None = field(default=None, repr=False)

    def row_numbers(self, word: str) -> list[int]:
        """Rows whose mean is the word's vector; none for a word without a row and without n-grams."""
        own = [self.rows[word]] if word in self.rows else []
        if word == END_OF_SENTENCE or not self.longest:
            return own
        slots = (hash_ngram(gram) % self.buckets for gram in character_ngrams(word, self.shortest, self.longest))
        if self.pruned is not None:
            slots = (self.pruned[slot] for slot in slots if slot in self.pruned)
        return own + [self.words + slot for slot in slots]


def read_fasttext_binary(
    path: Path, words: Set[str]
) -> tuple[int, dict[str, NDArray[np.float32]], dict[str, NDArray[np.float32]]]:
    """The dimension D, the vectors (D,) float32 of `words` in the dictionary, and of those that only have n-grams."""
    model = read_fasttext_header(path, words)
    matrix = np.memmap(path, dtype="<f4", mode="r", offset=model.offset, shape=model.shape)
    known: dict[str, NDArray[np.float32]] = {}
    composed: dict[str, NDArray[np.float32]] = {}
    for word in sorted(words):
        if numbers := model.row_numbers(word):
            vector = np.asarray(matrix[numbers].mean(axis=0, dtype=np.float64), np.float32)
            if not np.isfinite(vector).all():
                raise DataError("a number is not finite", file=path, unit=word, remedy=_DAMAGED)
            (known if word in model.rows else composed)[word] = vector
    return model.dimension, known, composed


def read_fasttext_header(path: Path, words: Set[str]) -> FastTextModel:
    """Read the header and the dictionary; a `DataError` where the file is not such a model, is quantised or cut off."""
    with path.open("rb") as stream:
        magic, version = struct.unpack("<2i", _read_bytes(stream, 8, path))
        if magic != MAGIC or version not in VERSIONS:
            remedy = "give a .bin model of fastText; vectors as text (.vec) are read too"
            raise DataError(f"no fastText model of version {VERSIONS}", file=path, remedy=remedy)
        arguments = _ARGUMENTS.unpack(_read_bytes(stream, _ARGUMENTS.size, path))
        dimension, kind, buckets, shortest, longest = (arguments[place] for place in (0, 7, 8, 9, 10))
        if version == 11 and kind == _SUPERVISED:
            longest = 0  # classifiers of that version say otherwise and use no n-grams
        entries, count, _, _, kept = _COUNTS.unpack(_read_bytes(stream, _COUNTS.size, path))
        rows, offset = _read_dictionary(stream, entries, words, path)
        stream.seek(offset)
        pruned = None
        if kept >= 0:
            pruned = dict(np.frombuffer(_read_bytes(stream, 8 * kept, path), "<i4").reshape(-1, 2).tolist())
        quantised, height, width = struct.unpack("<?2q", _read_bytes(stream, 17, path))
        if quantised:
            remedy = "give the full .bin model, or its vectors as text (.vec)"
            raise DataError("the model is quantised (.ftz)", file=path, remedy=remedy)
        offset = stream.tell()
    size = path.stat().st_size
    if width != dimension or height < count or offset + 4 * height * width > size:
        what = f"a matrix of {height} x {width} numbers is announced, {size - offset} bytes follow"
        raise DataError(what, file=path, remedy=_DAMAGED)
    return FastTextModel(dimension, shortest, longest, buckets, count, rows, offset, (height, width), pruned)


def character_ngrams(word: str, shortest: int, longest: int) -> Iterator[bytes]:
    """The n-grams of `<word>` in fastText's order, lengths counted in characters; single < and > are none."""
    text = f"<{word}>"
    for start in range(len(text)):
        for length in range(1, min(longest, len(text) - start) + 1):
            edge = length == 1 and (start == 0 or start == len(text) - 1)
            if length >= shortest and not edge:
                yield text[start : start + length].encode()


def hash_ngram(gram: bytes) -> int:
    """FNV-1a in 32 bits, each byte taken as signed: a bug of fastText that its models are trained with.

    >>> hash_ngram(b"a"), hash_ngram("é".encode()) == hash_ngram(b"e")
    (3826002220, False)
    """
    value = 2_166_136_261
    for byte in gram:
        value ^= byte if byte < 128 else byte | 0xFFFFFF00
        value = value * 16_777_619 & 0xFFFFFFFF
    return value


def _read_dictionary(stream: BinaryIO, entries: int, words: Set[str], path: Path) -> tuple[dict[str, int], int]:
    """Row numbers of `words`, and the byte at which the dictionary ends."""
    wanted = {word.encode() for word in words}
    rows: dict[str, int] = {}
    begins, buffer, start = stream.tell(), b"", 0
    for row in range(entries):
        while True:
            end = buffer.find(b"\0", start)
            if 0 <= end and end + 1 + _ENTRY.size <= len(buffer):
                break
            block = stream.read(_BLOCK_BYTES)
            if not block:
                raise DataError("the dictionary ends early", file=path, unit=f"entry {row + 1}", remedy=_DAMAGED)
            begins += start
            buffer, start = buffer[start:] + block, 0
        word = buffer[start:end]
        if word in wanted and _ENTRY.unpack_from(buffer, end + 1)[1] == 0:  # 1 marks a class of a classifier
            rows.setdefault(word.decode(), row)
        start = end + 1 + _ENTRY.size
    return rows, begins + start


def _read_bytes(stream: BinaryIO, size: int, path: Path) -> bytes:
    end = path.stat().st_size
    if not 0 <= size <= end - stream.tell():
        raise DataError(f"the file ends at byte {end}", file=path, remedy=_DAMAGED)
    return stream.read(size)
