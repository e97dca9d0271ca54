"""Read and write similarity matrices: CSV, Parquet, or .npy with the names beside it.

A CSV has the labels' names as its header and its first column; Parquet has them in its first column and as the names
of the others. The names of `S.npy` are in `S.txt` (one per line) or `S.json`; without them rows are in the label
set's order.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "S.csv"
>>> write_matrix(path, np.array([[1.0, 0.2], [0.2, 1.0]]), ["dog", "cat"])
>>> read_matrix(path).names
('dog', 'cat')
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import DataError, OptionError, shorten
from hardlook.reading import reading
from hardlook.similarity.labels import LabelSet
from hardlook.similarity.matrix import check_cells, check_similarity
from hardlook.similarity.pair_measures import PairSimilarity

SUFFIXES = (".csv", ".npy", ".parquet")
_LISTED_NAMES = 12


@dataclass(frozen=True, eq=False)
class NamedMatrix:
    """A similarity matrix (K, K) float64 and the K names of its rows; None where the file names none."""

    values: NDArray[np.float64] = field(repr=False)
    names: tuple[str, ...] | None


def check_suffix(path: Path) -> None:
    """An `OptionError` where the file name does not end in one of `SUFFIXES`."""
    if path.suffix not in SUFFIXES:
        what = f"no format for {path.suffix or 'a name without an ending'}"
        raise OptionError(what, unit=path.name, remedy=f"end the name in {', '.join(SUFFIXES)}")


def write_matrix(path: Path | str, matrix: NDArray[np.float64], names: Sequence[str]) -> None:
    """Write a similarity matrix (K, K) with its K names; the suffix determines the format. Numbers are kept exactly."""
    path = Path(path)
    check_suffix(path)
    values = _check_values(matrix, names, path)
    _check_unique(names, path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".npy":
        np.save(path, values)
        path.with_suffix(".txt").write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
    elif path.suffix == ".parquet":
        import polars as pl

        first = "label" if "label" not in names else "label name"
        columns = [pl.Series(name, values[:, place]) for place, name in enumerate(names)]
        pl.DataFrame([pl.Series(first, list(names)), *columns]).write_parquet(path)
    else:
        with path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(["label", *names])
            writer.writerows([name, *map(repr, row)] for name, row in zip(names, values.tolist(), strict=True))


def read_matrix(
    path: Path | str, labels: LabelSet | None = None, *, asymmetric: bool = False, more_names: bool = False
) -> NamedMatrix:
    """Read and check a similarity matrix; with `labels` given, in their order.

    A matrix that is not symmetric, not 1 on the diagonal, out of [0, 1] or not finite is a `DataError` that names the
    cell; names that do not match the labels are one that lists them. Rounding errors up to 1e-6 are corrected.
    `asymmetric` says that a matrix is meant not to be symmetric, `more_names` that it may name other labels too.
    """
    path, values, names = _read_file(Path(path), labels)
    matrix = _check_values(values, names, path, asymmetric=asymmetric)
    if labels is None or names is None:
        return NamedMatrix(matrix, None if names is None else tuple(names))
    order = _match_labels(names, labels, path, more_names=more_names)
    return NamedMatrix(matrix[np.ix_(order, order)], labels.names)


def open_matrix(
    path: Path | str, labels: LabelSet, *, asymmetric: bool = False, more_names: bool = False
) -> PairSimilarity:
    """The matrix of a file as a function of pairs of labels, checked as by `read_matrix`; an npy file is not loaded.

    >>> import tempfile
    >>> from hardlook.similarity.labels import Label
    >>> path = Path(tempfile.mkdtemp()) / "S.npy"
    >>> write_matrix(path, np.array([[1.0, 0.2], [0.2, 1.0]]), ["dog", "cat"])
    >>> pairs = open_matrix(path, LabelSet("pets", "file", (Label(0, "cat"), Label(1, "dog"))))
    >>> pairs(np.array([0, 1]), np.array([1, 1])).tolist()
    [0.2, 1.0]
    """
    path, values, names = _read_file(Path(path), labels)
    values = values if values.dtype.kind == "f" else values.astype(np.float32)  # flags and whole numbers
    with _name_file_in_errors(path):
        check_cells(values, labels=names, symmetric=not asymmetric)
    assert names is not None
    order = np.array(_match_labels(names, labels, path, more_names=more_names), np.int64)

    def look_up(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.float64]:
        rows, columns = order[one], order[other]
        found = values[rows, columns].astype(np.float64)
        if not asymmetric:
            found = (found + values[columns, rows]) / 2
        return np.where(one == other, 1.0, found.clip(0.0, 1.0))

    return look_up


def _read_file(path: Path, labels: LabelSet | None) -> tuple[Path, NDArray[np.floating], Sequence[str] | None]:
    """The path, the numbers as they are stored, and the names of the rows: the file's, else those of the labels."""
    check_suffix(path)
    if not path.is_file():
        raise DataError("the similarity matrix does not exist", file=path, remedy="check the path")
    kind = {".csv": "CSV", ".npy": "NumPy", ".parquet": "Parquet"}[path.suffix]
    remedy = {".csv": "write it in UTF-8", ".npy": "write it with np.save", ".parquet": "write it again"}[path.suffix]
    with reading(path, f"not a readable {kind} file", remedy=remedy):
        values, names = {".csv": _read_csv, ".npy": _read_npy, ".parquet": _read_parquet}[path.suffix](path)
    if names is not None:
        _check_unique(names, path)
    elif labels is not None:
        names = labels.names
    return path, values, names


MatrixAndNames = tuple[NDArray[Any], Sequence[str] | None]


def _read_csv(path: Path) -> MatrixAndNames:
    with path.open(encoding="utf-8-sig", newline="") as stream:
        header, *lines = [row for row in csv.reader(stream) if row]
    names = [name.strip() for name in header[1:]]
    for number, line in enumerate(lines, 2):
        if len(line) != len(header):
            what = f"expected {len(header)} cells as in the header, got {len(line)}"
            raise DataError(what, file=path, unit=f"row {number}", remedy="write one row and one column per label")
    values = np.array(
        [
            [_parse_number(cell, line[0], name, path) for cell, name in zip(line[1:], names, strict=True)]
            for line in lines
        ]
    )
    return _order_rows_as_columns(
        values.reshape(len(lines), len(names)), [line[0].strip() for line in lines], names, path
    )


def _read_parquet(path: Path) -> MatrixAndNames:
    import polars as pl

    table = pl.read_parquet(path)
    first, *names = table.columns
    if table.schema[first] != pl.String or not all(table.schema[name].is_numeric() for name in names):
        remedy = "the first column holds the labels' names, the others numbers, one column per label"
        raise DataError("the columns are not those of a similarity matrix", file=path, remedy=remedy)
    return _order_rows_as_columns(table.select(names).cast(pl.Float64).to_numpy(), table[first].to_list(), names, path)


def _read_npy(path: Path) -> MatrixAndNames:
    # Mapped, so that no memory is taken for a shape that the file does not have.
    stored = np.load(path, mmap_mode="r", allow_pickle=False)
    if stored.ndim != 2 or stored.dtype.kind not in "biuf":
        what = f"an array of shape {stored.shape} and type {stored.dtype}"
        raise DataError(what, remedy="store one number per pair of labels")
    for names in (path.with_suffix(".txt"), path.with_suffix(".json")):
        if names.is_file():
            with reading(names, "not a list of names", remedy="write one name per row of the matrix"):
                text = names.read_text(encoding="utf-8")
                listed = json.loads(text) if names.suffix == ".json" else text.splitlines()
                return stored, [str(name).strip() for name in listed if str(name).strip()]
    return stored, None


def _parse_number(cell: str, row: str, column: str, path: Path) -> float:
    try:
        return float(cell)
    except ValueError:
        where = f"row {row!r}, column {column!r}"
        raise DataError(f"{cell!r} is not a number", file=path, unit=where, remedy="fill in every cell") from None


def _order_rows_as_columns(
    values: NDArray[np.float64], rows: Sequence[str], columns: Sequence[str], path: Path
) -> MatrixAndNames:
    """The matrix with its rows in the order of its columns."""
    _check_unique(rows, path)
    without = {"rows without a column": set(rows) - set(columns), "columns without a row": set(columns) - set(rows)}
    _check_names(without, path)
    places = {name: place for place, name in enumerate(rows)}
    return values[[places[name] for name in columns]], columns


def _match_labels(names: Sequence[str], labels: LabelSet, path: Path, *, more_names: bool = False) -> list[int]:
    """For each label, its row in the file; exact names first, then as `LabelSet.find` matches them."""
    exact = {name: place for place, name in enumerate(names)}
    rows = {label.id: exact[label.name] for label in labels if label.name in exact}
    extra = set()
    # With all labels found, names of other labels need no search.
    for name in exact.keys() - set(labels.names) if not more_names or len(rows) < len(labels) else ():
        try:
            label = labels.find(name)
        except OptionError:
            extra.add(name)
        else:
            if rows.setdefault(label.id, exact[name]) != exact[name]:
                extra.add(name)
    extra = set() if more_names else extra
    missing = {label.name for label in labels if label.id not in rows}
    _check_names({f"labels of {labels.name} that the file lacks": missing, "names that it does not have": extra}, path)
    return [rows[label.id] for label in labels]


def _check_names(wrong: Mapping[str, set[str]], path: Path) -> None:
    lines = []
    for what, names in wrong.items():
        if names:
            more = f" and {len(names) - _LISTED_NAMES} more" if len(names) > _LISTED_NAMES else ""
            lines.append(f"    {what}: {_list_names(sorted(names))}{more}")
    if lines:
        what = "\n".join(["the names do not match", *lines])
        raise DataError(what, file=path, remedy="name rows and columns as the labels are named, each once")


def _list_names(names: Sequence[str]) -> str:
    return ", ".join(shorten(name, 60) for name in names[:_LISTED_NAMES])


def _check_unique(names: Sequence[str], path: Path) -> None:
    if duplicates := sorted(name for name, count in Counter(names).items() if count > 1):
        remedy = "name each label once"
        raise DataError(f"duplicate names: {_list_names(duplicates)}", file=path, remedy=remedy)


def _check_values(
    values: NDArray[Any], names: Sequence[str] | None, path: Path, *, asymmetric: bool = False
) -> NDArray[np.float64]:
    with _name_file_in_errors(path):
        return check_similarity(values, labels=names, asymmetric=asymmetric)


@contextmanager
def _name_file_in_errors(path: Path) -> Iterator[None]:
    """What is wrong with the numbers of a file as an error of that file."""
    try:
        yield
    except ValueError as error:
        what, remedy = str(error), "a similarity matrix is square, symmetric, 1 on its diagonal, and within [0, 1]"
        if "one per label" in what and path.suffix == ".npy":
            remedy += f"; name its rows in {path.with_suffix('.txt').name} beside it if it is of other labels too"
        if "a symmetric matrix" in what:
            remedy += "; pass --asymmetric if it is meant (rows are true labels, columns predicted ones)"
        raise DataError(what, file=path, remedy=remedy) from error
