"""Single units: one model against the other, and the units on which they differ most, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from hardlook.comparison.differing_units import UnitQualities, count_units, largest_gains, widest_spread
from hardlook.comparison.model_names import chart_names
from hardlook.comparison.numbers_in_words import number
from hardlook.contract.sections import Block, Example, Gallery, ScatterChart, Section, Spot, Table
from hardlook.randomness import generator

if TYPE_CHECKING:
    from hardlook.runs.scoring import ScoredRun

MOST_SPOTS = 2_000


def unit_section(runs: Sequence[ScoredRun], qualities: UnitQualities, examples: int) -> Section:
    """How often each model is better, a scatter of two models, and galleries of the units that differ."""
    blocks: list[Block] = [_counts(qualities)]
    if len(qualities.models) == 2:
        first, second = qualities.models
        blocks.append(_scatter(qualities, first, second))
        for one, other in ((first, second), (second, first)):
            chosen = largest_gains(qualities, one, other, examples)
            title = f"Where {one} is ahead of {other} by most"
            blocks.append(_gallery(runs, qualities, title, chosen, qualities.models))
    else:
        chosen = widest_spread(qualities, examples)
        blocks.append(_gallery(runs, qualities, "Where the models differ most", chosen, None))
    text = (
        f"Each unit by itself, by its {qualities.quality.title} "
        f"({'higher' if qualities.quality.higher_is_better else 'lower'} is better). Single units say where to look, "
        "not who is better."
    )
    return Section("Which units they differ on", text, tuple(blocks))


def shown_models(qualities: UnitQualities, unit: str) -> tuple[str, ...]:
    """The models whose answers to a unit are shown: both of two, the best and the worst of several."""
    if len(qualities.models) == 2:
        return qualities.models
    column = qualities.values[:, qualities.units.index(unit)]
    ends = (int(np.nanargmax(column)), int(np.nanargmin(column)))
    best, worst = ends if qualities.quality.higher_is_better else ends[::-1]
    return (qualities.models[best], qualities.models[worst])


def _counts(qualities: UnitQualities) -> Table:
    counts = [count_units(qualities, first, second) for first, second in combinations(qualities.models, 2)]
    return Table(
        "How often each is better on a single unit",
        "Equal units are often many: there both models are right, or both fail alike.",
        ("model", "against", "first better", "second better", "equal", "undefined"),
        tuple((one.first, one.second, one.first_better, one.second_better, one.equal, one.undefined) for one in counts),
    )


def _scatter(qualities: UnitQualities, first: str, second: str) -> ScatterChart:
    x, y = qualities.of(second), qualities.of(first)
    short = chart_names(qualities.models)
    known = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    caption = f"One spot a unit. Above the line {first} has more."
    if len(known) > MOST_SPOTS:
        caption += f" {MOST_SPOTS:,} of {len(known):,} units, drawn at random."
        known = np.sort(generator(0, "spots").choice(known, MOST_SPOTS, replace=False))
    return ScatterChart(
        f"{qualities.quality.title}: {first} against {second}",
        caption,
        tuple(Spot(float(x[place]), float(y[place]), qualities.units[place]) for place in known),
        x_axis=short[second],
        y_axis=short[first],
        diagonal=True,
    )


def _gallery(
    runs: Sequence[ScoredRun],
    qualities: UnitQualities,
    title: str,
    units: Sequence[str],
    models: Sequence[str] | None,
) -> Gallery:
    by_model = dict(zip(qualities.models, (_records(run, units) for run in runs), strict=True))
    caption: Any = getattr(runs[0].benchmark, "caption", lambda record: "")
    examples = []
    for unit in units:
        place = qualities.units.index(unit)
        words = []
        for model in models or shown_models(qualities, unit):
            value = number(float(qualities.of(model)[place]))
            words.append(f"{model}: {value}. {caption(by_model[model][unit])}".strip())
        examples.append(Example(unit, " ".join(words)))
    return Gallery(title, "Largest difference first; the same unit, answered by each model.", tuple(examples))


def _records(run: ScoredRun, units: Sequence[str]) -> dict[str, dict[str, Any]]:
    import polars as pl

    rows = run.records.filter(pl.col("unit").is_in(list(units)))
    return {row["unit"]: row for row in rows.iter_rows(named=True)}
