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

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
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
    """A column of a record: a `slice` groups scores, a `measurement` enters them, a `picture` only shows the unit.

    `default` is its value in records that were written before the column was added; None where all records have it.
    """

    name: str
    type: ColumnType
    meaning: str
    kind: ColumnKind = "measurement"
    default: Any = None


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
    def _usual_types(self) -> tuple[tuple[Callable[[Record], Any], frozenset[type]], ...]:
        """By column, as its getter, types that need no closer look; subclasses do, such as bool or numpy's float."""
        columns = [("unit", "text"), *((column.name, column.type) for column in self.columns)]
        return tuple((itemgetter(name), frozenset(_PYTHON_TYPES[kind])) for name, kind in columns)

    def check_all(self, records: Sequence[Record]) -> None:
        """Raise an error where a record's names or types differ from the schema.

        Columns are looked at as a whole first, which for many records takes a fifth of the time.
        """
        try:
            if set(map(len, records)) <= {len(self._names)} and all(
                set(map(type, map(get, records))) <= types for get, types in self._usual_types
            ):
                return
        except (LookupError, TypeError):
            pass  # The error below describes the problem, with the record's name.
        for record in records:
            self.check(record)

    def check(self, record: Record) -> None:
        """Raise an error where a record's names or types differ from the schema."""
        optional = {column.name for column in self.columns if column.default is not None}
        missing, surplus = sorted(self._names - optional - set(record)), sorted(set(record) - self._names)
        if missing or surplus:
            raise TypeError(f"record {record.get('unit')!r}: missing columns {missing}, unexpected {surplus}")
        for column in self.columns:
            value = record.get(column.name, column.default)
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
        if not checked:
            self.check_all(rows)
        defaults = {column.name: column.default for column in self.columns if column.default is not None}
        filled = [{**defaults, **row} for row in rows] if defaults else rows
        return pl.DataFrame(filled, schema=self.polars_schema(), orient="row")

    def defaults(self) -> dict[str, pl.Expr]:
        """By name the columns that records of earlier versions lack, each filled with its default."""
        import polars as pl

        kinds = self.polars_schema()
        return {
            column.name: pl.lit(column.default, kinds[column.name]).alias(column.name)
            for column in self.columns
            if column.default is not None
        }

    def polars_schema(self) -> dict[str, Any]:
        """Column name to polars type."""
        import polars as pl

        types: dict[str, Any] = {"int": pl.Int64(), "float": pl.Float64(), "bool": pl.Boolean(), "text": pl.String()}
        types |= {"bytes": pl.Binary(), "ints": pl.List(pl.Int64()), "floats": pl.List(pl.Float64())}
        return {"unit": pl.String(), **{column.name: types[column.type] for column in self.columns}}
