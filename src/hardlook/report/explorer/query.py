"""Queries of a table of records: parsed from the parameters of a URL, and written back into one.

| parameter | selects |
|---|---|
| `q` | units whose id contains this text, ignoring case |
| `is.COLUMN` | one of these values; repeatable; `=` before a value is allowed, and needed for the empty one |
| `min.COLUMN`, `max.COLUMN` | a range, ends included |
| `sort`, `order` | the column and `up` or `down` |
| `page`, `size` | the page, from 1, and its number of rows |

>>> query = parse_query([("q", "cat"), ("page", "2")], {"unit": UNIT})
>>> query.text, query.page, query.parameters(page=3)
('cat', 2, [('q', 'cat'), ('sort', 'unit'), ('order', 'up'), ('page', '3')])
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from hardlook.harness.benchmark import Quality
from hardlook.harness.records import RecordSchema
from hardlook.report.explorer.urls import PageError

if TYPE_CHECKING:
    import polars as pl

FieldKind = Literal["unit", "quality", "slice", "measurement"]
FieldType = Literal["int", "float", "bool", "text"]
MAX_LISTED = 200


@dataclass(frozen=True)
class Field:
    """A column to filter and sort by: `key` in URLs and in the frame, `title` and `meaning` on pages."""

    key: str
    title: str
    meaning: str
    kind: FieldKind
    type: FieldType
    higher_is_better: bool = True

    @property
    def numeric(self) -> bool:
        """Whether it can be filtered by a range."""
        return self.type in ("int", "float")


@dataclass(frozen=True)
class FieldSummary:
    """The values of a column: how many different ones, the range, and all of them where they are few."""

    distinct: int
    low: float | None = None
    high: float | None = None
    values: tuple[str, ...] = ()

    @property
    def constant(self) -> bool:
        """Whether all records have the same value."""
        return self.distinct <= 1


UNIT = Field("unit", "unit", "the unit's id", "unit", "text")


def list_fields(schema: RecordSchema, qualities: Sequence[Quality]) -> tuple[Field, ...]:
    """The unit, the qualities, then every column with one value per record.

    >>> from hardlook.harness.records import Column
    >>> schema = RecordSchema((Column("iou", "float", "overlap"), Column("cells", "ints", "counts")))
    >>> [field.key for field in list_fields(schema, [Quality("iou", "IoU")])]
    ['unit', 'quality.iou', 'iou']
    """
    taken = {"unit", *(column.name for column in schema.columns)}
    found = [UNIT]
    for quality in qualities:
        key = f"quality.{quality.name}" if quality.name in taken else quality.name
        found.append(Field(key, quality.title, quality.title, "quality", "float", quality.higher_is_better))
    for column in schema.columns:
        if column.kind != "picture" and column.type in ("int", "float", "bool", "text"):
            kind: FieldKind = "slice" if column.kind == "slice" else "measurement"
            scalar: FieldType = column.type
            found.append(Field(column.name, column.name, column.meaning, kind, scalar))
    return tuple(found)


def summarize_field(frame: pl.DataFrame, field: Field) -> FieldSummary:
    """Summarize the column; NaN has become null and counts as no value."""
    column = frame[field.key]
    if field.kind == "unit":
        return FieldSummary(len(column))
    distinct = column.n_unique()
    ends: tuple[Any, Any] = (column.min(), column.max()) if field.numeric else (None, None)
    low, high = (None if end is None else float(end) for end in ends)
    values: tuple[str, ...] = ()
    if field.kind == "slice" and distinct <= MAX_LISTED:
        values = tuple(format_slice_value(value) for value in column.unique().drop_nulls().sort().to_list())
    return FieldSummary(distinct, low, high, values)


def summarize_stored_field(lazy: pl.LazyFrame, count: int, field: Field) -> FieldSummary:
    """The same of a column that stays in its file; of measurements it only says whether all are the same."""
    import polars as pl

    if field.kind == "unit":
        return FieldSummary(count)
    column = pl.col(field.key)
    if field.kind == "slice":
        return summarize_field(lazy.select(column.unique()).collect(engine="streaming"), field)
    ends = lazy.select(low=column.min(), high=column.max(), missing=column.null_count()).collect(engine="streaming")
    first, last, missing = ends.row(0)
    low, high = (None if end is None or not field.numeric else float(end) for end in (first, last))
    return FieldSummary(1 if first == last and missing in (0, count) else 2, low, high)


def format_slice_value(value: object) -> str:
    """A slice's value as URLs and pages write it.

    >>> format_slice_value(True), format_slice_value(3), format_slice_value("beach")
    ('true', '3', 'beach')
    """
    return str(value).lower() if isinstance(value, bool) else str(value)


PAGE_SIZE, LARGEST_PAGE, LAST_PAGE = 50, 200, 10_000_000
MAX_TEXT = 300
_SINGLE = ("q", "sort", "order", "page", "size")


@dataclass(frozen=True)
class Query:
    """A query; `values` and `ranges` are by column, in the order of their names."""

    text: str = ""
    values: tuple[tuple[str, tuple[str, ...]], ...] = ()
    ranges: tuple[tuple[str, float | None, float | None], ...] = ()
    sort: str = "unit"
    descending: bool = False
    page: int = 1
    size: int = PAGE_SIZE

    @property
    def filtered(self) -> bool:
        """Whether it leaves out any records."""
        return bool(self.text or self.values or self.ranges)

    def parameters(self, **changes: Any) -> list[tuple[str, str]]:
        """The query as parameters of a URL, with some fields changed."""
        one = replace(self, **changes)
        pairs = [("q", one.text)] if one.text else []
        pairs += [(f"is.{key}", f"={value}") for key, values in one.values for value in values]
        for key, low, high in one.ranges:
            pairs += [
                (f"{end}.{key}", repr(bound)) for end, bound in (("min", low), ("max", high)) if bound is not None
            ]
        pairs += [("sort", one.sort), ("order", "down" if one.descending else "up")]
        pairs += [("page", str(one.page))] if one.page != 1 else []
        return pairs + ([("size", str(one.size))] if one.size != PAGE_SIZE else [])

    def condition(self, fields: Mapping[str, Field], types: Mapping[str, pl.DataType]) -> pl.Expr | None:
        """The filters as an expression, None without filters; `types` are those of the table's columns."""
        import polars as pl

        parts: list[pl.Expr] = []
        if self.text:
            parts.append(pl.col("unit").str.contains_any([self.text], ascii_case_insensitive=True))
        for key, values in self.values:
            dtype = types[key]
            # A categorical column is compared by its codes; no record has a value that is not among its categories.
            known = [value for value in values if not isinstance(dtype, pl.Enum) or value in dtype.categories]
            equal = [pl.col(key) == pl.lit(_parse_value(fields[key], value), dtype=dtype) for value in known]
            parts.append(pl.any_horizontal(equal) if equal else pl.col("unit").is_null())
        for key, low, high in self.ranges:
            if low is not None:
                parts.append(pl.col(key) >= low)
            if high is not None:
                parts.append(pl.col(key) <= high)
        return pl.all_horizontal(parts) if parts else None


def parse_query(
    pairs: Iterable[tuple[str, str]], fields: Mapping[str, Field], *, sort: str = "unit", descending: bool = False
) -> Query:
    """The query in the parameters of a URL; `sort` is the default. Parameters that make no sense give an error page."""
    single: dict[str, str] = {}
    values: dict[str, list[str]] = {}
    bounds: dict[str, dict[str, float]] = {}
    for name, text in pairs:
        kind, dot, key = name.partition(".")
        if name in _SINGLE:
            if name in single:
                raise PageError(f"The parameter {name} is given twice.")
            single[name] = text
        elif dot and kind in ("is", "min", "max"):
            field = fields.get(key)
            if field is None:
                raise PageError(f"There is no column {truncate(key)}. There are: {', '.join(fields)}.")
            if not text:
                continue  # A form also sends its empty fields.
            if kind == "is":
                if field.kind != "slice":
                    raise PageError(f"The column {key} is not a slice: use min.{key} and max.{key} for a range.")
                values.setdefault(key, []).append(text.removeprefix("="))
                _parse_value(field, values[key][-1])
            else:
                if not field.numeric:
                    raise PageError(f"The column {key} has no numbers, and so no range.")
                bounds.setdefault(key, {})[kind] = _parse_number(text, name)
        else:
            raise PageError(f"There is no parameter {truncate(name)}.")
    text, key, order = single.get("q", "").strip(), single.get("sort", "") or sort, single.get("order", "")
    if len(text) > MAX_TEXT:
        raise PageError(f"The text to look for has {len(text)} characters; {MAX_TEXT} are allowed.")
    if key not in fields:
        raise PageError(f"There is no column {truncate(key)} to sort by. There are: {', '.join(fields)}.")
    if order not in ("", "up", "down"):
        raise PageError(f"The order is up or down, not {truncate(order)}.")
    return Query(
        text=text,
        values=tuple((key, tuple(dict.fromkeys(values[key]))) for key in sorted(values)),
        ranges=tuple((key, bounds[key].get("min"), bounds[key].get("max")) for key in sorted(bounds)),
        sort=key,
        descending=order == "down" if order else descending and not single.get("sort"),
        page=_parse_whole_number(single.get("page", ""), "page", 1, LAST_PAGE),
        size=_parse_whole_number(single.get("size", ""), "size", PAGE_SIZE, LARGEST_PAGE),
    )


def truncate(text: str, most: int = 60) -> str:
    """A text from a request, short enough for a message."""
    return text if len(text) <= most else f"{text[:most]}\N{HORIZONTAL ELLIPSIS}"


def _parse_value(field: Field, value: str) -> Any:
    """A slice's value in the type of its column."""
    if field.type == "text":
        return value
    if field.type == "bool":
        if value not in ("true", "false"):
            raise PageError(f"The column {field.key} is true or false, not {truncate(value)}.")
        return value == "true"
    number = _parse_number(value, f"is.{field.key}")
    if field.type == "int" and (number != int(number) or abs(number) >= 2**63):
        raise PageError(f"The column {field.key} holds whole numbers, not {truncate(value)}.")
    return int(number) if field.type == "int" else number


def _parse_number(text: str, name: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise PageError(f"{truncate(name)} takes a finite number, not {truncate(text)}.")
    return number


def _parse_whole_number(text: str, name: str, default: int, most: int) -> int:
    if not text:
        return default
    if not (text.isascii() and text.isdigit()) or len(text) > 9 or not 1 <= int(text) <= most:
        raise PageError(f"The parameter {name} is a whole number from 1 to {most}, not {truncate(text)}.")
    return int(text)


def describe_filters(query: Query, fields: Mapping[str, Field]) -> list[str]:
    """A text for each filter.

    >>> describe_filters(Query(text="cat"), {"unit": UNIT})
    ['the id contains \N{LEFT DOUBLE QUOTATION MARK}cat\N{RIGHT DOUBLE QUOTATION MARK}']
    """
    quoted = f"\N{LEFT DOUBLE QUOTATION MARK}{query.text}\N{RIGHT DOUBLE QUOTATION MARK}"
    words = [f"the id contains {quoted}"] if query.text else []
    for key, values in query.values:
        words.append(f"{fields[key].title} is {' or '.join(value or '(empty)' for value in values)}")
    for key, low, high in query.ranges:
        ends = [f"from {low:g}" if low is not None else "", f"to {high:g}" if high is not None else ""]
        words.append(f"{fields[key].title} {' '.join(filter(None, ends))}")
    return words
