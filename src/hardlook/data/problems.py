"""Collect every problem of a file by kind, so that one error lists all of them.

>>> problems = ProblemList()
>>> for image in range(7):
...     problems.add("unknown image ids", image)
>>> problems.format_lines()
['unknown image ids: 0, 1, 2, 3, 4 and 2 more']
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from hardlook.errors import DataError, shorten

_MAX_LISTED = 5
_LONGEST = 60  # characters of an id


class ProblemList:
    """Problems by kind, with the ids or positions at which they occur."""

    def __init__(self) -> None:
        # A dict keeps the order and counts a place once.
        self._places: defaultdict[str, dict[object, None]] = defaultdict(dict)

    def add(self, kind: str, place: object) -> None:
        """Record one problem: its kind, and the id or position at which it occurs."""
        self._places[kind][place] = None

    def format_lines(self) -> list[str]:
        """One line per kind with the first few places, in the order in which they were added."""
        lines = []
        for kind, places in self._places.items():
            more = f" and {len(places) - _MAX_LISTED} more" if len(places) > _MAX_LISTED else ""
            lines.append(
                f"{kind}: {', '.join(shorten(str(place), _LONGEST) for place in list(places)[:_MAX_LISTED])}{more}"
            )
        return lines

    def raise_if_any(self, what: str, *, file: Path | str | None, remedy: str) -> None:
        """Raise a `DataError` that lists every problem, if there is one."""
        if self._places:
            raise DataError("\n  - ".join([what, *self.format_lines()]), file=file, remedy=remedy)
