r"""Word vectors as one array with a list of words beside it: .npy or .safetensors, and .parquet, .txt or .json.

The list is the file of the same stem, else the only one in the folder with `index`, `words` or `vocab` in its name.
A .safetensors file may also hold the list itself, as JSON under `words` in its metadata, or one tensor a word.
Of the array only the rows needed are read.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "pets.npy"
>>> np.save(path, np.eye(2, dtype=np.float32))
>>> _ = path.with_suffix(".txt").write_text("cat\ndog\n")
>>> read_npy_vectors(path, {"dog"})[1]["dog"].tolist()
[0.0, 1.0]
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Set
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import DataError

Found = tuple[int, dict[str, NDArray[np.float32]], tuple[Path, ...]]
SUFFIXES = (".parquet", ".txt", ".json")
NAMED = ("index", "words", "vocab")
_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2"}


def find_index(path: Path) -> Path:
    """The list of words that belongs to an array of vectors."""
    same = [path.with_suffix(suffix) for suffix in SUFFIXES if path.with_suffix(suffix).is_file()]
    named = [
        other
        for other in sorted(path.parent.iterdir())
        if other.suffix in SUFFIXES and any(part in other.stem.lower() for part in NAMED)
    ]
    if len(same or named) == 1:
        return (same or named)[0]
    found = ", ".join(other.name for other in same or named) or "none"
    remedy = f"put the words, one a row, beside it as {path.stem}.txt, .json or .parquet (found: {found})"
    raise DataError("which list of words belongs to these vectors is not clear", file=path, remedy=remedy)


def read_npy_vectors(path: Path, words: Set[str], index: Path | None = None) -> Found:
    """The dimension D, vectors (D,) float32 of those `words` that the array (words, D) has, and the files read."""
    try:
        matrix = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise DataError(f"not a readable NumPy file: {error}", file=path, remedy="write it with np.save") from error
    return _pick(matrix, index or find_index(path), words, path)


def read_safetensors_vectors(path: Path, words: Set[str], index: Path | None = None) -> Found:
    """The same from a .safetensors file with one 2-D tensor, or with one 1-D tensor a word."""
    header, start = _header(path)
    metadata = header.pop("__metadata__", {})
    tables = [name for name, entry in header.items() if len(entry["shape"]) == 2]
    if len(tables) == 1:
        matrix = _tensor(path, header[tables[0]], start)
        if index is None and "words" in metadata:
            return _pick(matrix, json.loads(metadata["words"]), words, path)
        return _pick(matrix, index or find_index(path), words, path)
    shapes = {tuple(entry["shape"]) for entry in header.values()}
    if len(shapes) != 1 or len(next(iter(shapes))) != 1:
        what = f"{len(tables)} tensors of two axes among {len(header)}"
        remedy = "store one tensor (words, dimension), or one tensor (dimension) a word"
        raise DataError(what, file=path, remedy=remedy)
    known = sorted(word for word in words if word in header)
    vectors = {word: _checked(_tensor(path, header[word], start), path, word) for word in known}
    return next(iter(shapes))[0], vectors, (path,)


def _header(path: Path) -> tuple[dict[str, Any], int]:
    remedy = "the file is cut off or damaged: write it again"
    with path.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if not 0 < length <= path.stat().st_size - 8:
            raise DataError("not a safetensors file", file=path, remedy=remedy)
        try:
            header: dict[str, Any] = json.loads(stream.read(length))
        except ValueError as error:
            raise DataError(f"not a safetensors file: {error}", file=path, remedy=remedy) from error
    ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
    if not ends or max(ends) + 8 + length > path.stat().st_size:
        raise DataError("the file ends before its tensors do", file=path, remedy=remedy)
    return header, 8 + length


def _tensor(path: Path, entry: Mapping[str, Any], start: int) -> NDArray[Any]:
    if entry["dtype"] not in _TYPES:
        remedy = f"store vectors as {', '.join(_TYPES)}"
        raise DataError(f"vectors of type {entry['dtype']}", file=path, remedy=remedy)
    offset, shape = start + entry["data_offsets"][0], tuple(entry["shape"])
    return np.memmap(path, dtype=_TYPES[entry["dtype"]], mode="r", offset=offset, shape=shape)


def _pick(matrix: Any, index: Path | Iterable[str], words: Set[str], path: Path) -> Found:
    if matrix.ndim != 2:
        what = f"an array of shape {matrix.shape}"
        raise DataError(what, file=path, remedy="store one array (words, dimension)")
    beside = (index,) if isinstance(index, Path) else ()
    rows, count = _rows(index, words) if isinstance(index, Path) else _rows_of(index, words)
    if count != len(matrix):
        what = f"{count} words for {len(matrix)} vectors"
        raise DataError(
            what, file=(*beside, path)[0], remedy=f"list one word for every row of {path.name}, in its order"
        )
    vectors = {word: _checked(matrix[row], path, word) for word, row in rows.items()}
    return matrix.shape[1], vectors, (path, *beside)


def _rows(index: Path, words: Set[str]) -> tuple[dict[str, int], int]:
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
        listed = json.loads(index.read_text(encoding="utf-8"))
        if isinstance(listed, dict):
            return {word: int(row) for word, row in listed.items() if word in words}, len(listed)
        return _rows_of(listed, words)
    with index.open(encoding="utf-8", newline="\n") as lines:
        return _rows_of((line.rstrip("\r\n") for line in lines), words)


def _rows_of(listed: Iterable[str], words: Set[str]) -> tuple[dict[str, int], int]:
    rows: dict[str, int] = {}
    count = 0
    for count, word in enumerate(listed, 1):
        if word in words:
            rows.setdefault(word, count - 1)
    return rows, count


def _checked(row: Any, path: Path, word: str) -> NDArray[np.float32]:
    vector = np.array(row, np.float32)
    if not np.isfinite(vector).all():
        raise DataError("a number is not finite", file=path, unit=word, remedy="write the vectors again")
    return vector
