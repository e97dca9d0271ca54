"""The units worth looking at, of any benchmark that judges its units: best, worst, most typical, most surprising."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from hardlook.contract.benchmark import JudgesUnits
from hardlook.contract.noteworthy import expected_qualities, noteworthy
from hardlook.contract.sections import Example, Gallery, Section

if TYPE_CHECKING:
    from hardlook.contract.records import Record
    from hardlook.runs.scoring import ScoredRun

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


def units_to_look_at(scored: ScoredRun, most: int, shown: Collection[str] = ()) -> Section | None:
    """The section, at most `most` units a gallery; None where the benchmark does not judge units or `most` is 0.

    A gallery whose units are all `shown` elsewhere on the page is left out, and the text says so.
    """
    benchmark = scored.benchmark
    if not most or not benchmark.card.qualities or not isinstance(benchmark, JudgesUnits):
        return None
    quality = benchmark.card.qualities[0]
    qualities = benchmark.qualities(scored.records, scored.options)
    slices = scored.records.select("unit", *benchmark.schema.slices)
    found = noteworthy(qualities, slices, quality, most)
    kept = {kind: found[kind] for kind in _TITLES if found[kind] and not set(found[kind]) <= set(shown)}
    elsewhere = [kind for kind in _TITLES if found[kind] and kind not in kept]
    if not kept:
        return None
    records = light_records(scored, [unit for units in kept.values() for unit in units])
    known = {row["unit"]: row for row in expected_qualities(qualities, slices, quality).iter_rows(named=True)}
    galleries = []
    for kind, units in kept.items():
        title, caption = _TITLES[kind]
        if not quality.higher_is_better and kind in ("best", "worst"):
            caption = _TITLES["worst" if kind == "best" else "best"][1]
        examples = []
        for unit in units:
            words = f"Quality {known[unit]['value']:.3f}"
            if kind == "surprising":
                words += f", where others like it have {known[unit]['expected']:.3f}"
            examples.append(Example(unit, f"{words}. {benchmark.caption(records[unit])}"))
        galleries.append(Gallery(title, caption, tuple(examples)))
    better = "higher is better" if quality.higher_is_better else "lower is better"
    text = f"Units are ordered by one number each, their quality: {quality.title} ({better}). "
    text += "One without it is never chosen."
    if elsewhere:
        text += f" The {' and the '.join(elsewhere)} units are in the galleries above."
    return Section("Units to look at", text, tuple(galleries))


def light_records(scored: ScoredRun, units: Collection[str]) -> dict[str, Record]:
    """The records of some units without their pictures."""
    import polars as pl

    frame = scored.records.filter(pl.col("unit").is_in(list(units)))
    return {row["unit"]: row for row in frame.iter_rows(named=True)}
