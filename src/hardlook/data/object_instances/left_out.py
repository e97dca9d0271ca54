"""What a listing leaves out: counted, with the reason and a few names.

>>> notes = LeftOutNotes("voc")
>>> for stem in ("a", "b"):
...     notes.add("objects of voc below 25 pixels", "the minimal area asked for", stem)
>>> notes.listed()
(LeftOutNote(what='objects of voc below 25 pixels', count=2, why='the minimal area asked for', examples=('a', 'b')),)
"""

from __future__ import annotations

from dataclasses import dataclass

SHOWN = 5


@dataclass(frozen=True)
class LeftOutNote:
    """Objects that are not in a list: how many, why, and the first few names."""

    what: str
    count: int
    why: str
    examples: tuple[str, ...] = ()


class LeftOutNotes:
    """Gathers what one dataset leaves out; `add` each, then take `listed`."""

    def __init__(self, dataset: str) -> None:
        self.dataset = dataset
        self._names: dict[tuple[str, str], list[str]] = {}

    def add(self, what: str, why: str, name: str) -> None:
        """Note one object by its name."""
        self._names.setdefault((what, why), []).append(name)

    def fits(self, area: int, min_area: int, name: str) -> bool:
        """Whether an object of `area` pixels is large enough; else it is noted. Objects of no pixel never are.

        >>> LeftOutNotes("voc").fits(24, 25, "a")
        False
        """
        if area < 1:
            self.add(f"objects of {self.dataset} without a pixel", "there is nothing to click on", name)
        elif area < min_area:
            self.add(f"objects of {self.dataset} below {min_area} pixels", "the minimal area asked for", name)
        return area >= max(1, min_area)

    def listed(self) -> tuple[LeftOutNote, ...]:
        """One note a kind, in the order in which the kinds came."""
        return tuple(
            LeftOutNote(what, len(names), why, (*names[:SHOWN],)) for (what, why), names in self._names.items()
        )
