"""What a page asks of a table of records, read from an address and written back into one.

| parameter | asks for |
|---|---|
| `q` | units whose id holds this text, capitals or not |
| `is.COLUMN` | one of these values; repeatable; `=` before a value is allowed, and needed for the empty one |
| `min.COLUMN`, `max.COLUMN` | a range, ends included |
| `sort`, `order` | the column and `up` or `down` |
| `page`, `size` | which page, from 1, and how many rows it has |

>>> from hardlook.explorer.fields import UNIT
>>> query = parse_query([("q", "cat"), ("page", "2")], {"unit": UNIT})
>>> query.text, query.page, query.address(page=3)
('cat', 2, 'q=cat&sort=unit&order=up&page=3')
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from hardlook.explorer.fields import Field
from hardlook.explorer.refusals import Refused

if TYPE_CHECKING:
    import polars as pl

PAGE_SIZE, LARGEST_PAGE, LAST_PAGE = 50, 200, 10_000_000
MOST_TEXT = 300
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
        """Whether anything is left out."""
        return bool(self.text or self.values or self.ranges)

    def without_page(self) -> Query:
        """The query that all pages of it share."""
        return replace(self, page=1, size=PAGE_SIZE)

    def pairs(self, **changes: Any) -> list[tuple[str, str]]:
        """The query as parameters of an address, with some fields changed."""
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

    def address(self, **changes: Any) -> str:
        """The same as text after the question mark."""
        return urlencode(self.pairs(**changes))

    def condition(self, fields: Mapping[str, Field], kinds: Mapping[str, pl.DataType]) -> pl.Expr | None:
        """What a record must fulfil, or None where all do; `kinds` are the types of the table's columns."""
        import polars as pl

        parts: list[pl.Expr] = []
        if self.text:
            parts.append(pl.col("unit").str.contains_any([self.text], ascii_case_insensitive=True))
        for key, values in self.values:
            kind = kinds[key]
            # A coded column is compared by its codes; a value that is not among them is no record's.
            known = [value for value in values if not isinstance(kind, pl.Enum) or value in kind.categories]
            equal = [pl.col(key) == pl.lit(_typed(fields[key], value), dtype=kind) for value in known]
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
    """The query in an address; what cannot be meant is refused with a sentence. `sort` is used where none is said."""
    single: dict[str, str] = {}
    values: dict[str, list[str]] = {}
    bounds: dict[str, dict[str, float]] = {}
    for name, text in pairs:
        kind, dot, key = name.partition(".")
        if name in _SINGLE:
            if name in single:
                raise Refused(f"The parameter {name} is given twice.")
            single[name] = text
        elif dot and kind in ("is", "min", "max"):
            field = fields.get(key)
            if field is None:
                raise Refused(f"There is no column {shortened(key)}. There are: {', '.join(fields)}.")
            if not text:
                continue  # A form sends the fields that nobody filled in, too.
            if kind == "is":
                if field.kind != "slice":
                    raise Refused(f"The column {key} is no slice: ask for a range by min.{key} and max.{key}.")
                values.setdefault(key, []).append(text.removeprefix("="))
                _typed(field, values[key][-1])
            else:
                if not field.numeric:
                    raise Refused(f"The column {key} holds no numbers: it has no range.")
                bounds.setdefault(key, {})[kind] = _number(text, name)
        else:
            raise Refused(f"There is no parameter {shortened(name)}.")
    return Query(
        text=_short(single.get("q", "").strip()),
        values=tuple((key, tuple(dict.fromkeys(values[key]))) for key in sorted(values)),
        ranges=tuple((key, bounds[key].get("min"), bounds[key].get("max")) for key in sorted(bounds)),
        sort=_sorted_by(single.get("sort", "") or sort, fields),
        descending=_order(single.get("order", ""), descending if not single.get("sort") else False),
        page=_whole(single.get("page", ""), "page", 1, LAST_PAGE),
        size=_whole(single.get("size", ""), "size", PAGE_SIZE, LARGEST_PAGE),
    )


def shortened(text: str, most: int = 60) -> str:
    """A text that came from outside, short enough to be told back."""
    return text if len(text) <= most else f"{text[:most]}\N{HORIZONTAL ELLIPSIS}"


def _typed(field: Field, value: str) -> Any:
    """A slice's value in the type of its column."""
    if field.type == "text":
        return value
    if field.type == "bool":
        if value not in ("true", "false"):
            raise Refused(f"The column {field.key} is true or false, not {shortened(value)}.")
        return value == "true"
    number = _number(value, f"is.{field.key}")
    if field.type == "int" and (number != int(number) or abs(number) >= 2**63):
        raise Refused(f"The column {field.key} holds whole numbers, not {shortened(value)}.")
    return int(number) if field.type == "int" else number


def _number(text: str, name: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise Refused(f"{shortened(name)} takes a finite number, not {shortened(text)}.")
    return number


def _whole(text: str, name: str, default: int, most: int) -> int:
    if not text:
        return default
    if not (text.isascii() and text.isdigit()) or len(text) > 9 or not 1 <= int(text) <= most:
        raise Refused(f"The parameter {name} is a whole number from 1 to {most}, not {shortened(text)}.")
    return int(text)


def _order(text: str, default: bool) -> bool:
    if text not in ("", "up", "down"):
        raise Refused(f"The order is up or down, not {shortened(text)}.")
    return text == "down" if text else default


def _sorted_by(key: str, fields: Mapping[str, Field]) -> str:
    if key not in fields:
        raise Refused(f"There is no column {shortened(key)} to sort by. There are: {', '.join(fields)}.")
    return key


def _short(text: str) -> str:
    if len(text) > MOST_TEXT:
        raise Refused(f"The text to look for has {len(text)} characters; {MOST_TEXT} are allowed.")
    return text


def described(query: Query, fields: Mapping[str, Field]) -> list[str]:
    """The filters in words, one a filter.

    >>> from hardlook.explorer.fields import UNIT
    >>> described(Query(text="cat"), {"unit": UNIT})
    ['the id holds \N{LEFT DOUBLE QUOTATION MARK}cat\N{RIGHT DOUBLE QUOTATION MARK}']
    """
    words = (
        [f"the id holds \N{LEFT DOUBLE QUOTATION MARK}{query.text}\N{RIGHT DOUBLE QUOTATION MARK}"]
        if query.text
        else []
    )
    for key, values in query.values:
        words.append(f"{fields[key].title} is {_or(values)}")
    for key, low, high in query.ranges:
        ends = [f"from {low:g}" if low is not None else "", f"to {high:g}" if high is not None else ""]
        words.append(f"{fields[key].title} {' '.join(filter(None, ends))}")
    return words


def _or(values: Sequence[str]) -> str:
    return " or ".join(value or "(empty)" for value in values)
