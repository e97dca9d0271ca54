"""What a listing of a dataset leaves out: counted, with the reason and a few names.

>>> notes = LeftOutNotes("voc")
>>> for stem in ("a", "b"):
...     notes.add("objects of voc below 25 pixels", "the minimal area asked for", stem)
>>> notes.summarize()
(LeftOutNote(what='objects of voc below 25 pixels', count=2, why='the minimal area asked for', examples=('a', 'b')),)
"""

from __future__ import annotations

from dataclasses import dataclass

MAX_EXAMPLES = 5


@dataclass(frozen=True)
class LeftOutNote:
    """Objects that are not in a list: how many, why, and the first few names."""

    what: str
    count: int
    why: str
    examples: tuple[str, ...] = ()


class LeftOutNotes:
    """Collects what one dataset leaves out: `add` each object, then `summarize`."""

    def __init__(self, dataset: str) -> None:
        self.dataset = dataset
        self._names: dict[tuple[str, str], list[str]] = {}

    def add(self, what: str, why: str, name: str) -> None:
        """Record one object by its name."""
        self._names.setdefault((what, why), []).append(name)

    def check_area(self, area: int, min_area: int, name: str) -> bool:
        """Whether an object of `area` pixels is large enough; record it if not. Objects without pixels never are.

        >>> LeftOutNotes("voc").check_area(24, 25, "a")
        False
        """
        if area < 1:
            self.add(f"objects of {self.dataset} without a pixel", "there is nothing to click on", name)
        elif area < min_area:
            self.add(f"objects of {self.dataset} below {min_area} pixels", "the minimal area asked for", name)
        return area >= max(1, min_area)

    def summarize(self) -> tuple[LeftOutNote, ...]:
        """One note per kind, in the order in which the kinds were first added."""
        return tuple(
            LeftOutNote(what, len(names), why, (*names[:MAX_EXAMPLES],)) for (what, why), names in self._names.items()
        )
