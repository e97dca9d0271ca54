r"""Published numbers: CSV files in a system's `published/` folder, one schema for all, one reader.

`tables.csv` has a row per printed table: `paper,table,title,labels,columns,note`. `table` is what commands call it
(`table-4`), `columns` are the printed columns with `|` between them, and the first `labels` of them name a row.
`cells.csv` has a row per printed cell: `paper,table,row,column,value`, so that each number says where it is printed;
`row` is made of the row's labels with `|` between them. An empty value is an empty cell; a row that is nothing but
labels has one line with an empty column.

>>> tables = 'paper,table,title,labels,columns,note\nA paper,table-1,Results,2,method|shots|mIoU|epochs,\n'
>>> cells = 'paper,table,row,column,value\nA paper,table-1,HSNet|1,mIoU,0.58\nA paper,table-1,HSNet|1,epochs,\n'
>>> published = parse_published(tables, cells)
>>> published.cell("table-1", "HSNet|1", "mIoU"), published.tables["table-1"].rows
(0.58, (('HSNet', 1, 0.58, None),))
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

from hardlook.errors import DataError

PublishedCell = str | float | int | None
TABLE_COLUMNS = ("paper", "table", "title", "labels", "columns", "note")
CELL_COLUMNS = ("paper", "table", "row", "column", "value")
_WHOLE = re.compile(r"-?\d+")
_DECIMAL = re.compile(r"-?\d*\.\d+(e-?\d+)?")


def percent(fraction: float) -> float:
    """A fraction of 1 in percent, without what binary numbers add behind the printed digits.

    >>> 100 * 0.57, percent(0.57)
    (56.99999999999999, 57.0)
    """
    return round(100 * fraction, 6)


def fraction(percent: float) -> float:
    """A printed percentage as a fraction of 1, with the printed digits and no others.

    >>> 58.59 / 100, fraction(58.59)
    (0.5859000000000001, 0.5859)
    """
    return round(percent / 100, 10)


@dataclass(frozen=True)
class PublishedResult:
    """A published row: values in our scores' own scale, of the slice `where` (empty: all units), and if it compares.

    `costs` are those of the method, if printed, by the titles of `CostMeasure.read`.
    """

    method: str
    source: str
    values: Mapping[str, float]
    comparable: str
    where: Mapping[str, str] = field(default_factory=dict)
    costs: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class PublishedTable:
    """A table as printed, number for number; commands call it `name` (`table-4`); `note` has units and misfits."""

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[PublishedCell]]
    source: str = ""
    note: str = ""


@dataclass(frozen=True)
class Published:
    """The printed tables of one system by name (`table-4`), in the order of `tables.csv`."""

    tables: Mapping[str, PublishedTable]
    _cells: Mapping[tuple[str, str, str], PublishedCell]

    def rows(self, table: str) -> tuple[str, ...]:
        """The labels of a table's rows, as printed from top to bottom."""
        return tuple(dict.fromkeys(row for name, row, _ in self._cells if name == table))

    def cell(self, table: str, row: str, column: str) -> PublishedCell:
        """One cell as printed; None where it is empty, an error where the table has no such cell."""
        try:
            return self._cells[table, row, column]
        except KeyError:
            raise DataError(f"no published cell {table!r}, row {row!r}, column {column!r}") from None

    def number(self, table: str, row: str, column: str) -> float:
        """One cell that must be a number."""
        value = self.cell(table, row, column)
        if not isinstance(value, int | float):
            raise DataError(f"published {table!r}, row {row!r}, column {column!r} is not a number: {value!r}")
        return float(value)


@cache
def read_published(package: str) -> Published:
    """The published numbers of a system, from the folder `published` of its package, such as `hardlook.toss`."""
    folder = files(package).joinpath("published")
    tables, cells = (folder.joinpath(name).read_text(encoding="utf-8") for name in ("tables.csv", "cells.csv"))
    return parse_published(tables, cells)


def parse_published(tables: str, cells: str) -> Published:
    """The texts of `tables.csv` and `cells.csv`, checked: every cell has its table and column, none is there twice."""
    described = {row["table"]: row for row in _read(tables, "tables.csv", TABLE_COLUMNS)}
    columns = {name: tuple(row["columns"].split("|")) for name, row in described.items()}
    rows: dict[str, dict[str, dict[str, PublishedCell]]] = {name: {} for name in described}
    flat: dict[tuple[str, str, str], PublishedCell] = {}
    for cell in _read(cells, "cells.csv", CELL_COLUMNS):
        table, row, column = cell["table"], cell["row"], cell["column"]
        if table not in columns or described[table]["paper"] != cell["paper"] or column not in ("", *columns[table]):
            raise DataError(f"cells.csv: {cell['paper']}, {table}, column {column!r} is not in tables.csv")
        if (table, row, column) in flat:
            raise DataError(f"cells.csv: {table}, row {row!r}, column {column!r} is there twice")
        flat[table, row, column] = rows[table].setdefault(row, {})[column] = _value(cell["value"])
    made = {}
    for name, about in described.items():
        labels = int(about["labels"])
        cells_of = [
            (*map(_value, row.split("|")), *(values.get(column) for column in columns[name][labels:]))
            for row, values in rows[name].items()
        ]
        made[name] = PublishedTable(name, about["title"], columns[name], tuple(cells_of), about["paper"], about["note"])
    return Published(made, flat)


def _read(text: str, name: str, columns: Sequence[str]) -> list[dict[str, str]]:
    reader = csv.DictReader(io.StringIO(text))
    if tuple(reader.fieldnames or ()) != tuple(columns):
        raise DataError(f"{name}: expected the columns {','.join(columns)}, got {','.join(reader.fieldnames or ())}")
    return list(reader)


def _value(text: str) -> PublishedCell:
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _DECIMAL.fullmatch(text) else text or None
