"""Differences as rows of a table: who, which score, both values, how far apart, how sure, and the verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hardlook.comparison.verdicts import meaning_of
from hardlook.contract.sections import Table

if TYPE_CHECKING:
    from hardlook.comparison.differences import Difference
    from hardlook.contract.benchmark import BenchmarkCard

Cell = str | float | int | None
# The verdict stands early, so that it is in sight on a phone, where tables scroll sideways.
WHO = ("first", "second", "verdict", "first has", "second has", "difference", "low", "high", "p", "adjusted p")
CAPTION = (
    "Difference: the first model's score minus the second's, with its interval from low to high. Adjusted: by Holm's "
    "method within the family. The verdict is on the first model."
)
NEEDED = " Needed: how many units would tell with a chance of 80%, if the observed difference is the true one."


def difference_table(
    title: str, card: BenchmarkCard, differences: Sequence[Difference], *, needed: bool = False
) -> Table:
    """One row a difference; a column for slices where there are any, and for the units needed where asked."""
    sliced = any(one.slice for one in differences)
    needed = needed and any(_count(one) for one in differences)
    columns = ("score", *(("slice",) if sliced else ()), *WHO, *(("needed",) if needed else ()))
    rows = []
    for one in differences:
        where = (slice_text(one),) if sliced else ()
        more = (_count(one),) if needed else ()
        rows.append((meaning_of(card, one.name).title, *where, *_row(one), *more))
    return Table(title, CAPTION + (NEEDED if needed else ""), columns, tuple(rows), decimals=4)


def slice_text(one: Difference) -> str:
    """The slice of a difference as `class: cat, context: night`."""
    return ", ".join(f"{key}: {value}" for key, value in one.slice.items()) or "all units"


def _row(one: Difference) -> tuple[Cell, ...]:
    low, high = (one.interval.low, one.interval.high) if one.interval is not None else (None, None)
    values = (_number(one.first_value), _number(one.second_value), _number(one.value))
    return (one.first, one.second, one.verdict, *values, low, high, _number(one.p_value), _number(one.adjusted))


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _count(one: Difference) -> int | None:
    """What it would take, where it takes more than there is."""
    return int(one.units_needed) if math.isfinite(one.units_needed) and not one.told else None
