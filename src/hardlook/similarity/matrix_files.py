"""Similarity matrices in files: CSV, Parquet, or .npy with the names beside it.

A CSV has the labels' names as its header and its first column; Parquet has them in its first column and as the names
of the others. Beside `S.npy` lie the names as `S.txt` (one a line) or `S.json`; without them rows are taken in the
label set's order.

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
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import DataError, OptionError
from hardlook.similarity.labels import LabelSet
from hardlook.similarity.matrix import check_similarity

SUFFIXES = (".csv", ".npy", ".parquet")

SHOWN = 12


@dataclass(frozen=True, eq=False)
class NamedMatrix:
    """A similarity matrix (K, K) float64 and the K names of its rows; None where the file names none."""

    values: NDArray[np.float64] = field(repr=False)
    names: tuple[str, ...] | None


def write_matrix(path: Path | str, matrix: NDArray[np.float64], names: Sequence[str]) -> None:
    """Write a similarity matrix (K, K) with its K names; the suffix chooses the format. Numbers are kept exactly."""
    path = Path(path)
    _known_suffix(path)
    values = _checked(matrix, names, path)
    _unique(names, path)
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


def read_matrix(path: Path | str, labels: LabelSet | None = None) -> NamedMatrix:
    """Read and check a similarity matrix; with `labels` given, in their order.

    A matrix that is not symmetric, not 1 on the diagonal, out of [0, 1] or not finite is a `DataError` that names the
    cell; names that do not fit the labels are one that lists them. Rounding up to 1e-6 is mended.
    """
    path = Path(path)
    _known_suffix(path)
    if not path.is_file():
        raise DataError("the similarity matrix does not exist", file=path, remedy="check the path")
    values, names = {".csv": _read_csv, ".npy": _read_npy, ".parquet": _read_parquet}[path.suffix](path)
    if names is not None:
        _unique(names, path)
    elif labels is not None:
        names = labels.names
    matrix = _checked(values, names, path)
    if labels is None or names is None:
        return NamedMatrix(matrix, None if names is None else tuple(names))
    order = _places(names, labels, path)
    return NamedMatrix(matrix[np.ix_(order, order)], labels.names)


Read = tuple[NDArray[np.float64], Sequence[str] | None]


def _read_csv(path: Path) -> Read:
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            header, *lines = [row for row in csv.reader(stream) if row]
    except (ValueError, csv.Error) as error:
        raise DataError(f"not a readable CSV file: {error}", file=path, remedy="write it in UTF-8") from error
    names = [name.strip() for name in header[1:]]
    for number, line in enumerate(lines, 2):
        if len(line) != len(header):
            what = f"expected {len(header)} cells as in the header, came {len(line)}"
            raise DataError(what, file=path, unit=f"row {number}", remedy="write one row and one column a label")
    values = np.array([[_number(cell, line[0], name, path) for cell, name in _cells(line, names)] for line in lines])
    return _rows_as_columns(values.reshape(len(lines), len(names)), [line[0].strip() for line in lines], names, path)


def _read_parquet(path: Path) -> Read:
    import polars as pl

    try:
        table = pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"not a readable Parquet file: {error}", file=path, remedy="write it again") from error
    first, *names = table.columns
    if table.schema[first] != pl.String or not all(table.schema[name].is_numeric() for name in names):
        remedy = "the first column holds the labels' names, the others numbers, one column a label"
        raise DataError("the columns are not those of a similarity matrix", file=path, remedy=remedy)
    return _rows_as_columns(table.select(names).cast(pl.Float64).to_numpy(), table[first].to_list(), names, path)


def _read_npy(path: Path) -> Read:
    try:
        values = np.load(path, allow_pickle=False).astype(np.float64)
    except (ValueError, EOFError, OSError, AttributeError) as error:
        raise DataError(f"not a readable NumPy file: {error}", file=path, remedy="write it with np.save") from error
    if path.with_suffix(".txt").is_file():
        lines = path.with_suffix(".txt").read_text(encoding="utf-8").splitlines()
        return values, [line.strip() for line in lines if line.strip()]
    if path.with_suffix(".json").is_file():
        return values, [str(name) for name in json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))]
    return values, None


def _cells(line: Sequence[str], names: Sequence[str]) -> list[tuple[str, str]]:
    return list(zip(line[1:], names, strict=True))


def _number(cell: str, row: str, column: str, path: Path) -> float:
    try:
        return float(cell)
    except ValueError:
        where = f"row {row!r}, column {column!r}"
        raise DataError(f"{cell!r} is not a number", file=path, unit=where, remedy="fill in every cell") from None


def _rows_as_columns(values: NDArray[np.float64], rows: Sequence[str], columns: Sequence[str], path: Path) -> Read:
    """The matrix with its rows in the order of its columns."""
    _unique(rows, path)
    if set(rows) != set(columns):
        _refuse_names(
            "rows without a column", set(rows) - set(columns), "columns without a row", set(columns) - set(rows), path
        )
    places = {name: place for place, name in enumerate(rows)}
    return values[[places[name] for name in columns]], columns


def _places(names: Sequence[str], labels: LabelSet, path: Path) -> list[int]:
    """For each label, its row in the file; exact names first, then as `LabelSet.find` takes them."""
    exact = {name: place for place, name in enumerate(names)}
    found = {label.id: exact[label.name] for label in labels if label.name in exact}
    strangers = set()
    for name in exact.keys() - set(labels.names):
        place = exact[name]
        try:
            label = labels.find(name)
        except OptionError:
            strangers.add(name)
        else:
            if found.setdefault(label.id, place) != place:
                strangers.add(name)
    missing = {label.name for label in labels if label.id not in found}
    if strangers or missing:
        _refuse_names(
            f"labels of {labels.name} that the file lacks", missing, "names that it does not have", strangers, path
        )
    return [found[label.id] for label in labels]


def _refuse_names(first: str, some: set[str], second: str, others: set[str], path: Path) -> None:
    lines = []
    for what, names in ((first, some), (second, others)):
        if names:
            more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
            lines.append(f"    {what}: {', '.join(sorted(names)[:SHOWN])}{more}")
    what = "\n".join(["the names do not fit", *lines])
    raise DataError(what, file=path, remedy="name rows and columns as the labels are named, each once")


def _unique(names: Sequence[str], path: Path) -> None:
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise DataError(f"names that come twice: {', '.join(twice[:SHOWN])}", file=path, remedy="name each label once")


def _checked(values: NDArray[np.float64], names: Sequence[str] | None, path: Path) -> NDArray[np.float64]:
    try:
        return check_similarity(values, labels=None if names is None else list(names))
    except ValueError as error:
        remedy = "a similarity matrix is square, symmetric, 1 on its diagonal, and within [0, 1]"
        raise DataError(str(error), file=path, remedy=remedy) from error


def _known_suffix(path: Path) -> None:
    if path.suffix not in SUFFIXES:
        what = f"no format for {path.suffix or 'a name without an ending'}"
        raise OptionError(what, unit=path.name, remedy=f"end the name in {', '.join(SUFFIXES)}")
