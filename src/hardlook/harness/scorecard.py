"""Scores with intervals, readings and what was left out, and `scores.json`, the file they are stored in.

`scores.json` has stable keys (docs/run-folder.md). Two runs with equal records have equal files: nothing in it
depends on time, machine or engine.

>>> score = Score("miou", 0.5, n=10, interval=Interval(0.4, 0.6, 0.95, "bootstrap", 10, "image"))
>>> card = Scorecard("closed-miou", "1", "planted", scores=(score,), units=UnitCounts(10, 10, 0))
>>> Scorecard.from_json(card.to_json()) == card
True
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hardlook.errors import DamagedFile
from hardlook.harness.checked_json import format_checked_json, parse_checked_json
from hardlook.harness.stats.intervals import Estimate, Interval

SCHEMA = "hardlook.scores/1"


@dataclass(frozen=True)
class Score:
    """One number over `n` units: of all units when `slice` is empty, else of those with these slice values.

    `n` counts the units that the score uses. `interval` says how it was made, what was resampled and how many of those
    there were. `comparable` says whether the number can be compared with the published one; empty where there is none.
    `standard_error` is that of the bootstrap. `undefined` is the share of resamples, in [0, 1], in which the score is
    undefined. `rests_on` counts what the score is made from: first what is resampled, then classes, folds. `reason`
    says why there is no value. `wider` is an interval that covers one more draw, such as that of the images from which
    tasks are drawn. `rough` says that few clusters decide the score, so that the interval covers less, or more, than it
    should.
    """

    name: str
    value: float
    n: int
    interval: Interval | None = None
    slice: Mapping[str, str] = field(default_factory=dict)
    reading: str = ""
    comparable: str = ""
    standard_error: float | None = None
    undefined: float = 0.0
    rests_on: Mapping[str, int] = field(default_factory=dict)
    reason: str = ""
    wider: Interval | None = None
    rough: bool = False

    @property
    def low(self) -> float:
        """The lower end of the interval; NaN where there is none."""
        return self.interval.low if self.interval else math.nan

    @property
    def high(self) -> float:
        """The upper end of the interval; NaN where there is none."""
        return self.interval.high if self.interval else math.nan


# Fields that 0.1.0 did not write; where they say nothing they are not written now.
_OPTIONAL: dict[str, Any] = {
    "standard_error": None,
    "undefined": 0.0,
    "rests_on": {},
    "reason": "",
    "wider": None,
    "rough": False,
}


def make_score(name: str, estimate: Estimate, n: int, **more: Any) -> Score:
    """A score from a bootstrap estimate; an undefined interval (of one image, say) is None.

    >>> estimate = Estimate(0.5, Interval(math.nan, math.nan, 0.95, "percentile", 9, "image"), 0.1, 100, 70)
    >>> score = make_score("scs", estimate, 40, rests_on={"class": 1})
    >>> score.interval, score.undefined, score.rests_on
    (None, 0.7, {'image': 9, 'class': 1})
    """
    interval, error = estimate.interval, estimate.standard_error
    return Score(
        name,
        estimate.value,
        n,
        interval if interval.defined else None,
        standard_error=error if math.isfinite(error) else None,
        undefined=estimate.undefined / max(estimate.resamples, 1),
        rests_on={interval.resampled: interval.n, **more.pop("rests_on", {})},
        rough=estimate.rough and interval.defined,
        **more,
    )


@dataclass(frozen=True)
class LeftOut:
    """Something that did not enter a score: how many, why, and a few names.

    If `kept`, it did enter and there is something to know about it, such as clicks that were moved into their image.
    A `warning` is about a likely mistake: the terminal prints it in full.
    """

    what: str
    count: int
    why: str
    examples: tuple[str, ...] = ()
    kept: bool = False
    warning: bool = False


def note_to_json(note: LeftOut) -> dict[str, Any]:
    """A note as JSON; `kept` and `warning` are written only where they are true."""
    return {key: value for key, value in asdict(note).items() if key not in ("kept", "warning") or value}


@dataclass(frozen=True)
class Reading:
    """Which reading of the source ran where its words and its numbers differ, out of which."""

    name: str
    value: str
    meaning: str
    choices: tuple[str, ...] = ()
    default: str = ""


def merge_readings(chosen: Iterable[Reading], found: Iterable[Reading]) -> tuple[Reading, ...]:
    """The readings that the options choose; where one depends on the data, as it was found when they were scored.

    >>> chosen, found = (Reading("a", "x", ""), Reading("b", "data", "")), [Reading("b", "y", "")]
    >>> [reading.value for reading in merge_readings(chosen, found)]
    ['x', 'y']
    """
    return tuple({reading.name: reading for reading in (*chosen, *found)}.values())


@dataclass(frozen=True)
class UnitCounts:
    """How many units were planned, have a record, and failed."""

    planned: int
    scored: int
    failed: int


@dataclass(frozen=True)
class Scorecard:
    """Every score of a run, its readings, and what was left out.

    `noted` is what there is to know and was not left out: notes of `left_out` that are `kept` are moved there.
    """

    benchmark: str
    version: str
    model: str
    scores: tuple[Score, ...] = ()
    readings: tuple[Reading, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    units: UnitCounts = UnitCounts(0, 0, 0)
    noted: tuple[LeftOut, ...] = ()

    def __post_init__(self) -> None:
        if any(note.kept for note in self.left_out):
            kept = tuple(note for note in self.left_out if note.kept)
            object.__setattr__(self, "left_out", tuple(note for note in self.left_out if not note.kept))
            object.__setattr__(self, "noted", (*self.noted, *kept))

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
        notes = {name: [note_to_json(note) for note in getattr(self, name)] for name in ("left_out", "noted")}
        document = {"schema": SCHEMA, **asdict(self), **notes}
        if not self.noted:
            del document["noted"]
        for row in document["scores"]:
            for name, nothing in _OPTIONAL.items():
                if row[name] == nothing:
                    del row[name]
        return format_checked_json(_without_nan(document)) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Scorecard:
        """Read `scores.json` back; a `ValueError` where it is not what was written."""
        document = parse_checked_json(text)
        schema = document.pop("schema", None)
        if schema != SCHEMA:
            raise ValueError(f"expected a scores file of schema {SCHEMA!r}, got {schema!r}")
        return cls(
            benchmark=document["benchmark"],
            version=document["version"],
            model=document["model"],
            scores=tuple(_score(row) for row in document["scores"]),
            readings=tuple(Reading(**_with_tuple(row, "choices")) for row in document["readings"]),
            left_out=tuple(LeftOut(**_with_tuple(row, "examples")) for row in document["left_out"]),
            units=UnitCounts(**document["units"]),
            noted=tuple(LeftOut(**_with_tuple(row, "examples")) for row in document.get("noted", ())),
        )


def read_scores(path: Path) -> Scorecard:
    """The content of a `scores.json`; a `DamagedFile` where it is not what was written."""
    try:
        return Scorecard.from_json(path.read_text(encoding="utf-8"))
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
        problem = f"it lacks {error}" if isinstance(error, KeyError) else f"it {error}"
        remedy = "`hardlook score` of its run writes it again"
        raise DamagedFile(f"scores.json cannot be read ({problem})", file=path, remedy=remedy) from None


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
    intervals = {name: _interval(row.get(name)) for name in ("interval", "wider")}
    value = math.nan if row["value"] is None else row["value"]
    return Score(**{**row, **intervals, "value": value})


def _interval(row: dict[str, Any] | None) -> Interval | None:
    if row is None:
        return None
    known: dict[str, Any] = {key: math.nan if value is None else value for key, value in row.items()}
    return Interval(**known)


def _with_tuple(row: dict[str, Any], key: str) -> dict[str, Any]:
    return {**row, key: tuple(row[key])}


def _without_nan(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _without_nan(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(inner) for inner in value]
    return value
