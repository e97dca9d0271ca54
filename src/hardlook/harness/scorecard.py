"""Scores with intervals, readings and what was left out, and `scores.json`, the file they are stored in.

`scores.json` has stable keys (docs/run-folder.md). Two runs with equal records have equal files: nothing in it
depends on time, machine or engine.

>>> score = Score("miou", 0.5, n=10, interval=Interval(0.4, 0.6, 0.95, "bootstrap", 10, "image"))
>>> card = Scorecard("closed-miou", "1", "planted", scores=(score,), units=UnitCounts(10, 10, 0))
>>> Scorecard.from_json(card.to_json()) == card
True
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from hardlook.harness.stats.intervals import Estimate, Interval

SCHEMA = "hardlook.scores/1"


@dataclass(frozen=True)
class Score:
    """One number over `n` units: of all units when `slice` is empty, else of those with these slice values.

    `interval` says how it was made, what was resampled and how many of those there were. `comparable` says
    whether the number can be compared with the published one; empty where there is none.
    """

    name: str
    value: float
    n: int
    interval: Interval | None = None
    slice: Mapping[str, str] = field(default_factory=dict)
    reading: str = ""
    comparable: str = ""


def make_score(name: str, estimate: Estimate, n: int, **more: Any) -> Score:
    """A score from a bootstrap estimate; an undefined interval (of one image, say) is None."""
    interval = estimate.interval if estimate.interval.defined else None
    return Score(name, estimate.value, n, interval, **more)


@dataclass(frozen=True)
class LeftOut:
    """Something that did not enter a score: how many, why, and a few names."""

    what: str
    count: int
    why: str
    examples: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reading:
    """Which reading of the source ran where its words and its numbers differ, out of which."""

    name: str
    value: str
    meaning: str
    choices: tuple[str, ...] = ()
    default: str = ""


@dataclass(frozen=True)
class UnitCounts:
    """How many units were planned, have a record, and failed."""

    planned: int
    scored: int
    failed: int


@dataclass(frozen=True)
class Scorecard:
    """Every score of a run, its readings, and what was left out."""

    benchmark: str
    version: str
    model: str
    scores: tuple[Score, ...] = ()
    readings: tuple[Reading, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    units: UnitCounts = UnitCounts(0, 0, 0)

    def get(self, name: str, **slice_values: str) -> Score:
        """The score of that name and slice; the error for a missing one lists all."""
        for score in self.scores:
            if score.name == name and dict(score.slice) == slice_values:
                return score
        known = sorted({f"{score.name}{dict(score.slice) or ''}" for score in self.scores})
        raise KeyError(f"no score {name!r} with slice {slice_values}; there are: {', '.join(known)}")

    @property
    def headline(self) -> tuple[Score, ...]:
        """The scores over all units."""
        return tuple(score for score in self.scores if not score.slice)

    def to_json(self) -> str:
        """The text of `scores.json`; undefined values are null."""
        document = {"schema": SCHEMA, **asdict(self)}
        return json.dumps(_without_nan(document), indent=1, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Scorecard:
        """Read `scores.json` back."""
        document = json.loads(text)
        schema = document.pop("schema", None)
        if schema != SCHEMA:
            raise ValueError(f"expected a scores file of schema {SCHEMA!r}, got {schema!r}")
        return cls(
            benchmark=document["benchmark"],
            version=document["version"],
            model=document["model"],
            scores=tuple(_score(row) for row in document["scores"]),
            readings=tuple(Reading(**_tupled(row, "choices")) for row in document["readings"]),
            left_out=tuple(LeftOut(**_tupled(row, "examples")) for row in document["left_out"]),
            units=UnitCounts(**document["units"]),
        )


def find_score(scorecard: Scorecard, name: str, **where: str) -> Score | None:
    """The score of that name and slice where it exists and is defined, else None.

    >>> card = Scorecard("toss", "1", "", (Score("lca", 0.5, 3), Score("hca", math.nan, 3)))
    >>> find_score(card, "hca"), find_score(card, "lca").value
    (None, 0.5)
    """
    for score in scorecard.scores:
        if score.name == name and dict(score.slice) == where and not math.isnan(score.value):
            return score
    return None


def _score(row: dict[str, Any]) -> Score:
    interval = row["interval"]
    if interval is not None:
        known: dict[str, Any] = {key: math.nan if value is None else value for key, value in interval.items()}
        interval = Interval(**known)
    value = math.nan if row["value"] is None else row["value"]
    return Score(**{**row, "interval": interval, "value": value})


def _tupled(row: dict[str, Any], key: str) -> dict[str, Any]:
    return {**row, key: tuple(row[key])}


def _without_nan(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _without_nan(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(inner) for inner in value]
    return value
