"""Stems that could not be used: left out, counted, named, and told by the exit code.

>>> unread_in_words([("grabcut/llama", "the mask is empty")], "used")
'1 stem could not be used: grabcut/llama (the mask is empty).'
"""

from __future__ import annotations

from collections.abc import Sequence

from hardlook.contract.scorecard import LeftOut
from hardlook.report.numerals import counted

SOME_UNREAD = 3
SHOWN = 5

Unread = Sequence[tuple[str, str]]
"""Names of stems, each with the reason."""


def unread_in_words(unread: Unread, done: str = "read") -> str:
    """A sentence with the first few names; `done` is what was tried."""
    more = len(unread) - SHOWN
    end = f", and {more} more" if more > 0 else ""
    return f"{counted(len(unread), 'stem')} could not be {done}: {', '.join(_named(unread))}{end}."


def unread_note(unread: Unread, done: str = "read") -> LeftOut:
    """The same for a page's table of what was left out."""
    return LeftOut(f"stems that cannot be {done}", len(unread), "see the examples", _named(unread))


def _named(unread: Unread) -> tuple[str, ...]:
    return tuple(f"{key} ({why})" for key, why in unread[:SHOWN])
