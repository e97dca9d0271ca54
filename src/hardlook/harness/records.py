"""Records, one flat typed row per unit, and the schema that defines their columns.

Integers where the truth is an integer (pixels, intersections, counts): scores can then be recomputed, merged,
sliced and bootstrapped exactly.

>>> schema = RecordSchema((Column("context", "text", "where", "slice"), Column("hits", "int", "how many")))
>>> schema.check({"unit": "a", "context": "beach", "hits": 3})
>>> schema.check({"unit": "a", "context": "beach", "hits": 3.5})
Traceback (most recent call last):
...
TypeError: record 'a': column 'hits' holds int, got float 3.5
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import polars as pl

Record = Mapping[str, Any]
ColumnType = Literal["int", "float", "bool", "text", "bytes", "ints", "floats"]
ColumnKind = Literal["slice", "measurement", "picture"]

_PYTHON_TYPES: Mapping[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (float, int),
    "bool": (bool,),
    "text": (str,),
    "bytes": (bytes,),
    "ints": (list, tuple),
    "floats": (list, tuple),
}


@dataclass(frozen=True)
class Column:
    """A column of a record: a `slice` groups scores, a `measurement` enters them, a `picture` only shows the unit."""

    name: str
    type: ColumnType
    meaning: str
    kind: ColumnKind = "measurement"


@dataclass(frozen=True)
class RecordSchema:
    """The columns of a benchmark's records, after the first one, `unit` (text, the unit's id)."""

    columns: tuple[Column, ...]

    @property
    def slices(self) -> tuple[str, ...]:
        """Names of the columns that scores can be sliced by."""
        return tuple(column.name for column in self.columns if column.kind == "slice")

    @property
    def light(self) -> tuple[str, ...]:
        """Names of all columns that scoring reads: everything but pictures."""
        return ("unit", *(column.name for column in self.columns if column.kind != "picture"))

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset({"unit", *(column.name for column in self.columns)})

    @cached_property
    def _usual_types(self) -> tuple[tuple[str, frozenset[type]], ...]:
        """By column the types that need no closer look; a bool is no number here, and a numpy float is a float."""
        return tuple((column.name, frozenset(_PYTHON_TYPES[column.type])) for column in self.columns)

    def check(self, record: Record) -> None:
        """Raise an error where a record's names or types differ from the schema."""
        if record.keys() == self._names:
            for name, types in self._usual_types:
                if type(record[name]) not in types:
                    break
            else:
                return
        expected = self._names
        if set(record) != expected:
            missing, surplus = sorted(expected - set(record)), sorted(set(record) - expected)
            raise TypeError(f"record {record.get('unit')!r}: missing columns {missing}, unexpected {surplus}")
        for column in self.columns:
            value = record[column.name]
            is_bool_number = column.type in ("int", "float") and isinstance(value, bool)
            if is_bool_number or not isinstance(value, _PYTHON_TYPES[column.type]):
                raise TypeError(
                    f"record {record['unit']!r}: column {column.name!r} holds {column.type}, "
                    f"got {type(value).__name__} {value!r:.80}"
                )

    def frame(self, records: Iterable[Record], *, checked: bool = False) -> pl.DataFrame:
        """The records as a table with this schema's types, whatever the values are; `checked` where they have been."""
        import polars as pl

        rows = list(records)
        for row in () if checked else rows:
            self.check(row)
        return pl.DataFrame(rows, schema=self.polars_schema(), orient="row")

    def polars_schema(self) -> dict[str, Any]:
        """Column name to polars type."""
        import polars as pl

        types: dict[str, Any] = {"int": pl.Int64(), "float": pl.Float64(), "bool": pl.Boolean(), "text": pl.String()}
        types |= {"bytes": pl.Binary(), "ints": pl.List(pl.Int64()), "floats": pl.List(pl.Float64())}
        return {"unit": pl.String(), **{column.name: types[column.type] for column in self.columns}}
