"""Notes of rows, each told once: rows carry their numbers, a table has the words.

>>> first = Row("run", "a", 0.5, flags=("other units than the first run",))
>>> numbers = number_notes([first, Row("run", "b", 0.4), Row("run", "c", 0.3, flags=first.flags)])
>>> marks(first, numbers), marks(Row("run", "b", 0.4), numbers), len(numbers)
('1', '', 1)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hardlook.contract.sections import Section, Table
from hardlook.leaderboards.cells import MOST_ROWS, cut
from hardlook.leaderboards.standing import Row

Note = tuple[str, str]
Numbers = Mapping[Note, int]


def number_notes(rows: Iterable[Row]) -> Numbers:
    """A number for each note, from 1, in the order in which they first occur."""
    numbers: dict[Note, int] = {}
    for row in rows:
        for note in row.notes:
            numbers.setdefault(note, len(numbers) + 1)
    return numbers


def marks(row: Row, numbers: Numbers) -> str:
    """The numbers of a row's notes, as a cell has them: `1, 3`."""
    return ", ".join(str(numbers[note]) for note in row.notes if note in numbers)


def notes_section(numbers: Numbers) -> Section | None:
    """The words behind the numbers; None where no row has any."""
    if not numbers:
        return None
    rows = [(number, f"{about.capitalize()}: {words}") for (about, words), number in numbers.items()]
    table = Table(
        "What the numbers in the column `note` say",
        "`No rank`: why a row has none. `Beside the paper`: what a run says of itself and the published values. "
        f"`Published`: which runs a published value can stand beside.{cut(len(rows))}",
        ("note", "words"),
        tuple(rows[:MOST_ROWS]),
    )
    return Section("Notes", "", (table,))
