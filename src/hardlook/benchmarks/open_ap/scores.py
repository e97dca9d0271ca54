"""Scores of open AP from records: vanilla, dagger and open side by side, from the same resamples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hardlook.benchmarks.open_ap.class_sets import chosen_sets
from hardlook.benchmarks.open_ap.left_out import left_out
from hardlook.benchmarks.open_ap.matches import WHOLE, ClassMasks, RunMatches, run_matches
from hardlook.benchmarks.open_ap.options import OpenApOptions, unmatched
from hardlook.benchmarks.open_ap.records import label_names
from hardlook.benchmarks.open_ap.weighted_tally import Results, WeightedTally
from hardlook.benchmarks.open_ap.words import refuse_strangers
from hardlook.benchmarks.open_labels.matrix import free_similarities, label_similarity, similarity_in_use
from hardlook.contract.benchmark import BenchmarkCard
from hardlook.contract.scorecard import Score, Scorecard
from hardlook.contract.tally import Entry, scores_of
from hardlook.metrics.average_precision import soft_precision
from hardlook.metrics.confusion_costs import confusion_costs
from hardlook.metrics.match_table import MatchTable

if TYPE_CHECKING:
    import polars as pl

KINDS = {"": "vanilla", "dagger-": "dagger", "open-": "open"}
QUANTITIES = {"ap": "AP", "ap50": "AP50", "ap75": "AP75", "aps": "APs", "apm": "APm", "apl": "APl", "ar": "AR"}
OF_SETS = ("ap", "ap50")
ONLY_AP = ("ap", "dagger-ap", "open-ap", "open-gain")
ONLY_ALL_AREAS = 1  # of the area ranges, where AP alone is asked for
KEY = ("open-ap", "bootstrap")
MOST_CONFUSIONS = 25
Matrix = NDArray[np.float64]


def score_images(card: BenchmarkCard, records: pl.DataFrame, options: OpenApOptions) -> Scorecard:
    """Every score with its interval over images, the dearest confusions, and what was left out."""
    records = _in_order(records)
    names = label_names(records)
    refuse_strangers(names[: int(records["known"][0])], options)
    similarity = label_similarity(names, options.labels, options)
    tallies = _tallies(records, similarity.matrix, options)
    scores = [score for tally in tallies for score in scores_of(tally, options)]
    table = tallies[0].tables[WHOLE]
    scores += _by_measure(table, names, options)
    scores += _costs(table, similarity.matrix, names)
    notes = left_out(records, table, names, options.max_detections)
    return Scorecard(card.name, card.version, "", tuple(scores), left_out=(*notes, *similarity.notes))


def tally_images(records: pl.DataFrame, options: OpenApOptions) -> list[WeightedTally]:
    """The matches of all images, then of those of each context; labels may be those of several runs."""
    return _tallies(_in_order(records), similarity_of_run(records, options), options)


def similarity_of_run(records: pl.DataFrame, options: OpenApOptions) -> Matrix:
    """(K, K) the similarity that the options choose, of the labels that the records use."""
    names = label_names(records)
    used = np.zeros(len(names), bool)
    for column in ("object_labels", "labels"):
        used[records[column].explode().drop_nulls().to_numpy()] = True
    return similarity_in_use(names, used, options.labels, options)


def _in_order(records: pl.DataFrame) -> pl.DataFrame:
    # Equal scores are settled by image id, whatever the units are called.
    return records.sort("image_id")


def _tallies(records: pl.DataFrame, similarity: Matrix, options: OpenApOptions) -> list[WeightedTally]:
    names = label_names(records)
    sets = chosen_sets(options.class_sets, names)
    released = unmatched(options) == "released"
    matches = run_matches(records, max_detections=options.max_detections, released=released, sets=sets)
    reading = f"unmatched={unmatched(options)}"
    holding = dict(zip(names, _images_of(matches), strict=True))

    def entry(name: str, where: Mapping[str, str], n: int) -> Entry:
        return Entry(name, holding[where["class"]] if "class" in where else n, where, reading)

    entries = tuple(entry(name, where, matches.images) for name, where in _named(names, sets))
    tallies = [WeightedTally(entries, matches, similarity, partial(_figures, sets=sets), (*KEY, ""))]
    contexts = records["context"].to_numpy()
    for context in sorted(set(contexts) - {""}):
        inside = np.flatnonzero(contexts == context)
        entries = tuple(entry(name, {"context": context}, len(inside)) for name in ONLY_AP)
        key = (*KEY, context)
        tallies.append(WeightedTally(entries, matches.only(inside), similarity, _only_ap, key, ranges=ONLY_ALL_AREAS))
    return tallies


def _named(names: Sequence[str], sets: ClassMasks) -> list[tuple[str, dict[str, str]]]:
    """Name and slice of each of `_figures`."""
    found: list[tuple[str, dict[str, str]]] = [(prefix + name, {}) for name in QUANTITIES for prefix in KINDS]
    found.insert(len(KINDS), ("open-gain", {}))
    for name in sets:
        for setting in ("generalised", "constrained"):
            where = {"classes": name, "setting": setting}
            found += [(prefix + one, where) for prefix in KINDS for one in OF_SETS]
    return found + [(f"{prefix}ap", {"class": name}) for prefix in KINDS for name in names]


def _figures(results: Results, sets: ClassMasks) -> list[float]:
    """All scores of one weighting of the images."""
    result = results[WHOLE]
    summary = result.summary()
    found = [summary[kind][figure] for figure in QUANTITIES.values() for kind in KINDS.values()]
    found.insert(len(KINDS), summary["open"]["AP"] - summary["dagger"]["AP"])
    for name, mask in sets.items():
        for figures in (result.summary(np.flatnonzero(mask)), results[name].summary()):
            found += [figures[kind][QUANTITIES[one]] for kind in KINDS.values() for one in OF_SETS]
    for kind in KINDS.values():
        found += getattr(result, kind).per_class().tolist()
    return found


def _only_ap(results: Results) -> list[float]:
    """What the slices by context show."""
    means = []
    for kind in KINDS.values():
        values = getattr(results[WHOLE], kind).per_class()
        defined = values[~np.isnan(values)]
        means.append(float(defined.mean()) if defined.size else float("nan"))
    _, dagger, opened = means
    return [*means, opened - dagger]


def _images_of(matches: RunMatches) -> list[int]:
    """Of each class, the images that have it among objects or detections; 0 where there is no object to find."""
    held, objects = np.zeros((matches.images, matches.classes), bool), np.zeros(matches.classes, bool)
    for row, image in enumerate(matches.by_set[WHOLE]):
        held[row, image.object_classes] = held[row, image.labels] = True
        objects[image.object_classes[image.counted[0]]] = True
    counts: list[int] = np.where(objects, held.sum(0), 0).tolist()
    return counts


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
