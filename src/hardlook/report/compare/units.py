"""Single units of a comparison: how often each model is better, and galleries of units on which they differ most."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hardlook.harness.benchmark import Quality
from hardlook.harness.runs.ordered_records import copy_rows
from hardlook.harness.sections import Block, Example, Gallery, Picture, ScatterChart, Section, Spot, Table
from hardlook.randomness import generator
from hardlook.report.compare.model_names import shorten_model_names
from hardlook.report.compare.shared_units import SharedChunks, take_shared_rows
from hardlook.report.formatting import format_number
from hardlook.report.run_report import load_unit_pictures

if TYPE_CHECKING:
    import polars as pl

    from hardlook.harness.runs.scoring import ScoredRun

# Qualities closer than this are equal but for rounding.
EQUAL = 1e-12
MAX_SPOTS = 2_000


@dataclass(frozen=True, eq=False)
class UnitQualities:
    """The quality of each shared unit under each model: `values` (models, units), NaN where undefined.

    Where runs are read in chunks, these are every k-th unit and those on which models differ most; `counts` are then
    the counts over all units, by pair of models.
    """

    quality: Quality
    models: tuple[str, ...]
    units: pl.Series
    values: NDArray[np.float64]
    counts: Mapping[tuple[str, str], UnitCount] = field(default_factory=dict)

    def gains(self, first: str, second: str) -> NDArray[np.float64]:
        """(units,) how much better `first` is than `second` on each unit, whichever way the quality is better."""
        sign = 1.0 if self.quality.higher_is_better else -1.0
        with np.errstate(invalid="ignore"):
            gains: NDArray[np.float64] = sign * (self.of(first) - self.of(second))
        return gains

    def find(self, unit: str) -> int:
        """The position of a unit."""
        return int((self.units == unit).arg_true()[0])

    def of(self, model: str) -> NDArray[np.float64]:
        """(units,) the qualities of one model."""
        values: NDArray[np.float64] = self.values[self.models.index(model)]
        return values


@dataclass(frozen=True)
class UnitCount:
    """On how many units the first model is better, the second is, and both are equal; others are undefined."""

    first: str
    second: str
    first_better: int
    second_better: int
    equal: int
    undefined: int

    @property
    def defined(self) -> int:
        """On how many units both have a quality."""
        return self.first_better + self.second_better + self.equal


def compute_unit_qualities(
    runs: Sequence[ScoredRun],
    models: Sequence[str],
    units: pl.Series | None,
    examples: int = 6,
    others: Sequence[ScoredRun] = (),
) -> UnitQualities | None:
    """The card's first quality of every shared unit; None where the benchmark judges no single units.

    Without `units` runs are read in chunks, and `examples` units of each gallery are found among all: among those that
    `others`, runs of further seeds, have as well.
    """
    import polars as pl

    benchmark = runs[0].benchmark
    if not (benchmark.qualities is not None and benchmark.card.qualities):
        return None
    quality = benchmark.card.qualities[0]
    if units is None:
        return _collect_unit_qualities(runs, tuple(models), quality, examples, others)
    tables = (take_shared_rows(benchmark.qualities(run.records, run.options), units) for run in runs)
    values = [table[quality.name].cast(pl.Float64).fill_null(np.nan).to_numpy() for table in tables]
    return UnitQualities(quality, tuple(models), units, np.array(values))


def _collect_unit_qualities(
    runs: Sequence[ScoredRun],
    models: tuple[str, ...],
    quality: Quality,
    examples: int,
    others: Sequence[ScoredRun],
) -> UnitQualities:
    """The qualities of every k-th shared unit and of those for galleries, and counts over all, in bounded memory."""
    import polars as pl

    step = math.ceil(max(run.scorecard.units.scored for run in runs) / MAX_SPOTS)
    counts = {pair: UnitCount(*pair, 0, 0, 0, 0) for pair in combinations(models, 2)}
    kept = UnitQualities(quality, models, pl.Series([], dtype=pl.String()), np.empty((len(models), 0)))
    ends, seen = kept, 0
    for chunks in SharedChunks([run.iterate_records() for run in (*runs, *others)]):
        values = []
        for run, rows in zip(runs, chunks[: len(runs)], strict=True):
            assert run.benchmark.qualities is not None
            table = run.benchmark.qualities(rows, run.options)
            values.append(table[quality.name].cast(pl.Float64).fill_null(np.nan).to_numpy())
        every = UnitQualities(quality, models, chunks[0]["unit"], np.array(values))
        counts = {pair: _add_counts(count, count_units(every, *pair)) for pair, count in counts.items()}
        kept = _join(kept, _take(every, np.arange(-seen % step, len(every.units), step)))
        ends = _join(ends, every)
        ends = _take(ends, _find_notable(ends, examples))
        seen += len(every.units)
    new = (~ends.units.is_in(kept.units.implode())).arg_true().to_numpy()
    return replace(_join(kept, _take(ends, new)), counts=counts)


def _find_notable(qualities: UnitQualities, examples: int) -> NDArray[np.int64]:
    """The positions of the units that galleries show."""
    if len(qualities.models) == 2:
        one, other = qualities.models
        chosen = list_largest_gains(qualities, one, other, examples)
        chosen += list_largest_gains(qualities, other, one, examples)
    else:
        chosen = list_largest_spreads(qualities, examples)
    return np.array([qualities.find(unit) for unit in chosen], np.int64)


def _take(qualities: UnitQualities, places: NDArray[np.int64]) -> UnitQualities:
    """The units at some places, with memory of their own."""
    units = copy_rows(qualities.units.gather(places).to_frame("unit"))["unit"]
    return replace(qualities, units=units, values=qualities.values[:, places])


def _join(one: UnitQualities, other: UnitQualities) -> UnitQualities:
    """The units of both, one after the other."""
    import polars as pl

    values = np.concatenate([one.values, other.values], axis=1)
    return replace(one, units=pl.concat([one.units, other.units]), values=values)


def _add_counts(one: UnitCount, other: UnitCount) -> UnitCount:
    names = ("first_better", "second_better", "equal", "undefined")
    return replace(one, **{name: getattr(one, name) + getattr(other, name) for name in names})


def count_units(qualities: UnitQualities, first: str, second: str) -> UnitCount:
    """How often each of two models is better.

    >>> import polars as pl
    >>> values = np.array([[0.9, 0.4], [0.1, 0.4]])
    >>> qualities = UnitQualities(Quality("iou", "IoU"), ("a", "b"), pl.Series(["x", "y"]), values)
    >>> count_units(qualities, "a", "b").first_better, count_units(qualities, "a", "b").equal
    (1, 1)
    """
    if qualities.counts:
        return qualities.counts[first, second]
    gains = qualities.gains(first, second)
    better, worse = int((gains > EQUAL).sum()), int((gains < -EQUAL).sum())
    undefined = int(np.isnan(gains).sum())
    return UnitCount(first, second, better, worse, len(gains) - better - worse - undefined, undefined)


def list_largest_gains(qualities: UnitQualities, first: str, second: str, most: int) -> list[str]:
    """The units with the largest lead of `first` over `second`, largest first, ties by unit id.

    >>> import polars as pl
    >>> values = np.array([[0.9, 0.4], [0.1, 0.5]])
    >>> qualities = UnitQualities(Quality("iou", "IoU"), ("a", "b"), pl.Series(["x", "y"]), values)
    >>> list_largest_gains(qualities, "a", "b", 5), list_largest_gains(qualities, "b", "a", 5)
    (['x'], ['y'])
    """
    return _list_largest(qualities.gains(first, second), qualities.units, most)


def list_largest_spreads(qualities: UnitQualities, most: int) -> list[str]:
    """The units with the largest difference between the best and the worst model, ties by unit id."""
    return _list_largest(qualities.values.max(axis=0) - qualities.values.min(axis=0), qualities.units, most)


def _list_largest(values: NDArray[np.float64], units: pl.Series, most: int) -> list[str]:
    chosen = np.flatnonzero(values > EQUAL)
    if len(chosen) > most > 0:
        # Those that reach the last value to be shown: few, so that not all are sorted.
        last = np.partition(values[chosen], -most)[-most]
        chosen = chosen[values[chosen] >= last]
    ordered = sorted(zip((-values[chosen]).tolist(), units.gather(chosen).to_list(), strict=True))
    return [unit for _, unit in ordered[:most]]


def load_pictures(
    runs: Mapping[str, ScoredRun], wanted: Mapping[str, Sequence[str]]
) -> dict[str, Sequence[Picture] | str]:
    """By unit its pictures, or the reason why there are none; `wanted` has the models to show for each unit."""
    loaded = {
        model: load_unit_pictures(run, [unit for unit, models in wanted.items() if model in models])
        for model, run in runs.items()
    }
    found: dict[str, Sequence[Picture] | str] = {}
    for unit, models in wanted.items():
        answers: dict[str, Sequence[Picture]] = {}
        for model in models:
            pictures = loaded[model][unit]
            if isinstance(pictures, str):
                found[unit] = f"{model}: {pictures}"
                break
            answers[model] = pictures
        else:
            found[unit] = merge_pictures(answers)
    return found


def merge_pictures(answers: Mapping[str, Sequence[Picture]]) -> list[Picture]:
    """Pictures that all models share come first, once; the others follow with the model's name.

    >>> image = np.zeros((2, 2, 3), np.uint8)
    >>> both = {"ant": [Picture("image", image)], "bee": [Picture("image", image), Picture("answer", image + 1)]}
    >>> [picture.label for picture in merge_pictures(both)]
    ['image', 'answer (bee)']
    """
    models = list(answers)
    shared = [
        one
        for one in answers[models[0]]
        if all(any(is_same_picture(one, two) for two in answers[other]) for other in models[1:])
    ]
    own = [
        replace(picture, label=f"{picture.label} ({model})")
        for model, pictures in answers.items()
        for picture in pictures
        if not any(is_same_picture(picture, one) for one in shared)
    ]
    return [*shared, *own]


def is_same_picture(one: Picture, other: Picture) -> bool:
    """Whether two pictures show the same under the same label."""
    shown = ((one.image, other.image), (one.mask, other.mask), (one.label_map, other.label_map))
    arrays: list[tuple[Any, Any]] = [(np.asarray(mine), np.asarray(theirs)) for mine, theirs in shown]
    return (
        one.label == other.label
        and tuple(one.points) == tuple(other.points)
        and all(mine.dtype == theirs.dtype and np.array_equal(mine, theirs) for mine, theirs in arrays)
    )


def build_unit_section(runs: Sequence[ScoredRun], qualities: UnitQualities, examples: int) -> Section:
    """How often each model is better, a scatter of two models, and galleries of the units that differ."""
    blocks: list[Block] = [_build_count_table(qualities)]
    if len(qualities.models) == 2:
        first, second = qualities.models
        blocks.append(_draw_scatter(qualities, first, second))
        for one, other in ((first, second), (second, first)):
            chosen = list_largest_gains(qualities, one, other, examples)
            title = f"Where {one} is ahead of {other} by most"
            blocks.append(_build_gallery(runs, qualities, title, chosen))
    else:
        chosen = list_largest_spreads(qualities, examples)
        blocks.append(_build_gallery(runs, qualities, "Where the models differ most", chosen))
    text = (
        f"Each unit by itself, by its {qualities.quality.title} "
        f"({'higher' if qualities.quality.higher_is_better else 'lower'} is better). Single units say where to look, "
        "not who is better."
    )
    return Section("Which units they differ on", text, tuple(blocks))


def choose_shown_models(qualities: UnitQualities, unit: str) -> tuple[str, ...]:
    """The models whose answers to a unit are shown: both of two, the best and the worst of several."""
    if len(qualities.models) == 2:
        return qualities.models
    column = qualities.values[:, qualities.find(unit)]
    ends = (int(np.nanargmax(column)), int(np.nanargmin(column)))
    best, worst = ends if qualities.quality.higher_is_better else ends[::-1]
    return (qualities.models[best], qualities.models[worst])


def _build_count_table(qualities: UnitQualities) -> Table:
    counts = [count_units(qualities, first, second) for first, second in combinations(qualities.models, 2)]
    return Table(
        "How often each is better on a single unit",
        "Equal units are often many: there both models are right, or both fail in the same way.",
        ("model", "against", "first better", "second better", "equal", "undefined"),
        tuple((one.first, one.second, one.first_better, one.second_better, one.equal, one.undefined) for one in counts),
    )


def _draw_scatter(qualities: UnitQualities, first: str, second: str) -> ScatterChart:
    x, y = qualities.of(second), qualities.of(first)
    short = shorten_model_names(qualities.models)
    known = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    caption = f"One spot per unit. Above the line {first} has more."
    every = qualities.counts[first, second].defined if qualities.counts else len(known)
    if len(known) > MAX_SPOTS:
        known = np.sort(generator(0, "spots").choice(known, MAX_SPOTS, replace=False))
    if len(known) < every:
        drawn = "evenly spaced, and those that differ most" if qualities.counts else "drawn at random"
        caption += f" {len(known):,} of {every:,} units, {drawn}."
    return ScatterChart(
        f"{qualities.quality.title}: {first} against {second}",
        caption,
        tuple(Spot(float(x[place]), float(y[place]), qualities.units[place]) for place in known.tolist()),
        x_axis=short[second],
        y_axis=short[first],
        diagonal=True,
    )


def _build_gallery(runs: Sequence[ScoredRun], qualities: UnitQualities, title: str, units: Sequence[str]) -> Gallery:
    by_model = dict(zip(qualities.models, (run.find_records(units) for run in runs), strict=True))
    caption = runs[0].benchmark.caption or (lambda record: "")
    examples = []
    for unit in units:
        place = qualities.find(unit)
        words = []
        for model in choose_shown_models(qualities, unit):
            value = format_number(float(qualities.of(model)[place]))
            words.append(f"{model}: {value}. {caption(by_model[model][unit])}".strip())
        examples.append(Example(unit, " ".join(words)))
    return Gallery(title, "Largest difference first; the same unit, answered by each model.", tuple(examples))
