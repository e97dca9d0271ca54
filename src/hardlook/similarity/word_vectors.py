r"""Read the vectors of chosen words from a file of word vectors: in one pass, in bounded memory.

| format | file |
|---|---|
| `glove` | text: a word and its numbers per line. Some words contain spaces, so numbers are counted from the right |
| `word2vec-text` | the same after a line `COUNT DIMENSION` (word2vec text, fastText .vec) |
| `word2vec` | word2vec binary (.bin): a line `COUNT DIMENSION`, then per word its bytes, a space and float32 numbers |
| `fasttext` | fastText binary model (.bin), whose n-grams give words outside its dictionary a vector too |
| `npy` | one array and a list of words beside it, as .parquet, .txt or .json; or a folder with both |
| `safetensors` | the same; or the list as JSON under `words` in the file's metadata; or one tensor per word |

The list of words is the file of the same stem as the array, else the only one in the folder with `index`, `words` or
`vocab` in its name.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "pets.txt"
>>> _ = path.write_text("cat 1 0.5\ndog 0.5 1\n")
>>> read = read_word_vectors(path, {"cat", "gnu"})
>>> read.format, read.dimension, {word: vector.tolist() for word, vector in read.vectors.items()}
('glove', 2, {'cat': [1.0, 0.5]})
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import DataError, OptionError, shorten
from hardlook.reading import read_json, reading
from hardlook.similarity.fasttext import MAGIC, read_fasttext_binary

VectorFormat = Literal["glove", "word2vec-text", "word2vec", "fasttext", "safetensors", "npy"]
FORMATS: tuple[VectorFormat, ...] = get_args(VectorFormat)

Vector = NDArray[np.float32]

_DETECTION_BYTES = 1 << 16
_BLOCK_BYTES = 1 << 22
_MAX_DIGITS = 12  # of a number in a header
_MAX_DIMENSION = 1 << 20
_LONGEST_WORD = 1 << 16  # bytes without a space after which a file is not a list of words
_ARCHIVES = {b"PK": "a zip archive", b"\x1f\x8b": "a gzip archive", b"PAR1": "a Parquet table"}
_HEADER = re.compile(rb"\d+[ \t]+\d+[ \t]*\r?\n?")
_NUMBER = re.compile(rb"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
_DAMAGED = "the file is cut off or damaged: download or convert it again"
_INDEX_SUFFIXES = (".parquet", ".txt", ".json")
_INDEX_NAMES = ("index", "words", "vocab")
_SAFETENSORS_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2"}


@dataclass(frozen=True)
class WordVectors:
    """Vectors (dimension,) float32 of words in the file; `composed`: of others, from a fastText model's n-grams."""

    vectors: Mapping[str, Vector] = field(repr=False)
    composed: Mapping[str, Vector] = field(repr=False)
    dimension: int
    format: VectorFormat
    files: tuple[Path, ...]


def read_word_vectors(path: Path | str, words: Set[str], *, format: VectorFormat | None = None) -> WordVectors:
    """Vectors of those `words` (case-sensitive) that the file has, the first of doubles; `format` None: detected."""
    path = _find_vector_file(Path(path))
    if format is not None and format not in FORMATS:
        raise OptionError(f"there is no vector format {format!r}", remedy=f"one of {', '.join(FORMATS)}")
    with reading(path, "these word vectors cannot be read", remedy=_DAMAGED):
        kind = format or detect_format(path)
        composed: dict[str, Vector] = {}
        files: tuple[Path, ...] = (path,)
        if kind == "fasttext":
            dimension, vectors, composed = read_fasttext_binary(path, words)
        elif kind == "word2vec":
            dimension, vectors = _read_word2vec_binary(path, words)
        elif kind == "npy":
            dimension, vectors, files = _read_npy(path, words)
        elif kind == "safetensors":
            dimension, vectors, files = _read_safetensors(path, words)
        else:
            dimension, vectors = _read_text(path, words, has_header=kind == "word2vec-text")
    return WordVectors(vectors, composed, dimension, kind, files)


def detect_format(path: Path) -> VectorFormat:
    """The format of a file, from its first bytes; a `DataError` where they match none."""
    with path.open("rb") as stream:
        head = stream.read(_DETECTION_BYTES)
    if head[:6] == b"\x93NUMPY":
        return "npy"
    if head[:4] == MAGIC.to_bytes(4, "little"):
        return "fasttext"
    if head[8:9] == b"{" and int.from_bytes(head[:8], "little") <= path.stat().st_size - 8:
        return "safetensors"
    for start, what in _ARCHIVES.items():
        if head.startswith(start):
            raise DataError(f"the file is {what}", file=path, remedy="unpack it, and give the file of vectors inside")
    first, _, rest = head.partition(b"\n")
    if (header := _parse_header(first)) is not None:
        numbers = rest.split(b"\n")[0].split()[1:]
        return "word2vec-text" if numbers and all(map(_is_number, numbers[: header[1]])) else "word2vec"
    parts = first.split()
    if len(parts) > 1 and _is_number(parts[-1]):
        return "glove"
    raise DataError("unknown format of word vectors", file=path, remedy=f"one of {', '.join(FORMATS)}, not compressed")


def _find_vector_file(path: Path) -> Path:
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


def _parse_header(line: bytes) -> tuple[int, int] | None:
    """(number of words, dimension) where the line is such a header."""
    if not _HEADER.fullmatch(line):
        return None
    if max(map(len, line.split())) > _MAX_DIGITS:
        return None
    count, dimension = map(int, line.split())
    return (count, dimension) if 0 < dimension <= _MAX_DIMENSION else None


def _is_number(text: bytes) -> bool:
    """Whether the text is a plain decimal number (`nan` and `inf` are words here)."""
    return _NUMBER.fullmatch(text) is not None


def _to_vector(numbers: Any, path: Path, unit: str, remedy: str = _DAMAGED) -> Vector:
    vector = np.array(numbers, np.float32)
    if not np.isfinite(vector).all():
        raise DataError("a number is not finite", file=path, unit=unit, remedy=remedy)
    return vector


def _read_text(path: Path, words: Set[str], *, has_header: bool) -> tuple[int, dict[str, Vector]]:
    """The dimension D and the vectors (D,); numbers are parsed for `words` alone, and no line after all are found."""
    wanted = {word.encode() for word in words}
    found: dict[str, Vector] = {}
    count, dimension, seen = None, 0, 0
    with path.open("rb") as stream:
        if has_header:
            if (header := _parse_header(stream.readline(1024))) is None:
                remedy = "the first line must be COUNT DIMENSION; pass format=glove where there is none"
                raise DataError("the file has no header", file=path, unit="line 1", remedy=remedy)
            count, dimension = header
        for number, line in enumerate(stream, 1 + has_header):
            line = line.rstrip()
            if not line:
                continue
            seen += 1
            spaces = line.count(b" ")
            dimension = dimension or _count_numbers(path, line)
            # A word with spaces and a line with too many numbers look alike but for the part before the last D.
            word_has_spaces = spaces > dimension and not _is_number(line.rsplit(b" ", dimension + 1)[1])
            if spaces != dimension and not word_has_spaces:
                what = f"expected a word and {dimension} numbers, got {spaces} numbers"
                raise DataError(what, file=path, unit=f"line {number}", remedy=_DAMAGED)
            if line[: line.index(b" ")] not in wanted:
                continue
            word, *parts = line.rsplit(b" ", dimension)
            if word in wanted:
                try:
                    numbers = [float(part) for part in parts]
                except ValueError as error:
                    unit = f"line {number}"
                    raise DataError(f"not a number: {error}", file=path, unit=unit, remedy=_DAMAGED) from None
                found.setdefault(word.decode(), _to_vector(numbers, path, f"line {number}"))
                if len(found) == len(wanted):
                    return dimension, found
    if not seen:
        raise DataError("the file holds no vectors", file=path, remedy=_DAMAGED)
    if count is not None and seen != count:
        raise DataError(f"the header says {count} words, there are {seen}", file=path, remedy=_DAMAGED)
    return dimension, found


def _count_numbers(path: Path, line: bytes) -> int:
    parts = line.split(b" ")
    numbers = 0
    while numbers < len(parts) - 1 and _is_number(parts[-1 - numbers]):
        numbers += 1
    if not numbers:
        remedy = "give word vectors: one word and its numbers per line, single spaces between"
        raise DataError("no numbers follow the first word", file=path, unit="line 1", remedy=remedy)
    return numbers


def _read_word2vec_binary(path: Path, words: Set[str]) -> tuple[int, dict[str, Vector]]:
    """The dimension D and the vectors (D,); reading stops when all `words` are found."""
    wanted = {word.encode() for word in words}
    found: dict[str, Vector] = {}
    with path.open("rb") as stream:
        if (header := _parse_header(stream.readline(1024))) is None:
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
                block = stream.read(_BLOCK_BYTES)
                if not block or (space < 0 and len(buffer) - start > _LONGEST_WORD):
                    what = f"the header says {count} words of {dimension} numbers, the file ends in or before this one"
                    raise DataError(what, file=path, unit=f"word {index + 1}", remedy=_DAMAGED)
                buffer, start = buffer[start:] + block, 0
            word = buffer[start:space].lstrip(b"\n")
            start = space + 1 + width
            if word in wanted and word.decode() not in found:
                numbers = np.frombuffer(buffer, "<f4", dimension, space + 1)
                found[word.decode()] = _to_vector(numbers, path, f"word {index + 1}")
                if len(found) == len(wanted):
                    return dimension, found
        if (buffer[start:] + stream.read(64)).strip(b"\n"):
            what = f"more data than {count} words of {dimension} numbers, as the header says"
            raise DataError(what, file=path, remedy="the header is wrong, or this is another format")
    return dimension, found


ArrayVectors = tuple[int, dict[str, Vector], tuple[Path, ...]]


def _read_npy(path: Path, words: Set[str]) -> ArrayVectors:
    """The dimension D, the vectors (D,) and the files read; of the array only the rows needed are read."""
    with reading(path, "not a readable NumPy file", remedy="write it with np.save"):
        matrix = np.load(path, mmap_mode="r", allow_pickle=False)
    return _select_rows(matrix, _find_index(path), words, path)


def _read_safetensors(path: Path, words: Set[str]) -> ArrayVectors:
    """The same from a .safetensors file with one 2-D tensor, or with one 1-D tensor per word."""
    header, start = _read_safetensors_header(path)
    metadata = header.pop("__metadata__", {})
    tables = [name for name, entry in header.items() if len(entry["shape"]) == 2]
    if len(tables) == 1:
        matrix = _map_tensor(path, header[tables[0]], start)
        index = json.loads(metadata["words"]) if "words" in metadata else _find_index(path)
        return _select_rows(matrix, index, words, path)
    shapes = {tuple(entry["shape"]) for entry in header.values()}
    if len(shapes) != 1 or len(next(iter(shapes))) != 1:
        what = f"{len(tables)} tensors of two axes among {len(header)}"
        remedy = "store one tensor (words, dimension), or one tensor (dimension) per word"
        raise DataError(what, file=path, remedy=remedy)
    known = sorted(word for word in words if word in header)
    vectors = {word: _to_vector(_map_tensor(path, header[word], start), path, word) for word in known}
    return next(iter(shapes))[0], vectors, (path,)


def _read_safetensors_header(path: Path) -> tuple[dict[str, Any], int]:
    remedy = "the file is cut off or damaged: write it again"
    with path.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if not 0 < length <= path.stat().st_size - 8:
            raise DataError("not a safetensors file", file=path, remedy=remedy)
        with reading(path, "not a safetensors file", remedy=remedy):
            header: dict[str, Any] = json.loads(stream.read(length))
    ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
    if not ends or max(ends) + 8 + length > path.stat().st_size:
        raise DataError("the file ends before its tensors do", file=path, remedy=remedy)
    return header, 8 + length


def _map_tensor(path: Path, entry: Mapping[str, Any], start: int) -> NDArray[Any]:
    if entry["dtype"] not in _SAFETENSORS_TYPES:
        remedy = f"store vectors as {', '.join(_SAFETENSORS_TYPES)}"
        raise DataError(f"vectors of type {entry['dtype']}", file=path, remedy=remedy)
    kind, shape = np.dtype(_SAFETENSORS_TYPES[entry["dtype"]]), tuple(entry["shape"])
    first, last = entry["data_offsets"]
    # Products of sides that the header states are compared before numpy multiplies them.
    if any(type(side) is not int or side < 0 for side in shape) or math.prod(shape) * kind.itemsize != last - first:
        what = f"a tensor of shape {shorten(str(list(shape)), 80)} does not fit its {last - first} bytes"
        raise DataError(what, file=path, remedy="the file is damaged: write it again")
    return np.memmap(path, dtype=kind, mode="r", offset=start + first, shape=shape)


def _find_index(path: Path) -> Path:
    same = [path.with_suffix(suffix) for suffix in _INDEX_SUFFIXES if path.with_suffix(suffix).is_file()]
    named = [
        other
        for other in sorted(path.parent.iterdir())
        if other.suffix in _INDEX_SUFFIXES and any(part in other.stem.lower() for part in _INDEX_NAMES)
    ]
    if len(same or named) == 1:
        return (same or named)[0]
    candidates = ", ".join(other.name for other in same or named) or "none"
    remedy = f"put the words, one per row, beside it as {path.stem}.txt, .json or .parquet (found: {candidates})"
    raise DataError("no unambiguous list of words for these vectors", file=path, remedy=remedy)


def _select_rows(matrix: Any, index: Path | Iterable[str], words: Set[str], path: Path) -> ArrayVectors:
    if matrix.ndim != 2:
        raise DataError(f"an array of shape {matrix.shape}", file=path, remedy="store one array (words, dimension)")
    index_files = (index,) if isinstance(index, Path) else ()
    with reading(index_files[0] if index_files else path, "not a list of words", remedy="write one word per row"):
        rows, count = _read_index(index, words) if isinstance(index, Path) else _find_rows(index, words)
    if count != len(matrix):
        remedy = f"list one word for every row of {path.name}, in its order"
        raise DataError(f"{count} words for {len(matrix)} vectors", file=(*index_files, path)[0], remedy=remedy)
    remedy = "write the vectors again"
    vectors = {word: _to_vector(matrix[row], path, word, remedy) for word, row in rows.items()}
    return matrix.shape[1], vectors, (path, *index_files)


def _read_index(index: Path, words: Set[str]) -> tuple[dict[str, int], int]:
    """{word: row} of the words that the list has, and the length of the list."""
    if index.suffix == ".parquet":
        import polars as pl

        table = pl.scan_parquet(index)
        texts = [name for name, kind in table.collect_schema().items() if kind == pl.String]
        if len(texts) != 1:
            remedy = "store the words as the only column of text"
            raise DataError(f"{len(texts)} columns of text", file=index, remedy=remedy)
        numbered = table.select(texts[0]).with_row_index("row number")
        kept = numbered.filter(pl.col(texts[0]).is_in(sorted(words))).collect()
        count = table.select(pl.len()).collect().item()
        return dict(zip(*(kept[name].reverse() for name in (texts[0], "row number")), strict=True)), count
    if index.suffix == ".json":
        listed = read_json(index)
        if isinstance(listed, dict):
            return {word: int(row) for word, row in listed.items() if word in words}, len(listed)
        return _find_rows(listed, words)
    with index.open(encoding="utf-8", newline="\n") as lines:
        return _find_rows((line.rstrip("\r\n") for line in lines), words)


def _find_rows(listed: Iterable[str], words: Set[str]) -> tuple[dict[str, int], int]:
    rows: dict[str, int] = {}
    count = 0
    for count, word in enumerate(listed, 1):
        if word in words:
            rows.setdefault(word, count - 1)
    return rows, count
