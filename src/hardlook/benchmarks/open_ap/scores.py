"""Scores of open AP from records: vanilla, dagger and open side by side, from the same resamples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hardlook.benchmarks.open_ap.class_sets import chosen_sets
from hardlook.benchmarks.open_ap.left_out import left_out
from hardlook.benchmarks.open_ap.matches import ClassMasks, RunTables, run_tables
from hardlook.benchmarks.open_ap.options import OpenApOptions, unmatched
from hardlook.benchmarks.open_ap.records import label_names
from hardlook.benchmarks.open_ap.resampling import bootstrap_weights
from hardlook.benchmarks.open_ap.words import refuse_strangers
from hardlook.benchmarks.open_labels.matrix import free_similarities, label_similarity
from hardlook.contract.benchmark import BenchmarkCard
from hardlook.contract.scorecard import Score, Scorecard, score_of
from hardlook.metrics.average_precision import soft_precision
from hardlook.metrics.confusion_costs import confusion_costs
from hardlook.metrics.match_table import MatchTable
from hardlook.metrics.open_ap import open_average_precision
from hardlook.randomness import generator
from hardlook.stats.intervals import Estimate

if TYPE_CHECKING:
    import polars as pl

KINDS = {"": "vanilla", "dagger-": "dagger", "open-": "open"}
QUANTITIES = {"ap": "AP", "ap50": "AP50", "ap75": "AP75", "aps": "APs", "apm": "APm", "apl": "APl", "ar": "AR"}
OF_SETS = ("ap", "ap50")
MOST_CONFUSIONS = 25
Matrix = NDArray[np.float64]
Where = tuple[tuple[str, str], ...]
Named = tuple[str, Where]


def score_images(card: BenchmarkCard, records: pl.DataFrame, options: OpenApOptions) -> Scorecard:
    """Every score with its interval over images, the dearest confusions, and what was left out."""
    # Equal scores are settled by image id, whatever the units are called.
    records = records.sort("image_id")
    names = label_names(records)
    refuse_strangers(names[: int(records["known"][0])], options)
    similarity = label_similarity(names, options.labels, options)
    sets = chosen_sets(options.class_sets, names)
    released = unmatched(options) == "released"
    tables = run_tables(records, max_detections=options.max_detections, released=released, sets=sets)
    scores = _scores(tables, similarity.matrix, names, sets, options)
    for context in sorted(set(records["context"]) - {""}):
        inside = records.filter((records["context"] == context).to_numpy())
        alone = run_tables(inside, max_detections=options.max_detections, released=released)
        scores += _scores(alone, similarity.matrix, [], {}, options, context)
    scores += _by_measure(tables.whole, names, options)
    scores += _costs(tables.whole, similarity.matrix, names)
    notes = left_out(records, tables.whole, names, options.max_detections)
    return Scorecard(card.name, card.version, "", tuple(scores), left_out=(*notes, *similarity.notes))


def _scores(
    tables: RunTables, similarity: Matrix, names: Sequence[str], sets: ClassMasks, options: OpenApOptions,
    context: str = "",
) -> list[Score]:  # fmt: skip
    images, present = len(tables.whole.multiplicity), tables.whole.objects()[0] > 0
    classes = {row: name for row, name in enumerate(names) if present[row]}

    def statistic(multiplicity: NDArray[np.int64]) -> dict[Named, float]:
        drawn = tables.weighted(multiplicity)
        return _only_ap(drawn.whole, similarity) if context else _figures(drawn, similarity, classes, sets)

    estimates: dict[Named, Estimate] = bootstrap_weights(
        images, statistic, rng=generator(options.seed, "open-ap", "bootstrap", context),
        resamples=options.resamples, level=options.level, resampled="image",
    )  # fmt: skip
    reading = f"unmatched={unmatched(options)}"
    holding = _images_of(tables.whole)
    places = {name: row for row, name in classes.items()}
    scores = []
    for (name, where), estimate in estimates.items():
        sliced = dict(where) | ({"context": context} if context else {})
        n = int(holding[places[sliced["class"]]]) if "class" in sliced else images
        scores.append(score_of(name, estimate, n, slice=sliced, reading=reading))
    return scores


def _figures(tables: RunTables, similarity: Matrix, classes: Mapping[int, str], sets: ClassMasks) -> dict[Named, float]:
    """All scores of one resample by name and slice."""
    result = open_average_precision(tables.whole, similarity)
    summary = result.summary()
    found: dict[Named, float] = {}
    for name, figure in QUANTITIES.items():
        found |= {(prefix + name, ()): summary[kind][figure] for prefix, kind in KINDS.items()}
        if name == "ap":
            found["open-gain", ()] = found["open-ap", ()] - found["dagger-ap", ()]
    for name, mask in sets.items():
        alone = open_average_precision(tables.constrained[name], similarity).summary()
        among = result.summary(np.flatnonzero(mask))
        for setting, figures in (("generalised", among), ("constrained", alone)):
            where = (("classes", name), ("setting", setting))
            for prefix, kind in KINDS.items():
                found |= {(prefix + one, where): figures[kind][QUANTITIES[one]] for one in OF_SETS}
    for prefix, kind in KINDS.items():
        values = getattr(result, kind).per_class()
        found |= {(f"{prefix}ap", (("class", name),)): float(values[row]) for row, name in classes.items()}
    return found


def _only_ap(table: MatchTable, similarity: Matrix) -> dict[Named, float]:
    """What the slices by context show."""
    result = open_average_precision(table, similarity)
    found: dict[Named, float] = {}
    for prefix, kind in KINDS.items():
        values = getattr(result, kind).per_class()
        defined = values[~np.isnan(values)]
        found[f"{prefix}ap", ()] = float(defined.mean()) if defined.size else float("nan")
    found["open-gain", ()] = found["open-ap", ()] - found["dagger-ap", ()]
    return found


def _images_of(table: MatchTable) -> NDArray[np.int64]:
    """(K,) images that have the class among their objects or their detections."""
    held = np.zeros((len(table.multiplicity), table.classes), bool)
    held[table.object_image, table.object_classes] = True
    held[table.image, table.labels] = True
    return np.asarray(held.sum(0))


def _by_measure(table: MatchTable, names: Sequence[str], options: OpenApOptions) -> list[Score]:
    """Open AP under every measure of `--compare`: what the choice does, at no cost."""
    return [
        Score(
            "open-ap",
            soft_precision(table, matrix).summary()["AP"],
            len(table.multiplicity),
            slice={"measure": measure},
        )
        for measure, matrix in free_similarities(names, options.labels, options).items()
    ]


def _costs(table: MatchTable, similarity: Matrix, names: Sequence[str]) -> list[Score]:
    """The dearest confusions among objects found (IoU .5, all areas): how many, and the part that is not forgiven."""
    costs = confusion_costs(table.label_counts(), similarity, most=MOST_CONFUSIONS)
    scores = []
    for true, called, hard, soft in zip(costs.true, costs.called, costs.hard, costs.soft, strict=True):
        where = {"true": names[true], "called": names[called]}
        scores.append(Score("confused-objects", float(hard), len(table.multiplicity), slice=where))
        scores.append(Score("unforgiven-objects", float(soft), len(table.multiplicity), slice=where))
    return scores
