"""Notable units of any benchmark with qualities: the best, the worst, the most typical, and the most surprising.

A unit is surprising when its quality is far from that of the other units of its slices: a failure where this kind of
unit is easy, or a success where it is hard.

>>> import polars as pl
>>> qualities = pl.DataFrame({"unit": list("abcde"), "iou": [0.9, 0.8, 0.1, 0.2, 0.3]})
>>> slices = pl.DataFrame({"unit": list("abcde"), "context": ["sea", "sea", "sea", "sky", "sky"]})
>>> quality = Quality("iou", "IoU")
>>> select_notable_units(compute_expected_qualities(qualities, slices, quality), quality, most=1)
{'best': ['a'], 'worst': ['c'], 'typical': ['e'], 'surprising': ['c']}
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import numpy as np

from hardlook.harness.benchmark import Quality
from hardlook.harness.rounding import format_fixed
from hardlook.harness.runs.ordered_records import copy_rows
from hardlook.harness.runs.scoring import pick_every
from hardlook.harness.sections import Example, Gallery, Section

if TYPE_CHECKING:
    import polars as pl

    from hardlook.harness.runs.scoring import ScoredRun

# Means of equal numbers differ from them in the last bits.
ROUNDING = 1e-9

# Of a run that is read in chunks, at most so many units are candidates beside a sample.
MOST_CANDIDATES = 100_000

# Before the names of slices, so that a slice may be called "value" or "count".
_SLICE = "slice "

# The worst come first: they say most about what an average hides.
_TITLES = {
    "worst": ("The worst units", "The lowest first."),
    "best": ("The best units", "The highest first."),
    "typical": ("The most typical units", "Nearest to the median."),
    "surprising": (
        "The most surprising units",
        "Farthest from the mean of the other units that share their slices: failures where it is easy, successes "
        "where it is hard.",
    ),
}


def build_notable_units_section(scored: ScoredRun, most: int, shown: Collection[str] = ()) -> Section | None:
    """The section, at most `most` units per gallery; None where the benchmark has no qualities or `most` is 0.

    A gallery whose units are all `shown` elsewhere on the page is left out, and the text says so.
    """
    benchmark = scored.benchmark
    if not most or not benchmark.card.qualities or benchmark.qualities is None:
        return None
    quality = benchmark.card.qualities[0]
    if scored.is_chunked:
        expected = collect_candidates(scored, quality, most)
    else:
        qualities = benchmark.qualities(scored.records, scored.options)
        slices = scored.records.select("unit", *benchmark.schema.slices)
        expected = compute_expected_qualities(qualities, slices, quality)
    notable = select_notable_units(expected, quality, most)
    kept = {kind: notable[kind] for kind in _TITLES if notable[kind] and not set(notable[kind]) <= set(shown)}
    elsewhere = [kind for kind in _TITLES if notable[kind] and kind not in kept]
    if not kept:
        return None
    chosen = [unit for units in kept.values() for unit in units]
    records = scored.find_records(chosen)
    known = {row["unit"]: row for row in expected.filter(expected["unit"].is_in(chosen)).iter_rows(named=True)}
    galleries = []
    for kind, units in kept.items():
        title, caption = _TITLES[kind]
        if not quality.higher_is_better and kind in ("best", "worst"):
            caption = _TITLES["worst" if kind == "best" else "best"][1]
        examples = []
        for unit in units:
            words = f"Quality {format_fixed(known[unit]['value'], 3)}"
            if kind == "surprising":
                words += f", where others like it have {format_fixed(known[unit]['expected'], 3)}"
            event = benchmark.caption(records[unit]) if benchmark.caption else ""
            examples.append(Example(unit, f"{words}. {event}".strip()))
        galleries.append(Gallery(title, caption, tuple(examples)))
    better = "higher is better" if quality.higher_is_better else "lower is better"
    text = f"Units are ordered by one number each, their quality: {quality.title} ({better}). "
    text += "Units without a quality are never chosen."
    if scored.is_chunked:
        text += f" Typical units are chosen from one unit in {scored.sampling_step:,}."
    if elsewhere:
        text += f" The {' and the '.join(elsewhere)} units are in the galleries above."
    return Section("Units to look at", text, tuple(galleries))


def select_notable_units(known: pl.DataFrame, quality: Quality, most: int) -> Mapping[str, list[str]]:
    """At most `most` unit ids of each kind, the most notable first.

    `known` is what `compute_expected_qualities` returns. Ties go by unit id. A unit whose quality is NaN is never
    chosen, and no unit is both among the best and the worst. Typical units are those nearest to the median. Where no
    slice says anything, or all units got the same, nothing surprises; where all got the same, none is the worst.
    """
    import polars as pl

    if known.is_empty():
        return {"best": [], "worst": [], "typical": [], "surprising": []}
    down = pl.col("value") if quality.higher_is_better else -pl.col("value")
    up = known.select(-down).to_series().to_numpy()
    # With few units, or many equal ones, both ends of the order would meet: each is chosen from its own half. Of the
    # units with the value in the middle, the first by id are in the better half.
    half = (len(known) + 1) // 2
    middle = np.partition(up, half - 1)[half - 1]
    is_better = up < middle
    is_better[np.flatnonzero(up == middle)[: half - is_better.sum()]] = True
    best = _take_first(known.filter(is_better), -down, most)
    worst = _take_first(known.filter(~is_better & (up != up.min())), down, most)
    typical = _take_first(known, (pl.col("value") - pl.col("value").median()).abs(), most)
    distance = (pl.col("value") - pl.col("expected")).abs()
    surprising = _take_first(known.filter(distance > ROUNDING), -distance, most)
    return {"best": best, "worst": worst, "typical": typical, "surprising": surprising}


def compute_expected_qualities(qualities: pl.DataFrame, slices: pl.DataFrame, quality: Quality) -> pl.DataFrame:
    """`unit`, `value` and `expected` of every unit whose quality is known, sorted by unit.

    `expected` is the mean, over the slice columns, of the mean of the other units with the same slice value; null
    where no slice column tells the unit from some and joins it to others.
    """
    import polars as pl

    values = qualities.select("unit", value=pl.col(quality.name).cast(pl.Float64))
    slices = slices.select("unit", pl.exclude("unit").name.prefix(_SLICE))
    in_order = values["unit"].equals(slices["unit"])
    joined = values.hstack(slices.drop("unit")) if in_order else values.join(slices, on="unit", how="left")
    known = joined.filter(pl.col("value").is_finite())
    known = known if known["unit"].is_sorted() else known.sort("unit")
    columns = [name for name in slices.columns if name != "unit" and known[name].n_unique() > 1]
    if not columns:
        return known.select("unit", "value", expected=pl.lit(None, pl.Float64))
    others = [_mean_of_others(name).alias(f"{index}") for index, name in enumerate(columns)]
    return known.select("unit", "value", *others).select(
        "unit", "value", expected=pl.mean_horizontal(pl.col(f"{index}") for index in range(len(columns)))
    )


def _mean_of_others(column: str) -> pl.Expr:
    """The mean of the other units with the same value in this column; null where there is none."""
    import polars as pl

    total, count = pl.col("value").sum().over(column), pl.len().over(column)
    return pl.when(count > 1).then((total - pl.col("value")) / (count - 1))


def collect_candidates(scored: ScoredRun, quality: Quality, most: int) -> pl.DataFrame:
    """What `compute_expected_qualities` returns, of the units among which the notable ones are, read in chunks.

    Of the units that share all their slices, the lowest or the highest is farthest from what is expected of them; and
    every k-th unit shows what is typical. A slice of very many values, such as an id, says little and does not count.
    """
    import polars as pl

    benchmark, columns = scored.benchmark, list(scored.benchmark.schema.slices)
    assert benchmark.qualities is not None
    slices = [f"{_SLICE}{name}" for name in columns]
    shared, ends, sampled = slices, pl.DataFrame(), []
    totals: dict[str, pl.DataFrame] = {}
    for chunk, every in pick_every(scored.iterate_records(), scored.sampling_step):
        values = benchmark.qualities(chunk, scored.options)[quality.name].cast(pl.Float64).alias("value")
        sliced = chunk.select("unit", pl.col(columns).name.prefix(_SLICE))
        known = sliced.with_columns(values).filter(pl.col("value").is_finite())
        sampled.append(copy_rows(known.filter(pl.col("unit").is_in(every["unit"].implode()))))
        for name in slices:
            counted = known.group_by(name).agg(total=pl.col("value").sum(), count=pl.len())
            totals[name] = _add_totals(name, totals.get(name), counted)
        slices = [name for name in slices if len(totals[name]) <= MOST_CANDIDATES]
        shared = [name for name in shared if name in slices]
        ends = copy_rows(_take_ends(pl.concat([ends, known], how="diagonal"), shared, most))
        if len(ends) > MOST_CANDIDATES:
            # So many combinations of slices say little about a unit.
            shared = []
            ends = _take_ends(ends, shared, most)
    candidates = pl.concat([ends, *sampled]).unique(subset="unit", keep="first")
    others = []
    for name in slices:
        if len(totals[name]) > 1:
            candidates = candidates.join(totals[name], on=name, how="left", nulls_equal=True)
            mean = (pl.col("total") - pl.col("value")) / (pl.col("count") - 1)
            candidates = candidates.with_columns(pl.when(pl.col("count") > 1).then(mean).alias(f"others in {name}"))
            candidates = candidates.drop("total", "count")
            others.append(f"others in {name}")
    mean_of_others = pl.mean_horizontal(others) if others else pl.lit(None, pl.Float64)
    return candidates.select("unit", "value", expected=mean_of_others).sort("unit")


def _add_totals(name: str, one: pl.DataFrame | None, other: pl.DataFrame) -> pl.DataFrame:
    """The sums and counts of two chunks by the value of a slice."""
    import polars as pl

    if one is None:
        return other
    return pl.concat([one, other]).group_by(name).agg(pl.col("total").sum(), pl.col("count").sum())


def _take_ends(known: pl.DataFrame, shared: list[str], most: int) -> pl.DataFrame:
    """The `most` lowest and highest units of each combination of slices, ties by unit id."""
    import polars as pl

    ends = []
    for descending in (False, True):
        ordered = known.sort("value", "unit", descending=[descending, False])
        ends.append(ordered.group_by(shared, maintain_order=True).head(most) if shared else ordered.head(most))
    return pl.concat([end.select(known.columns) for end in ends]).unique(subset="unit", keep="first")


def _take_first(known: pl.DataFrame, order: pl.Expr, most: int) -> list[str]:
    """The ids of the units that come first in the order, found without sorting all of them."""
    import polars as pl

    if known.is_empty() or most < 1:
        return []
    keys = known.select("unit", key=order)
    last = keys["key"].bottom_k(most).max()
    units: list[str] = keys.filter(pl.col("key") <= last).sort("key", "unit").head(most)["unit"].to_list()
    return units
