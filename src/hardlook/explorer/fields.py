"""The columns that a table of records can be filtered and sorted by, and what is known of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from hardlook.contract.benchmark import Quality
from hardlook.contract.records import RecordSchema

if TYPE_CHECKING:
    import polars as pl

Kind = Literal["unit", "quality", "slice", "measurement"]
Type = Literal["int", "float", "bool", "text"]
MOST_LISTED = 200


@dataclass(frozen=True)
class Field:
    """A column: `key` in addresses and in the frame, `title` and `meaning` for people."""

    key: str
    title: str
    meaning: str
    kind: Kind
    type: Type
    higher_is_better: bool = True

    @property
    def numeric(self) -> bool:
        """Whether a range can be asked for."""
        return self.type in ("int", "float")


@dataclass(frozen=True)
class FieldFacts:
    """What the records hold in a column: how many different values, the range, the values when they are few."""

    distinct: int
    low: float | None = None
    high: float | None = None
    values: tuple[str, ...] = ()

    @property
    def constant(self) -> bool:
        """Whether all records hold the same."""
        return self.distinct <= 1


UNIT = Field("unit", "unit", "the unit's id", "unit", "text")


def fields_of(schema: RecordSchema, qualities: Sequence[Quality]) -> tuple[Field, ...]:
    """The unit, the qualities, then every column that holds one value a record.

    >>> from hardlook.contract.records import Column
    >>> schema = RecordSchema((Column("iou", "float", "overlap"), Column("cells", "ints", "counts")))
    >>> [field.key for field in fields_of(schema, [Quality("iou", "IoU")])]
    ['unit', 'quality.iou', 'iou']
    """
    taken = {"unit", *(column.name for column in schema.columns)}
    found = [UNIT]
    for quality in qualities:
        key = f"quality.{quality.name}" if quality.name in taken else quality.name
        found.append(Field(key, quality.title, quality.title, "quality", "float", quality.higher_is_better))
    for column in schema.columns:
        if column.kind != "picture" and column.type in ("int", "float", "bool", "text"):
            kind: Kind = "slice" if column.kind == "slice" else "measurement"
            scalar: Type = column.type
            found.append(Field(column.name, column.name, column.meaning, kind, scalar))
    return tuple(found)


def facts_of(frame: pl.DataFrame, field: Field) -> FieldFacts:
    """What the frame holds in that column; NaN is null by now and counts as no value."""
    column = frame[field.key]
    if field.kind == "unit":
        return FieldFacts(len(column))
    distinct = column.n_unique()
    if field.numeric:
        low, high = column.min(), column.max()
        bounds = (None if low is None else float(low), None if high is None else float(high))  # type: ignore[arg-type]
    else:
        bounds = (None, None)
    values: tuple[str, ...] = ()
    if field.kind == "slice" and distinct <= MOST_LISTED:
        values = tuple(text_of(value) for value in column.unique().drop_nulls().sort().to_list())
    return FieldFacts(distinct, *bounds, values)


def text_of(value: object) -> str:
    """A slice's value as addresses and pages write it.

    >>> text_of(True), text_of(3), text_of("beach")
    ('true', '3', 'beach')
    """
    return str(value).lower() if isinstance(value, bool) else str(value)
