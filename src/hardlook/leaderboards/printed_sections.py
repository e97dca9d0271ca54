"""Published tables on a page, as they were printed."""

from __future__ import annotations

from collections.abc import Sequence

from hardlook.contract.benchmark import BenchmarkCard
from hardlook.contract.published import PublishedCell, PublishedTable
from hardlook.contract.sections import Section, Table

TINY = 0.001


def printed_section(card: BenchmarkCard) -> Section | None:
    """Every table of the card, whole; None where there is none."""
    tables = card.published_tables()
    if not tables:
        return None
    sources = ", ".join(dict.fromkeys(table.source for table in tables if table.source))
    text = f"Number for number as printed, also where numbers contradict each other. Source: {sources}."
    return Section("Published tables", text, tuple(as_block(table) for table in tables))


def as_block(table: PublishedTable) -> Table:
    """A published table as a block of a page, with as many decimals as its longest number has.

    Columns of very small numbers become texts such as 4.06e-05, which no number of decimals would suit.

    >>> as_block(PublishedTable("table-1", "T", ("m", "PDE"), (("a", 4.06e-05), ("b", 2e-05)))).rows
    (('a', '4.06e-05'), ('b', '2.00e-05'))
    """
    columns = [[row[index] for row in table.rows] for index in range(len(table.columns))]
    shown = [[_small(cell) for cell in column] if _tiny(column) else column for column in columns]
    decimals = max((_places(cell) for column in shown for cell in column), default=0)
    rows = tuple(zip(*shown, strict=True))
    return Table(table.title, table.note, table.columns, rows, decimals)


def _tiny(column: Sequence[PublishedCell]) -> bool:
    numbers = [abs(cell) for cell in column if isinstance(cell, int | float)]
    return bool(numbers) and 0 < max(numbers) < TINY


def _small(cell: PublishedCell) -> PublishedCell:
    return f"{cell:.2e}" if isinstance(cell, int | float) else cell


def _places(cell: PublishedCell) -> int:
    """Digits behind the point.

    >>> _places(65.088), _places(3.0), _places(7), _places("a")
    (3, 1, 0, 0)
    """
    return len(repr(cell).partition(".")[2]) if isinstance(cell, float) else 0
