"""Numbers that are printed somewhere: rows that stand beside our scores, and whole tables as they were printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from hardlook.contract.scorecard import Scorecard

PublishedCell = str | float | int | None


def percent(fraction: float) -> float:
    """A fraction of 1 in percent, without what binary numbers add behind the printed digits.

    >>> 100 * 0.57, percent(0.57)
    (56.99999999999999, 57.0)
    """
    return round(100 * fraction, 6)


@dataclass(frozen=True)
class PublishedResult:
    """A row of a published table: who, where it is printed, its values by score, and what makes it comparable or not.

    The values are in our scores' own scale and of the slice `where` (empty: over all units).

    >>> PublishedResult("HSNet", "Table 4", {"lca": 0.58}, "all four folds").values["lca"]
    0.58
    """

    method: str
    source: str
    values: Mapping[str, float]
    comparable: str
    where: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PublishedTable:
    """A table as it was printed, number for number: `name` is what commands call it, such as `table-4`.

    `note` says what a reader must know: units, and what does not fit with what.
    """

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[PublishedCell]]
    source: str = ""
    note: str = ""


@runtime_checkable
class PlacesScores(Protocol):
    """A benchmark whose scores over all units stand for one slice of what is published, such as one dataset."""

    def published_slice(self, scorecard: Scorecard, options: Any) -> Mapping[str, str]:
        """The `where` of the published rows that the scores over all units stand beside; empty for all units."""
        ...
