"""What a benchmark is: a card of facts and a few functions.

A benchmark is a `Benchmark` value: `card`, `options`, `schema`, and the functions `list_units`, `evaluate`, `score` and
`report`; everything else is optional. The harness does the rest (workers, resuming, failures, intervals on disk,
reports). docs/concepts.md walks through one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from hardlook.harness.costs import CostMeasure
from hardlook.harness.options import BenchmarkOptions
from hardlook.harness.presets import Preset
from hardlook.harness.published import PublishedResult, PublishedTable
from hardlook.harness.records import Record, RecordSchema
from hardlook.harness.scorecard import LeftOut, Reading, Scorecard
from hardlook.harness.sections import Picture, Section
from hardlook.harness.tally import Tally

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True)
class Unit:
    """One thing to answer: an image, a pair, a task, an instance.

    `payload` is all that `evaluate` needs (paths, numbers, settings; small and picklable). Units of one `group`
    (say, of one image) are kept in one batch where it has room, so that costly openings happen once.
    """

    id: str
    payload: Any
    group: str = ""


class UnitList(list[Unit]):
    """Units together with what was left out when they were listed: kept in `run.json`, shown in the report."""

    def __init__(self, units: Iterable[Unit] = (), left_out: Iterable[LeftOut] = ()) -> None:
        super().__init__(units)
        self.left_out = tuple(left_out)


class LazyUnits(Sequence[Unit]):
    """`count` units that are made when they are asked for, for benchmarks of millions of units.

    `make_id`, `make_payload` and, where units have groups, `make_group` return what the unit at a position has: the
    same each time, as all functions of a benchmark do.

    >>> units = LazyUnits(3, "unit-{}".format, lambda position: (position, 0.5))
    >>> len(units), units[-1].id, [unit.payload for unit in units[1:]]
    (3, 'unit-2', [(1, 0.5), (2, 0.5)])
    """

    def __init__(
        self,
        count: int,
        make_id: Callable[[int], str],
        make_payload: Callable[[int], Any],
        make_group: Callable[[int], str] | None = None,
        *,
        left_out: Iterable[LeftOut] = (),
    ) -> None:
        self.positions, self.left_out = range(count), tuple(left_out)
        self.make_id, self.make_payload, self.make_group = make_id, make_payload, make_group

    def __len__(self) -> int:
        return len(self.positions)

    @overload
    def __getitem__(self, index: int) -> Unit: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Unit]: ...

    def __getitem__(self, index: int | slice) -> Unit | Sequence[Unit]:
        if isinstance(index, slice):
            positions = self.positions[index]
            payloads = map(self.make_payload, positions)
            return list(map(Unit, self.list_ids(positions), payloads, self.list_groups(positions)))
        return self[self.positions[index] : self.positions[index] + 1][0]

    def list_ids(self, positions: range) -> list[str]:
        """The ids of the units at these positions."""
        return list(map(self.make_id, positions))

    def list_groups(self, positions: range) -> list[str]:
        """The groups of the units at these positions."""
        return [""] * len(positions) if self.make_group is None else list(map(self.make_group, positions))


@dataclass(frozen=True)
class ScoreMeaning:
    """What a score means: its title, its meaning, which way is better, and whether it is the headline.

    A score that is not `ranked` is neither good nor bad when it is high: models are not ranked by it.
    `inverted_slices` names slices in which the other way is better, such as an IoU where there is nothing to find.

    >>> iou = ScoreMeaning("iou", "IoU", "overlap", inverted_slices=(("support", "wrong"),))
    >>> iou.direction, iou.within({"support": "wrong", "class": "cat"}).direction
    ('higher is better', 'lower is better')
    """

    name: str
    title: str
    meaning: str
    higher_is_better: bool = True
    headline: bool = False
    ranked: bool = True
    inverted_slices: tuple[tuple[str, str], ...] = ()

    def within(self, where: Mapping[str, str]) -> ScoreMeaning:
        """What the score means in a slice."""
        if not any(pair in self.inverted_slices for pair in where.items()):
            return self
        return replace(self, higher_is_better=not self.higher_is_better, inverted_slices=())

    @property
    def direction(self) -> str:
        """Which way is better; empty where neither is."""
        if not self.ranked:
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
    """A fault turned from 0 to 1 by `arguments(setting)` of the planted `model`; a control (not `moves`) stays flat."""

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
    """What `Benchmark.qualities` gives of each unit; galleries and comparisons are sorted by the first."""
    published: Callable[[], tuple[PublishedResult, ...]] = tuple
    """Published rows in the terms of our scores, for leaderboards."""
    published_tables: Callable[[], tuple[PublishedTable, ...]] = tuple
    """Every table that was printed, whole."""
    presets: Callable[[], tuple[Preset, ...]] = tuple
    """Tables of the paper as runs, for `--preset`; the options then have a field `preset`."""
    dials: tuple[Dial, ...] = ()
    example: str = ""
    whole_groups: bool = False
    """Whether units of one group always share a batch, so that what they share is made exactly once."""
    calibrated: Mapping[str, Any] = field(default_factory=lambda: {"scenes": 48, "resamples": 0})
    """Options of a quick calibration, as the demo makes one."""


def paths_given(options: Any) -> Mapping[str, Path | str]:
    """The files and folders that the options name; the planted world has none."""
    given = {"gt": options.gt, "pred": options.pred, **options.data}
    return {name: path for name, path in given.items() if path is not None}


def draw_nothing(unit: Unit, record: Record) -> Sequence[Picture]:
    """The pictures of a benchmark that draws none."""
    return ()


@dataclass(frozen=True)
class Benchmark:
    """The functions that make a benchmark; each is pure: same arguments, same result, on any machine.

    Four are needed:

    - `list_units(options)`: the fixed list of units, ids unique; a `UnitList` where something had to be left out,
      a `LazyUnits` where all units together would take too much memory.
    - `evaluate(units, model)`: one record per prepared unit, in any order; `model` is None for stored predictions.
    - `score(records, options)`: every score from the records alone (all columns but pictures).
    - `report(records, scorecard)`: what the report shows.

    The others have defaults:

    - `evaluate_each(units, model)`: what `evaluate` returns, yielded record by record; only where a record does not
      depend on the units that share its batch. Each is kept as it comes, and a batch resumes at its missing units.
    - `prepare(unit)` reads the unit's files into its payload; may run ahead in another process.
    - `sources(options)`: what the units come from: paths, which are fingerprinted, or texts that are fingerprints
      already. By default the paths of `data`, `gt` and `pred`.
    - `readings(options)`: which readings these options choose.
    - `pictures(unit, record)`: the pictures of one unit, from its files and its whole record, for galleries.
    - `setup(units, model, show_progress)`: work to do once before units are evaluated, such as encoding every image;
      what it leaves is found by every worker.
    - `tallies(records, options)`: what the scores that have units behind them follow from; needed to compare runs. Of
      the same units, the same rows and columns.
    - `additive`: whether the scores are those of the tallies and nothing else, and the tallies of two parts of the
      records, rows one after the other, are those of both. A run of more than a million units is then scored, compared
      and exported in bounded memory, part by part; `report` is given every k-th record.
    - `merge_vocabularies(runs)`: the records of several runs with one list of labels, so that their tallies have the
      same columns; for benchmarks whose models answer in vocabularies of their own.
    - `qualities(records, options)`: `unit` and a Float64 column for each of the card's qualities, rows as in
      `records`; NaN where undefined.
    - `caption(record)`: what happened at this unit, in one sentence, from its record without pictures.
    - `published_slice(scorecard, options)`: the `where` of the published rows that the scores over all units are
      comparable with, such as one dataset; empty for all units.
    - `list_folds(options)`: the folds of these options, for models that are trained per fold; the options then have a
      field `folds`, and the units of two folds are disjoint.
    - `model_arguments(options)`: values of arguments that a model named by the user may need, such as the words it is
      to choose from; a model that needs one and was not given it gets it.
    - `find_units(options, ids)`: the units with these ids, by id, for drawing them without listing all others; an id
      that no unit has is left out. None where these options have no such way; all units are listed then.
    - `cost_measure`: how the cost of a model is measured and shown beside its scores, where a run asks for it.
    """

    card: BenchmarkCard
    options: type[BenchmarkOptions]
    schema: RecordSchema
    list_units: Callable[[Any], Sequence[Unit]]
    evaluate: Callable[[Sequence[Unit], Any], Sequence[Record]]
    score: Callable[[pl.DataFrame, Any], Scorecard]
    report: Callable[[pl.DataFrame, Scorecard], Sequence[Section]]
    evaluate_each: Callable[[Sequence[Unit], Any], Iterator[Record]] | None = None
    prepare: Callable[[Unit], Unit] = lambda unit: unit
    sources: Callable[[Any], Mapping[str, Path | str]] = paths_given
    readings: Callable[[Any], tuple[Reading, ...]] = lambda options: ()
    pictures: Callable[[Unit, Record], Sequence[Picture]] = draw_nothing
    setup: Callable[[Sequence[Unit], Any, Callable[[int, int], Any] | None], None] | None = None
    tallies: Callable[[pl.DataFrame, Any], Sequence[Tally]] | None = None
    merge_vocabularies: Callable[[Sequence[pl.DataFrame]], Sequence[pl.DataFrame]] | None = None
    qualities: Callable[[pl.DataFrame, Any], pl.DataFrame] | None = None
    caption: Callable[[Record], str] | None = None
    published_slice: Callable[[Scorecard, Any], Mapping[str, str]] | None = None
    list_folds: Callable[[Any], Sequence[int]] | None = None
    find_units: Callable[[Any, Collection[str]], Mapping[str, Unit] | None] | None = None
    model_arguments: Callable[[Any], Mapping[str, Any]] = lambda options: {}
    cost_measure: CostMeasure | None = None
    additive: bool = False

    def __post_init__(self) -> None:
        if self.additive and self.tallies is None:
            raise TypeError(f"benchmark {self.card.name!r} is said to be additive, which needs tallies")
        if self.additive and self.merge_vocabularies is not None:
            why = "vocabularies are merged over all records"
            raise TypeError(f"benchmark {self.card.name!r} is said to be additive, but {why}")


# Names of functions in 0.1.0, when a benchmark was a class with methods; read for one release.
_FORMER = {"list_units": "units", "report": "sections", "setup": "get_ready", "merge_vocabularies": "in_one_vocabulary"}


def as_benchmark(value: Any) -> Benchmark:
    """A `Benchmark` as it is, or any object with attributes of the same names, such as an instance of a class.

    >>> as_benchmark(object())
    Traceback (most recent call last):
    ...
    TypeError: a benchmark needs card, options, schema, list_units, evaluate, score, report; this has none of them
    """
    if isinstance(value, Benchmark):
        return value
    given: dict[str, Any] = {}
    for one in fields(Benchmark):
        for name in (one.name, _FORMER.get(one.name, one.name)):
            if one.name not in given and hasattr(value, name):
                given[one.name] = getattr(value, name)
    needed = [one.name for one in fields(Benchmark) if one.default is MISSING]
    missing = [name for name in needed if name not in given]
    if missing:
        lacks = "has none of them" if len(missing) == len(needed) else f"lacks {', '.join(missing)}"
        raise TypeError(f"a benchmark needs {', '.join(needed)}; this {lacks}")
    return Benchmark(**given)
