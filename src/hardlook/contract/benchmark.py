"""What a benchmark is: a card of facts and a few functions.

A benchmark is a small object with `card`, `options`, `schema` and the functions of the `Benchmark` protocol; the
harness does the rest (workers, resuming, failures, intervals on disk, reports). docs/concepts.md walks through one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from hardlook.contract.options import BenchmarkOptions
from hardlook.contract.published import PublishedResult, PublishedTable
from hardlook.contract.records import Record, RecordSchema
from hardlook.contract.scorecard import LeftOut, Reading, Scorecard
from hardlook.contract.sections import Picture, Section
from hardlook.contract.tally import Tally

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Unit:
    """One thing to answer: an image, a pair, a task, an instance.

    `payload` is all that `evaluate` needs (paths, numbers, settings; small and picklable). Units of one `group`
    (say, of one image) are kept in one batch where it has room, so that costly openings happen once.
    """

    id: str
    payload: Any
    group: str = ""


class UnitList(list[Unit]):
    """Units together with what was left out when they were listed: it is kept in `run.json` and told in the report.

    >>> UnitList([Unit("a", None)], left_out=[LeftOut("pairs", 3, "their images are not there")]).left_out[0].count
    3
    """

    def __init__(self, units: Iterable[Unit] = (), left_out: Iterable[LeftOut] = ()) -> None:
        super().__init__(units)
        self.left_out = tuple(left_out)


@dataclass(frozen=True)
class ScoreMeaning:
    """A score in words: its title, what it means, which way is better, and whether it is the headline.

    A score that is not `directed` is neither good nor bad when it is high: nobody is ranked by it. `turned` names
    slices in which the other way is better, such as an IoU where there is nothing to find.

    >>> iou = ScoreMeaning("iou", "IoU", "overlap", turned=(("support", "wrong"),))
    >>> iou.direction, iou.within({"support": "wrong", "class": "cat"}).direction
    ('higher is better', 'lower is better')
    """

    name: str
    title: str
    meaning: str
    higher_is_better: bool = True
    headline: bool = False
    directed: bool = True
    turned: tuple[tuple[str, str], ...] = ()

    def within(self, where: Mapping[str, str]) -> ScoreMeaning:
        """What the score means in a slice."""
        if not any(pair in self.turned for pair in where.items()):
            return self
        return replace(self, higher_is_better=not self.higher_is_better, turned=())

    @property
    def direction(self) -> str:
        """Which way is better, in words; empty where neither is."""
        if not self.directed:
            return ""
        return "higher is better" if self.higher_is_better else "lower is better"


@dataclass(frozen=True)
class Quality:
    """A number for each single unit, by which units are sorted, chosen for galleries and set side by side."""

    name: str
    title: str
    higher_is_better: bool = True


@dataclass(frozen=True)
class Dial:
    """A fault that can be turned from 0 to 1: `arguments(setting)` are those of the planted `model`.

    `score` must move with the dial, or stay flat when `moves` is False (a control).
    """

    name: str
    model: str
    arguments: Callable[[float], Mapping[str, Any]]
    score: str
    moves: bool = True


@dataclass(frozen=True)
class BenchmarkCard:
    """The facts about a benchmark. `version` changes when the same data and model would get other records."""

    name: str
    version: str
    title: str
    summary: str
    role: str
    scores: tuple[ScoreMeaning, ...]
    citation: str = ""
    data_licence: str = ""
    default_model: str = ""
    batch_size: int = 8
    qualities: tuple[Quality, ...] = ()
    """What `JudgesUnits.qualities` gives of each unit; the first is what galleries and comparisons go by."""
    published: tuple[PublishedResult, ...] = ()
    """Published rows in the terms of our scores, for leaderboards."""
    published_tables: Callable[[], tuple[PublishedTable, ...]] = tuple
    """Every table that was printed, whole."""
    dials: tuple[Dial, ...] = ()
    example: str = ""
    whole_groups: bool = False
    """Whether units of one group always share a batch, so that what they share is made exactly once."""
    calibrated: Mapping[str, Any] = field(default_factory=lambda: {"scenes": 48, "resamples": 0})
    """Options of a quick calibration, as the demo makes one."""


@runtime_checkable
class NeedsGettingReady(Protocol):
    """A benchmark with work to do once before its units are answered, such as encoding every image."""

    def get_ready(self, units: Sequence[Unit], model: Any, show_progress: Callable[[int, int], Any] | None) -> None:
        """Do it, or find it done; what it leaves is found by every worker."""
        ...


@runtime_checkable
class Tallied(Protocol):
    """A benchmark whose runs can be compared: it says what its scores are made from."""

    def tallies(self, records: pl.DataFrame, options: Any) -> Sequence[Tally]:
        """What the scores that have units behind them follow from; of the same units, the same rows and columns."""
        ...


@runtime_checkable
class SpeaksWords(Protocol):
    """A benchmark whose models answer in vocabularies of their own."""

    def in_one_vocabulary(self, runs: Sequence[pl.DataFrame]) -> Sequence[pl.DataFrame]:
        """The records of several runs with one list of labels, so that their tallies have the same columns."""
        ...


@runtime_checkable
class JudgesUnits(Protocol):
    """A benchmark that can say how well a single unit was answered."""

    def qualities(self, records: pl.DataFrame, options: Any) -> pl.DataFrame:
        """`unit` and a Float64 column for each of the card's qualities, rows as in `records`; NaN where undefined."""
        ...

    def caption(self, record: Record) -> str:
        """What happened at this unit, in one sentence, from its record without pictures."""
        ...


class Benchmark(Protocol):
    """The functions that make a benchmark; each is pure: same arguments, same result, on any machine."""

    card: BenchmarkCard
    options: type[BenchmarkOptions]
    schema: RecordSchema

    def sources(self, options: Any) -> Mapping[str, Path | str]:
        """What the units come from: paths, which are fingerprinted, or texts that are fingerprints already."""
        ...

    def units(self, options: Any) -> Sequence[Unit]:
        """The fixed list of units, ids unique; a `UnitList` where something had to be left out of it."""
        ...

    def prepare(self, unit: Unit) -> Unit:
        """Read the unit's files into its payload; may run ahead in another process."""
        ...

    def evaluate(self, units: Sequence[Unit], model: Any) -> Sequence[Record]:
        """One record a prepared unit, in any order. `model` is None for stored predictions."""
        ...

    def score(self, records: pl.DataFrame, options: Any) -> Scorecard:
        """Every score from the records alone (all columns but pictures)."""
        ...

    def readings(self, options: Any) -> tuple[Reading, ...]:
        """Which readings these options choose."""
        ...

    def sections(self, records: pl.DataFrame, scorecard: Scorecard) -> Sequence[Section]:
        """What the report shows."""
        ...

    def pictures(self, unit: Unit, record: Record) -> Sequence[Picture]:
        """The pictures of one unit, from its files and its whole record, for galleries."""
        ...
