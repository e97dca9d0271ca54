"""`hl.benchmark`: a benchmark from a few functions, in a script or a notebook cell.

>>> @benchmark("bright", role="saliency", units={"dark": 0, "light": 255}, scores=("mean",), slices=("kind",))
... def bright(value, model):
...     image = np.full((4, 4, 3), value, np.uint8)
...     return {"mean": float(model.saliency([image])[0].mean()), "kind": "night" if value < 128 else "day"}
>>> bright.card.name, bright.schema.slices
('bright', ('kind',))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hardlook.errors import OptionError
from hardlook.fingerprints import hash_value
from hardlook.harness.benchmark import Benchmark, BenchmarkCard, Quality, ScoreMeaning, Unit, paths_given
from hardlook.harness.options import BenchmarkOptions, option
from hardlook.harness.records import Column, Record, RecordSchema
from hardlook.harness.registry import add
from hardlook.harness.scorecard import LeftOut, Scorecard
from hardlook.harness.sections import DistributionChart, DotChart, Section, score_dot
from hardlook.harness.stats import ratio
from hardlook.harness.tally import Entry, SumTally, score_tally
from hardlook.models.object_identity import hash_object

if TYPE_CHECKING:
    import polars as pl

Units = Mapping[str, Any] | Iterable[Any] | Callable[[], Mapping[str, Any] | Iterable[Any]]
Evaluate = Callable[[Any, Any], Mapping[str, Any]]

_MAX_ROWS, _EXAMPLES = 30, 5


class OwnOptions(BenchmarkOptions):
    """Options of a benchmark that was made by `hl.benchmark`."""

    resamples: int = option(2000, "Resamples behind bootstrap intervals.", changes="scores", ge=0)
    level: float = option(0.95, "Level of the intervals.", changes="scores", gt=0, lt=1)


def benchmark(
    name: str,
    *,
    role: str,
    units: Units,
    scores: Sequence[str] | Mapping[str, str],
    evaluate: Evaluate | None = None,
    slices: Sequence[str] = (),
    cluster: str = "",
    title: str = "",
    summary: str = "",
    version: str = "",
) -> Any:
    """A benchmark from the units, a function that evaluates one of them, and the names of its scores.

    Without `evaluate` it is a decorator of that function. A score is the mean over the units of a number that the
    function returns, with an interval, over all units and by each slice; two runs can be compared. For scores that are
    no means, write a `hl.Benchmark`.

    Args:
        name: The benchmark's name.
        role: The role of its models, such as `semantic-segmenter`.
        units: What is evaluated: a mapping of ids, an iterable (numbered), or a function that returns either.
        scores: The names of the numbers that `evaluate` returns; as a mapping, each with `higher` or `lower`, whichever
            is better. NaN stands for a number that is undefined for a unit; these units, and infinite numbers, are left
            out of the mean and counted in the report.
        evaluate: `evaluate(unit, model)` returns a mapping with the scores, the slices and the cluster.
        slices: The names of texts that `evaluate` returns, by which scores are sliced.
        cluster: The name of a text that `evaluate` returns; units that share it are drawn together in intervals, such
            as several objects of one image.
        title: A title for reports.
        summary: A sentence for reports.
        version: Changes when the same model would get other records; by default a hash of `evaluate`.
    """
    if evaluate is None:
        return lambda function: benchmark(
            name, role=role, units=units, scores=scores, evaluate=function, slices=slices, cluster=cluster,
            title=title, summary=summary or (function.__doc__ or "").partition("\n")[0], version=version,
        )  # fmt: skip
    directions = scores if isinstance(scores, Mapping) else dict.fromkeys(scores, "higher")
    _check_names(name, directions, slices, cluster)
    meanings = tuple(
        ScoreMeaning(one, one, f"mean of `{one}` over the units", way == "higher", headline=True)
        for one, way in directions.items()
    )
    card = BenchmarkCard(
        name=name,
        version=version or hash_object(evaluate)[:12],
        title=title or name,
        summary=summary or f"Mean of {', '.join(directions)} over the units.",
        role=role,
        scores=meanings,
        qualities=tuple(Quality(one, one, way == "higher") for one, way in directions.items()),
    )
    columns = [Column(one, "text", "a property of the unit", "slice") for one in slices]
    columns += [Column(one, "float", f"the unit's {one}") for one in directions]
    if cluster and cluster not in slices:
        columns.append(Column(cluster, "text", "units that share it are drawn together"))
    functions = _OwnFunctions(card, units, evaluate, tuple(slices), cluster)
    return add(
        Benchmark(
            card,
            OwnOptions,
            RecordSchema(tuple(columns)),
            functions.list_units,
            functions.evaluate_units,
            functions.score_records,
            functions.build_sections,
            sources=functions.list_sources,
            tallies=functions.tally_records,
            qualities=functions.list_qualities,
        )
    )


def _check_names(name: str, directions: Mapping[str, str], slices: Sequence[str], cluster: str) -> None:
    if not directions:
        raise OptionError(f"the benchmark {name!r} has no score", remedy="name the numbers that evaluate returns")
    if wrong := [f"{one}: {way!r}" for one, way in directions.items() if way not in ("higher", "lower")]:
        raise OptionError(f"scores of {name!r}: {', '.join(wrong)}", remedy="say higher or lower, whichever is better")
    names = [*directions, *slices, *([cluster] if cluster and cluster not in slices else [])]
    if twice := sorted({one for one in names if names.count(one) > 1 or one == "unit"}):
        raise OptionError(f"{name!r} cannot use the names {', '.join(twice)}", remedy="give each column its own name")


class _OwnFunctions:
    """The functions of a benchmark that was made by `hl.benchmark`."""

    def __init__(
        self, card: BenchmarkCard, units: Units, evaluate: Evaluate, slices: tuple[str, ...], cluster: str
    ) -> None:
        self.card, self.units, self.evaluate, self.slices, self.cluster = card, units, evaluate, slices, cluster
        self.scores = tuple(score.name for score in card.scores)

    def _make_units(self) -> dict[str, Any]:
        made = self.units() if callable(self.units) else self.units
        if isinstance(made, Mapping):
            return {str(key): value for key, value in made.items()}
        values = list(made)
        width = len(str(max(len(values) - 1, 0)))
        return {f"{self.card.name}-{place:0{width}}": value for place, value in enumerate(values)}

    def list_units(self, options: OwnOptions) -> list[Unit]:
        """One unit per given thing."""
        return [Unit(key, value) for key, value in self._make_units().items()]

    def list_sources(self, options: OwnOptions) -> dict[str, Any]:
        """The paths of the options, and a hash of the units."""
        return {**paths_given(options), "given units": hash_value(hash_object(self._make_units()))}

    def evaluate_units(self, units: Sequence[Unit], model: Any) -> list[Record]:
        """One record per unit, with numbers as floats."""
        records: list[Record] = []
        texts = {*self.slices, *([self.cluster] if self.cluster else [])}
        for unit in units:
            found = dict(self.evaluate(unit.payload, model))
            numbers = {key: float(value) if key in self.scores else value for key, value in found.items()}
            records.append(
                {"unit": unit.id, **{key: str(value) if key in texts else value for key, value in numbers.items()}}
            )
        return records

    def tally_records(self, records: pl.DataFrame, options: OwnOptions) -> list[SumTally]:
        """The sums and counts of every score: over all units, then of each slice."""
        parts: list[tuple[dict[str, str], pl.DataFrame]] = [({}, records)]
        for name in self.slices:
            values = sorted(set(records[name]) - {""})
            parts += [({name: value}, records.filter(records[name] == value)) for value in values]
        return [self._tally(rows, where) for where, rows in parts]

    def _tally(self, records: pl.DataFrame, where: dict[str, str]) -> SumTally:
        sums = []
        for score in self.scores:
            values = records[score].to_numpy()
            defined = np.isfinite(values)
            sums += [np.where(defined, values, 0.0), defined.astype(np.float64)]
        labels = records[self.cluster].to_list() if self.cluster else None
        entries = tuple(
            self._describe(score, one > 0, where, labels) for score, one in zip(self.scores, sums[1::2], strict=True)
        )
        key = (self.card.name, *(f"{name}={value}" for name, value in where.items()))
        return SumTally(entries, np.stack(sums, axis=1), _divide_pairs, key, self.cluster or "unit", labels)

    def _describe(self, score: str, defined: Any, where: dict[str, str], labels: Sequence[str] | None) -> Entry:
        """A score over the units for which it is defined, and the clusters that these are in."""
        n = int(defined.sum())
        clusters = n if labels is None else len({label for label, one in zip(labels, defined, strict=True) if one})
        return Entry(score, n, where, clusters=clusters, reason="" if n else "no unit has a defined value")

    def score_records(self, records: pl.DataFrame, options: OwnOptions) -> Scorecard:
        """Every score with its interval."""
        scores = [score for tally in self.tally_records(records, options) for score in score_tally(tally, options)]
        left_out = [note for score in self.scores for note in _note_undefined(records, score)]
        return Scorecard(self.card.name, self.card.version, "", tuple(scores), left_out=tuple(left_out))

    def list_qualities(self, records: pl.DataFrame, options: OwnOptions) -> pl.DataFrame:
        """The scores of single units."""
        return records.select("unit", *self.scores)

    def build_sections(self, records: pl.DataFrame, scorecard: Scorecard) -> list[Section]:
        """By score a chart of its slices and the distribution over units."""
        sections = []
        for name in self.scores:
            blocks: list[Any] = []
            for kind in self.slices:
                found = [score for score in scorecard.scores if score.name == name and set(score.slice) == {kind}]
                dots = tuple(score_dot(score, score.slice[kind]) for score in found[:_MAX_ROWS])
                if len(dots) > 1:
                    more = f" The first {_MAX_ROWS} of {len(found)}." if len(found) > _MAX_ROWS else ""
                    blocks.append(DotChart(f"{name} by {kind}", f"Means with their intervals.{more}", dots))
            values = [value for value in records[name].to_list() if np.isfinite(value)]
            chart = DistributionChart(f"{name} of single units", "One value per unit.", (("units", values),), name)
            blocks.append(chart)
            sections.append(Section(name, "", tuple(blocks)))
        return sections


def _note_undefined(records: pl.DataFrame, score: str) -> Iterator[LeftOut]:
    """Units that are not in the mean of a score: those for which it is NaN, and those for which it is infinite."""
    for units, why in (
        (records.filter(records[score].is_nan())["unit"], "NaN: it is undefined for them"),
        (records.filter(records[score].is_infinite())["unit"], "infinite, so that a mean with them would be, too"),
    ):
        if len(units):
            yield LeftOut(f"units without {score}", len(units), why, tuple(units.head(_EXAMPLES).to_list()))


def _divide_pairs(totals: Any) -> Any:
    """Means from sums and counts, one after the other in the last axis."""
    return ratio(totals.reshape(*totals.shape[:-1], -1, 2))
