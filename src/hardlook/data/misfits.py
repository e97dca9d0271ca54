"""What does not fit in a file, gathered by kind, so that one error names all of it.

>>> found = Misfits()
>>> for image in range(7):
...     found.add("unknown image ids", image)
>>> found.lines()
['unknown image ids: 0, 1, 2, 3, 4 and 2 more']
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from hardlook.errors import DataError

SHOWN = 5


class Misfits:
    """Kinds of misfits and where they are; `add` each, then `refuse` once."""

    def __init__(self) -> None:
        # A dict keeps the order and counts a place once.
        self._places: defaultdict[str, dict[object, None]] = defaultdict(dict)

    def add(self, kind: str, place: object) -> None:
        """Note one misfit: its kind, and the id or position at which it is."""
        self._places[kind][place] = None

    def lines(self) -> list[str]:
        """One line a kind with the first few places, in the order in which they were noted."""
        lines = []
        for kind, places in self._places.items():
            more = f" and {len(places) - SHOWN} more" if len(places) > SHOWN else ""
            lines.append(f"{kind}: {', '.join(map(str, list(places)[:SHOWN]))}{more}")
        return lines

    def refuse(self, what: str, *, file: Path | str | None, remedy: str) -> None:
        """Raise a DataError that lists every kind, if there is any."""
        if self._places:
            raise DataError("\n  - ".join([what, *self.lines()]), file=file, remedy=remedy)
