"""Records, one flat typed row per unit, and the schema that defines their columns.

Integers where the truth is an integer (pixels, intersections, counts): scores can then be recomputed, merged,
sliced and bootstrapped exactly.

>>> schema = RecordSchema((Column("context", "text", "where", "slice"), Column("hits", "int", "how many")))
>>> schema.check({"unit": "a", "context": "beach", "hits": 3})
>>> schema.check({"unit": "a", "context": "beach", "hits": 3.5})
Traceback (most recent call last):
...
TypeError: record 'a': column 'hits' holds int of 64 bits, got float 3.5
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from numbers import Integral, Real
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

_LOWEST, _HIGHEST = -(2**63), 2**63 - 1


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
    def _kinds(self) -> Mapping[str, ColumnType]:
        return {"unit": "text", **{column.name: column.type for column in self.columns}}

    def check_all(self, records: Sequence[Record]) -> None:
        """Raise an error where a record's names or types differ from the schema.

        Columns are looked at as a whole first, which for many records takes a fifth of the time.
        """
        try:
            if set(map(len, records)) <= {len(self._names)} and all(
                _are_usual(kind, [record[name] for record in records]) for name, kind in self._kinds.items()
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
        defaults = {column.name: column.default for column in self.columns}
        for name, kind in self._kinds.items():
            value = record.get(name, defaults.get(name))
            if wrong := _find_wrong(kind, value):
                raise TypeError(
                    f"record {record['unit']!r}: column {name!r} holds {_MEANINGS.get(kind, kind)}, "
                    f"got {type(wrong[0]).__name__} {wrong[0]!r:.80}"
                )

    def frame(self, records: Iterable[Record], *, checked: bool = False) -> pl.DataFrame:
        """The records as a table with this schema's types, whatever the values are; `checked` where they have been."""
        import polars as pl

        rows = list(records)
        if not checked:
            self.check_all(rows)
        defaults = {column.name: column.default for column in self.columns if column.default is not None}
        filled = [{**defaults, **row} for row in rows] if defaults else rows
        for name in (name for name, kind in self._kinds.items() if kind in _ELEMENTS):
            # A list of floats may hold whole numbers and numbers of numpy, from which polars would infer another type.
            convert = _ELEMENTS[self._kinds[name]]
            if not set(map(type, chain.from_iterable(row[name] for row in filled))) <= {convert}:
                filled = [{**row, name: list(map(convert, row[name]))} for row in filled]
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


_NUMBERS: Mapping[str, type] = {"int": int, "float": float}
_ELEMENTS: Mapping[str, type] = {"ints": int, "floats": float}

_MEANINGS: Mapping[str, str] = {"int": "int of 64 bits", "ints": "ints of 64 bits", "text": "text in UTF-8"}
"""What a column holds, where its type alone does not say why a value is refused."""


def _are_usual(kind: ColumnType, values: list[Any]) -> bool:
    """Whether the values need no closer look; those of subclasses do, such as bool or numpy's float."""
    if not set(map(type, values)) <= set(_PYTHON_TYPES[kind]):
        return False
    if kind in _ELEMENTS:
        values = list(chain.from_iterable(values))
        if not set(map(type, values)) <= {_ELEMENTS[kind]}:
            return False
    if kind == "text":
        return _is_encodable("".join(values))
    if kind in ("int", "ints"):
        return not values or (min(values) >= _LOWEST and max(values) <= _HIGHEST)
    return kind != "float" or int not in map(type, values)


def _find_wrong(kind: ColumnType, value: Any) -> list[Any]:
    """What a column of this type cannot hold as it is: the value, or the elements of a list; empty if it can."""
    is_right = isinstance(value, _PYTHON_TYPES[kind])
    if is_right and kind in _ELEMENTS:
        return [element for element in value if not _is_number(_ELEMENTS[kind], element)]
    if is_right and kind == "text":
        is_right = _is_encodable(value)
    if is_right and kind in _NUMBERS:
        is_right = _is_number(_NUMBERS[kind], value)
    return [] if is_right else [value]


def _is_number(kind: type, value: Any) -> bool:
    """Whether the value is a whole number of 64 bits, or one that a float can approximate; truth values are neither."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    if kind is int:
        return isinstance(value, Integral) and _LOWEST <= int(value) <= _HIGHEST
    try:
        float(value)
    except OverflowError:
        return False
    return True


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
