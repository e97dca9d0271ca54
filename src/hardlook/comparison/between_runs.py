"""The comparison of two or more runs of one benchmark, on the units that they share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import comb, isnan, nan
from typing import TYPE_CHECKING, Any

from hardlook.comparison.differences import Difference, differences_of
from hardlook.comparison.families import HEADLINE, corrected, headline_names
from hardlook.comparison.model_names import model_names
from hardlook.comparison.paired import PairedTally, pair_tallies, spread_of
from hardlook.comparison.shared_units import SharedUnits, differing_settings, refuse_strangers, share_units
from hardlook.comparison.standings import standings_of
from hardlook.comparison.swap_plan import cost_note, reach_notes, swap_plan
from hardlook.comparison.verdicts import judged
from hardlook.contract.benchmark import Benchmark, SpeaksWords, Tallied
from hardlook.contract.scorecard import Score
from hardlook.stats.finite import check_probability
from hardlook.stats.intervals import Interval
from hardlook.stats.ranking import Standing

if TYPE_CHECKING:
    from hardlook.contract.tally import Tally
    from hardlook.runs.scoring import ScoredRun

RESAMPLES = 2_000


@dataclass(frozen=True)
class Comparison:
    """Everything that is known of the models' differences.

    `differences` has each pair in the order of `models`, every score and slice. `standings` has the headline scores.
    `scores` are those of each model on the shared units. Without tallies `differences` and `standings` are empty.
    """

    benchmark: Benchmark
    models: tuple[str, ...]
    units: SharedUnits
    differences: tuple[Difference, ...]
    standings: Mapping[str, tuple[Standing, ...]]
    notes: tuple[str, ...]
    scores: Mapping[str, tuple[Score, ...]] = field(default_factory=dict)
    alpha: float = 0.05
    swaps: int = 0
    resamples: int = 0
    seed: int = 0

    @property
    def headline(self) -> tuple[Difference, ...]:
        """The differences of the headline scores over all units."""
        return tuple(one for one in self.differences if one.family == HEADLINE)


def compare(
    runs: Sequence[ScoredRun],
    *,
    names: Sequence[str] | None = None,
    swaps: int | None = None,
    resamples: int | None = None,
    alpha: float = 0.05,
    seed: int = 0,
    show_progress: Callable[[int, int], Any] | None = None,
) -> Comparison:
    """Compare every pair of runs in every score and slice.

    `swaps` None takes as many as the scores afford and the headline needs (see `swap_plan`). `resamples` None takes
    those of the runs' own options. Intervals are of level 1 - `alpha`. `show_progress` is told how many swaps are
    done, of how many. A benchmark without tallies gives scores side by side and a note.
    """
    check_probability(alpha, "alpha")
    models = model_names(runs, names)
    refuse_strangers(runs, models)
    units = share_units(runs, models)
    benchmark = runs[0].benchmark
    notes = [*units.in_words(), *differing_settings(runs, models)]
    if not isinstance(benchmark, Tallied):
        notes.append(
            f"The benchmark {benchmark.card.name} does not say what its scores are made from (it has no tallies), so "
            "there are no differences and no tests: the scores of each run stand side by side, each over its own units."
        )
        scores = {model: run.scorecard.scores for model, run in zip(models, runs, strict=True)}
        return Comparison(benchmark, models, units, (), {}, tuple(notes), scores, alpha)
    if resamples is None:
        resamples = max(getattr(run.options, "resamples", 0) for run in runs) or RESAMPLES
    together = list(zip(*_tallies(runs, units, benchmark), strict=True))
    card, headline = benchmark.card, headline_names(benchmark.card)
    first = [tallies[0] for tallies in together]
    tests = comb(len(models), 2) * sum(
        one.name in headline and not one.slice for tally in first for one in tally.entries
    )
    plans = [swap_plan(tally, swaps, tests, alpha) for tally in first]
    total = sum(plan.tried(tally.clusters.n) for plan, tally in zip(plans, first, strict=True))
    advance = _counted(show_progress, total)
    paired = [
        pair_tallies(tallies, plan=plan, resamples=resamples, level=1 - alpha, seed=seed, advance=advance)
        for tallies, plan in zip(together, plans, strict=True)
    ]
    found = [one for tally in paired for one in differences_of(tally, models, headline)]
    differences = judged(corrected(found), card, alpha)
    leading = [one for one in differences if one.family == HEADLINE]
    standings = standings_of(leading, models, card)
    notes += [*cost_note(first, swaps, plans), *reach_notes(differences, alpha)]
    most = max(plan.swaps for plan in plans)
    scores = {model: tuple(_scores(paired, place)) for place, model in enumerate(models)}
    return Comparison(
        benchmark, models, units, differences, standings, tuple(notes), scores, alpha, most, resamples, seed
    )


def _tallies(runs: Sequence[ScoredRun], units: SharedUnits, benchmark: Any) -> list[list[Tally]]:
    """The tallies of each run over the shared units, in the same order."""
    import polars as pl

    shared = pl.Series("unit", units.ids)
    records = [run.records.filter(pl.col("unit").is_in(shared.implode())).sort("unit") for run in runs]
    if isinstance(benchmark, SpeaksWords):
        records = list(benchmark.in_one_vocabulary(records))
    return [list(benchmark.tallies(rows, run.options)) for rows, run in zip(records, runs, strict=True)]


def _scores(paired: Sequence[PairedTally], place: int) -> list[Score]:
    """The scores of one model on the shared units, with their own intervals."""
    scores = []
    for tally in paired:
        _, low, high = spread_of(tally.replicates[place], tally.level)
        for column, entry in enumerate(tally.entries[place]):
            own = tally.clusters if entry.clusters is None else entry.clusters
            bounds = (float(low[column]), float(high[column])) if own > 1 else (nan, nan)
            known = not any(isnan(bound) for bound in bounds)
            interval = Interval(*bounds, tally.level, "percentile", own, tally.resampled) if known else None
            value = float(tally.values[place, column])
            if entry.n:
                scores.append(Score(entry.name, value, entry.n, interval, entry.slice, entry.reading, entry.comparable))
    return scores


def _counted(show_progress: Callable[[int, int], Any] | None, total: int) -> Callable[[int], None] | None:
    if show_progress is None:
        return None
    done = 0

    def advance(swapped: int) -> None:
        nonlocal done
        done += swapped
        show_progress(done, total)

    return advance
