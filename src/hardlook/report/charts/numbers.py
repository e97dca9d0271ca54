"""The numbers behind a picture, as a table that anyone can read, copy or sort."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Cell = str | float | int | None
MOST_ROWS = 1000


@dataclass(frozen=True)
class Numbers:
    """Columns and rows; `decimals` holds for all columns that are not whole, None lets each column choose."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    decimals: int | None = None
