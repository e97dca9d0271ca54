"""Who stands where by one score: runs and published rows in one order, ranked as far as they can be compared.

>>> from hardlook.contract.benchmark import ScoreMeaning
>>> rows = [Row("run", "b", 0.4), Row("published", "c", 0.9, flags=("of other images",)), Row("run", "a", 0.5)]
>>> [(row.method, row.rank) for row in ranked(rows, ScoreMeaning("miou", "mIoU", ""))]
[('c', None), ('a', 1), ('b', 2)]
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from hardlook.contract.benchmark import ScoreMeaning
from hardlook.contract.scorecard import Score

Kind = Literal["run", "published"]
NOT = "not comparable"


@dataclass(frozen=True)
class Row:
    """A value of a method: measured by a run, or published.

    `comparable` is what the score itself, or its publication, says of comparing; `flags` say why the row has no rank.
    """

    kind: Kind
    method: str
    value: float
    low: float | None = None
    high: float | None = None
    n: int | None = None
    reading: str = ""
    comparable: str = ""
    flags: tuple[str, ...] = ()
    place: Mapping[str, str] = field(default_factory=dict)
    source: str = ""
    folder: str = ""
    date: str = ""
    rank: int | None = None

    @property
    def notes(self) -> tuple[tuple[str, str], ...]:
        """Why there is no rank, then what makes the row comparable or not: what each is about, and its words.

        >>> Row("run", "net", 0.5, comparable="not comparable: fewer folds", flags=("2 of 20 units failed",)).notes
        (('no rank', '2 of 20 units failed'), ('beside the paper', 'not comparable: fewer folds'))
        """
        reasons = [*self.flags, *(["the score is undefined"] if math.isnan(self.value) else [])]
        own = [self.comparable] if self.comparable and self.comparable not in self.flags else []
        about = "beside the paper" if self.kind == "run" else "published"
        return (*(("no rank", why) for why in reasons), *((about, words) for words in own))

    @property
    def note(self) -> str:
        """All of it as one text."""
        return "; ".join(words for _, words in self.notes)


@dataclass(frozen=True)
class Standing:
    """All rows of a score at one place (slice), best first, or highest where none is better."""

    meaning: ScoreMeaning
    place: Mapping[str, str]
    rows: tuple[Row, ...]

    def of(self, kind: Kind) -> list[Row]:
        """The rows of that kind, in their order."""
        return [row for row in self.rows if row.kind == kind]

    def label(self, row: Row) -> str:
        """A row's name in a chart: its method, and its slice where that is another than this standing's."""
        other = row.kind == "published" and dict(row.place) != dict(self.place) and row.place
        return f"{row.method}, {slice_text(row.place)}" if other else row.method


def run_row(
    score: Score, method: str, place: Mapping[str, str], *, flags: tuple[str, ...], folder: str, date: str
) -> Row:
    """A score of a run as a row."""
    low, high = (score.interval.low, score.interval.high) if score.interval else (None, None)
    return Row(
        "run",
        method,
        score.value,
        low,
        high,
        score.n,
        score.reading,
        score.comparable,
        flags,
        place,
        folder=folder,
        date=date,
    )


def ranked(rows: Iterable[Row], meaning: ScoreMeaning) -> tuple[Row, ...]:
    """Best first; rows without a flag get ranks, equal values equal ones; undefined values stand last, unranked.

    By a score that is neither good nor bad nobody is ranked, and the highest comes first.
    """
    sign = -1 if meaning.higher_is_better or not meaning.directed else 1

    def order(row: Row) -> tuple[bool, float, bool, tuple[str, ...]]:
        known = not math.isnan(row.value)
        texts = (row.kind, row.method, row.folder, row.source, *row.flags)
        return not known, sign * row.value if known else 0.0, bool(row.flags), texts

    found, place, rank, before = [], 0, 0, math.nan
    for row in sorted(rows, key=order):
        if row.flags or math.isnan(row.value) or not meaning.directed:
            found.append(replace(row, rank=None))
            continue
        place += 1
        rank = rank if row.value == before else place
        before = row.value
        found.append(replace(row, rank=rank))
    return tuple(found)


def compares_with_the_paper(words: str) -> bool:
    """Whether a score's own words put it beside the published ones without a condition that no option tells.

    >>> compares_with_the_paper("comparable with the published table: the same pairs")
    True
    >>> compares_with_the_paper("Comparable with the paper's tables where the images are the same validation set.")
    False
    """
    plain = words.lower()
    return plain.startswith("comparable") and " where " not in plain and "provided" not in plain


def why_not(words: Sequence[str]) -> str:
    """Why published rows have no rank beside runs that say this of themselves.

    >>> why_not(["not comparable: fewer folds"])
    'the runs here cannot be compared with what is published: fewer folds'
    """
    said = next((one for one in words if one), "")
    if said.lower().startswith(f"{NOT}: "):
        return f"the runs here cannot be compared with what is published: {said.partition(': ')[2]}"
    told = f"{said[:1].lower()}{said[1:].rstrip('.')}"
    return f"the runs here say: {told}" if said else "the runs here do not say that they can be compared with it"


def slice_text(where: Mapping[str, str]) -> str:
    """A slice in words.

    >>> slice_text({"dataset": "davis", "size": "small"}), slice_text({})
    ('dataset: davis, size: small', '')
    """
    return ", ".join(f"{key}: {value}" for key, value in where.items())
