"""The comparison of two or more runs of one benchmark, on the units that they share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hardlook.errors import OptionError
from hardlook.harness.added_tallies import TallyAdder
from hardlook.harness.benchmark import Benchmark, BenchmarkCard, ScoreMeaning
from hardlook.harness.scorecard import Score
from hardlook.harness.stats.intervals import Method
from hardlook.harness.stats.ranking import Standing, rank_models
from hardlook.harness.stats.resampling import check_probability
from hardlook.reading import reading
from hardlook.report.compare.differences import (
    HEADLINE_SCORES,
    Difference,
    add_verdicts,
    compute_differences,
    correct_p_values,
    describe_insufficient_swaps,
    find_score_meaning,
    list_headline_names,
)
from hardlook.report.compare.model_names import name_models
from hardlook.report.compare.paired_tallies import (
    SWAPPED_GROUPS,
    PairedTally,
    check_same_scores,
    describe_costly_swaps,
    pair_tallies,
    plan_swaps,
)
from hardlook.report.compare.shared_units import (
    SharedChunks,
    SharedUnits,
    check_comparable,
    describe_differing_settings,
    find_shared_units,
    take_shared_rows,
)

if TYPE_CHECKING:
    from hardlook.harness.runs.scoring import ScoredRun
    from hardlook.harness.tally import Tally

RESAMPLES = 2_000
"""At least so many: fewer make the bounds of percentile intervals depend on the draws."""


@dataclass(frozen=True)
class Comparison:
    """The differences between the models.

    `differences` has each pair in the order of `models`, every score and slice. `standings` has the headline scores.
    `scores` are those of each model on the shared units. Without tallies `differences` and `standings` are empty.
    `seeds` counts the runs of each model, where some have several.
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
    interval: Method = "jackknife"
    seeds: tuple[int, ...] = ()

    @property
    def headline(self) -> tuple[Difference, ...]:
        """The differences of the headline scores over all units."""
        return tuple(one for one in self.differences if one.family == HEADLINE_SCORES)

    def find_meaning(self, name: str) -> ScoreMeaning:
        """The meaning of a score by its name."""
        return find_score_meaning(self.benchmark.card, name)


def read_runs(folders: Sequence[Path], changes: dict[str, Any] | None = None) -> list[ScoredRun]:
    """Read and score runs, without intervals where the comparison computes its own."""
    from hardlook.harness.registry import find_benchmark
    from hardlook.harness.runs.folder import RunFolder
    from hardlook.harness.runs.scoring import score_run

    runs = []
    for path in folders:
        folder = RunFolder(path)
        manifest = folder.read_manifest()
        own = dict(changes or {})
        with reading(folder.manifest_path, "the run's benchmark cannot be loaded", remedy="restore its run.json"):
            benchmark = find_benchmark(manifest["benchmark"]["name"])
        if benchmark.tallies is not None and "resamples" in manifest["options"]:
            own["resamples"] = 0
        runs.append(score_run(folder, own))
    return runs


def compare_runs(
    runs: Sequence[ScoredRun | Sequence[ScoredRun]],
    *,
    names: Sequence[str] | None = None,
    swaps: int | None = None,
    resamples: int = RESAMPLES,
    alpha: float = 0.05,
    seed: int = 0,
    interval: Method = "jackknife",
    show_progress: Callable[[int, int], Any] | None = None,
) -> Comparison:
    """Compare every pair of models in every score and slice.

    A model is one run, or a list of runs of one method trained with several seeds: its scores are then the means over
    the runs, and intervals and tests cover the seeds, too. `names` are those of the models, by default their own.
    `swaps` None takes as many as the scores afford and the headline needs (see `plan_swaps`). `interval` is jackknife
    or percentile, of level 1 - `alpha`. `show_progress` is called with the number of swaps made and their total.
    Without tallies a benchmark has no differences: the comparison holds the scores side by side and a note.
    """
    check_probability(alpha, "alpha")
    groups: list[Sequence[ScoredRun]] = [one if isinstance(one, Sequence) else (one,) for one in runs]
    models = name_models([group[0] for group in groups], names)
    seeds = tuple(map(len, groups)) if any(len(group) > 1 for group in groups) else ()
    every = [run for group in groups for run in group]
    each = [
        f"{model}, run {place + 1}" if len(group) > 1 else model
        for model, group in zip(models, groups, strict=True)
        for place in range(len(group))
    ]
    check_comparable(every, each)
    if len(models) < 2:
        raise OptionError("a comparison needs at least two models, got one", remedy="give the runs of several models")
    benchmark = every[0].benchmark
    by_run: list[list[Tally]] = []
    if any(run.is_chunked for run in every):
        units, by_run = _add_up_tallies(every, each)
    else:
        units = find_shared_units(every, each)
        if benchmark.tallies is not None:
            by_run = _build_tallies(every, units.ids, benchmark)
    notes = [*units.describe(), *describe_differing_settings(every, each), *describe_seeds(models, seeds)]
    if benchmark.tallies is None:
        notes.append(
            f"The benchmark {benchmark.card.name} does not say what its scores are made from (it has no tallies), so "
            "there are no differences and no tests: the scores of each run are listed side by side, each over its own "
            "units."
        )
        scores = {model: group[0].scorecard.scores for model, group in zip(models, groups, strict=True)}
        return Comparison(benchmark, models, units, (), {}, tuple(notes), scores, alpha, seeds=seeds)
    by_tally = [join_seeds(tallies, list(map(len, groups))) for tallies in zip(*by_run, strict=True)]
    card, headline = benchmark.card, list_headline_names(benchmark.card)
    first = [tallies[0] for tallies in by_tally]
    tests = math.comb(len(models), 2) * sum(
        one.name in headline and not one.slice for tally in first for one in tally.entries
    )
    plans = [plan_swaps(tally, swaps, tests, alpha) for tally in first]
    total = sum(plan.count_swaps(tally.clusters.n) for plan, tally in zip(plans, first, strict=True))
    done = 0

    def advance(made: int) -> None:
        nonlocal done
        done += made
        if show_progress is not None:
            show_progress(done, total)

    paired = [
        pair_tallies(
            tallies, plan=plan, resamples=resamples, level=1 - alpha, seed=seed, advance=advance, method=interval
        )
        for tallies, plan in zip(by_tally, plans, strict=True)
    ]
    raw = [one for tally in paired for one in compute_differences(tally, models, headline)]
    differences = add_verdicts(correct_p_values(raw), card, alpha)
    notes += [*describe_costly_swaps(first, swaps, plans), *describe_insufficient_swaps(differences, alpha)]
    standings = _rank_models(differences, models, card)
    scores = {model: tuple(_build_scores(paired, place)) for place, model in enumerate(models)}
    method = (alpha, max(plan.swaps for plan in plans), resamples, seed, interval, seeds)
    return Comparison(benchmark, models, units, differences, standings, tuple(notes), scores, *method)


def get_model_values(differences: Sequence[Difference]) -> dict[str, float]:
    """The score of each model, from the differences of one score in one slice."""
    values: dict[str, float] = {}
    for one in differences:
        values.setdefault(one.first, one.first_value)
        values.setdefault(one.second, one.second_value)
    return values


def join_seeds(tallies: Sequence[Tally], seeds: Sequence[int]) -> list[Tally]:
    """One tally of each model, from those of its runs, `seeds` of them one after the other."""
    from hardlook.harness.tally import SeedTally

    check_same_scores(tallies)
    if max(seeds) == 1:
        return list(tallies)
    ends = np.cumsum(seeds).tolist()
    return [SeedTally(tuple(tallies[end - count : end])) for end, count in zip(ends, seeds, strict=True)]


def describe_seeds(models: Sequence[str], seeds: Sequence[int]) -> list[str]:
    """What the intervals cover where models have several runs, and which model has one only.

    >>> describe_seeds(["ant", "bee"], [3, 1])[1]
    'Warning: bee has one run: how much its scores vary with its seed is unknown, and not in its intervals.'
    """
    if not seeds:
        return []
    runs = ", ".join(f"{model}: {count}" for model, count in zip(models, seeds, strict=True))
    notes = [f"Scores are means over runs of several seeds ({runs}); intervals and tests cover the seeds as well."]
    for model, count in zip(models, seeds, strict=True):
        if count == 1:
            notes.append(
                f"Warning: {model} has one run: how much its scores vary with its seed is unknown, and not in its "
                "intervals."
            )
    return notes


def _add_up_tallies(runs: Sequence[ScoredRun], models: Sequence[str]) -> tuple[SharedUnits, list[list[Tally]]]:
    """The shared units and the tallies of each run over them, where records are read in chunks."""
    shared, adders = SharedChunks([run.iterate_records() for run in runs]), [TallyAdder(SWAPPED_GROUPS) for _ in runs]
    for chunks in shared:
        for run, adder, rows in zip(runs, adders, chunks, strict=True):
            assert run.benchmark.tallies is not None
            adder.add(run.benchmark.tallies(rows, run.options))
    return shared.describe(runs, models), [list(adder.tallies()) for adder in adders]


def _build_tallies(runs: Sequence[ScoredRun], units: Any, benchmark: Any) -> list[list[Tally]]:
    """The tallies of each run over the shared units, in the same order."""
    records = [take_shared_rows(run.records, units) for run in runs]
    if benchmark.merge_vocabularies is not None:
        records = list(benchmark.merge_vocabularies(records))
    return [list(benchmark.tallies(rows, run.options)) for rows, run in zip(records, runs, strict=True)]


def _build_scores(paired: Sequence[PairedTally], place: int) -> list[Score]:
    """The scores of one model on the shared units, with their own intervals."""
    scores = []
    for tally in paired:
        _, low, high = tally.summarize_score(place)
        for column, entry in enumerate(tally.entries[place]):
            clusters = tally.count_clusters(entry)
            interval = tally.make_interval(low[column], high[column], clusters)
            value = float(tally.values[place, column])
            if entry.n or entry.reason:
                names = ("slice", "reading", "comparable", "reason")
                more = {name: getattr(entry, name) for name in names}
                scores.append(Score(entry.name, value, entry.n, interval, **more))
    return scores


def _rank_models(
    differences: Sequence[Difference], models: Sequence[str], card: BenchmarkCard
) -> dict[str, tuple[Standing, ...]]:
    """By headline score, the models best first, with tied sets.

    A score that is not `ranked` has no ranking, and a model whose score is undefined has no rank. Two models differ
    where the verdict, corrected over all pairs and headline scores, is significant.
    """
    leading = [one for one in differences if one.family == HEADLINE_SCORES]
    rankings = {}
    for name in dict.fromkeys(one.name for one in leading if find_score_meaning(card, one.name).ranked):
        # Of a score with several readings the first is the one that the benchmark leads with.
        reading = next(one.reading for one in leading if one.name == name)
        rows = [one for one in leading if one.name == name and one.reading == reading]
        values = get_model_values(rows)
        placed = [model for model in models if math.isfinite(values.get(model, math.nan))]
        differs = np.zeros((len(placed), len(placed)), dtype=np.bool_)
        for one in rows:
            if one.is_significant:
                i, j = placed.index(one.first), placed.index(one.second)
                differs[i, j] = differs[j, i] = True
        if placed:
            better = find_score_meaning(card, name).higher_is_better
            rankings[name] = rank_models(placed, [values[model] for model in placed], differs, higher_is_better=better)
    return rankings
