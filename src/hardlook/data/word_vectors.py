r"""Vectors of chosen words from a file of word vectors, whatever its format: read once, in bounded memory.

| format | file |
|---|---|
| `glove` | text, a word and its numbers a line |
| `word2vec-text` | the same after a line `COUNT DIMENSION` (word2vec text, fastText .vec) |
| `word2vec` | word2vec binary (.bin) |
| `fasttext` | fastText binary model (.bin), whose n-grams give words outside its dictionary a vector too |
| `safetensors` | one tensor and a list of words, or one tensor a word |
| `npy` | one array and a list of words beside it (a folder with both will do) |

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "pets.txt"
>>> _ = path.write_text("cat 1 0.5\ndog 0.5 1\n")
>>> read = read_word_vectors(path, {"cat", "gnu"})
>>> read.format, read.dimension, sorted(read.vectors)
('glove', 2, ['cat'])
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from hardlook.data.fasttext_binary import MAGIC, read_fasttext_binary
from hardlook.data.text_vectors import is_number, parse_header, read_text_vectors
from hardlook.data.vector_tables import read_npy_vectors, read_safetensors_vectors
from hardlook.data.word2vec_binary import read_word2vec_binary
from hardlook.errors import DataError, OptionError

VectorFormat = Literal["glove", "word2vec-text", "word2vec", "fasttext", "safetensors", "npy"]
FORMATS: tuple[VectorFormat, ...] = get_args(VectorFormat)
HEAD = 1 << 16
_PACKED = {b"PK": "a zip archive", b"\x1f\x8b": "a gzip archive", b"PAR1": "a Parquet table"}


@dataclass(frozen=True)
class WordVectors:
    """Vectors (dimension,) float32 of the words that were asked for and are known.

    `composed` are those of words outside the dictionary of a fastText model, made from their n-grams. `files` are
    what was read.
    """

    vectors: Mapping[str, NDArray[np.float32]] = field(repr=False)
    composed: Mapping[str, NDArray[np.float32]] = field(repr=False)
    dimension: int
    format: VectorFormat
    files: tuple[Path, ...]


def read_word_vectors(
    path: Path | str, words: Set[str], *, format: VectorFormat | None = None, index: Path | None = None
) -> WordVectors:
    """Vectors of those `words` (as written: casing counts) that the file has.

    The format is found from the content unless given. `index` is the list of words of an array, where it does not
    lie beside it under a telling name.
    """
    path = _file(Path(path))
    if format is not None and format not in FORMATS:
        raise OptionError(f"there is no vector format {format!r}", remedy=f"one of {', '.join(FORMATS)}")
    kind = format or detect_format(path)
    composed: dict[str, NDArray[np.float32]] = {}
    files: tuple[Path, ...] = (path,)
    if kind == "fasttext":
        dimension, vectors, composed = read_fasttext_binary(path, words)
    elif kind == "word2vec":
        dimension, vectors = read_word2vec_binary(path, words)
    elif kind == "npy":
        dimension, vectors, files = read_npy_vectors(path, words, index)
    elif kind == "safetensors":
        dimension, vectors, files = read_safetensors_vectors(path, words, index)
    else:
        dimension, vectors = read_text_vectors(path, words, header=kind == "word2vec-text")
    return WordVectors(vectors, composed, dimension, kind, files)


def detect_format(path: Path) -> VectorFormat:
    """The format that a file's first bytes speak for; a `DataError` where they speak for none."""
    with path.open("rb") as stream:
        head = stream.read(HEAD)
    if head[:6] == b"\x93NUMPY":
        return "npy"
    if head[:4] == MAGIC.to_bytes(4, "little"):
        return "fasttext"
    if head[8:9] == b"{" and int.from_bytes(head[:8], "little") <= path.stat().st_size - 8:
        return "safetensors"
    for start, what in _PACKED.items():
        if head.startswith(start):
            raise DataError(f"the file is {what}", file=path, remedy="unpack it, and give the file of vectors inside")
    first, _, rest = head.partition(b"\n")
    header = parse_header(first)
    if header is not None:
        numbers = rest.split(b"\n")[0].split()[1:]
        return "word2vec-text" if numbers and all(map(is_number, numbers[: header[1]])) else "word2vec"
    parts = first.split()
    if len(parts) > 1 and is_number(parts[-1]):
        return "glove"
    raise DataError(
        "no format of word vectors that is known", file=path, remedy=f"one of {', '.join(FORMATS)}, not compressed"
    )


def _file(path: Path) -> Path:
    if path.is_dir():
        arrays = sorted(path.glob("*.npy")) or sorted(path.glob("*.safetensors"))
        if len(arrays) == 1:
            return arrays[0]
        remedy = "give the file of vectors itself"
        raise DataError(f"{len(arrays)} .npy or .safetensors files in this folder", file=path, remedy=remedy)
    if not path.is_file():
        raise DataError("the file of word vectors does not exist", file=path, remedy="check the path")
    if not path.stat().st_size:
        raise DataError("the file is empty", file=path, remedy="download or copy it again")
    return path
