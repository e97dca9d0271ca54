"""Scores of open AP from records: vanilla, dagger and open side by side, from the same resamples.

>>> [score.name for score in SCORES if score.headline]
['ap', 'dagger-ap', 'open-ap', 'open-gain']
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hardlook.harness.benchmark import BenchmarkCard, ScoreMeaning
from hardlook.harness.scorecard import LeftOut, Score, Scorecard
from hardlook.harness.tally import Entry, score_tally, with_ranges
from hardlook.metrics.average_precision import MatchTable, soft_precision
from hardlook.metrics.confusion import confusion_costs
from hardlook.open_vocabulary.ap.image_precision import FlatImages, compute_image_precision
from hardlook.open_vocabulary.ap.matches import ALL_CLASSES, Results, RunMatches, WeightedTally, match_records
from hardlook.open_vocabulary.ap.options import OpenApOptions, unmatched_ids
from hardlook.open_vocabulary.ap.units import check_categories
from hardlook.open_vocabulary.class_sets import ClassMasks, load_class_sets
from hardlook.open_vocabulary.label_similarity import (
    compute_compared_similarities,
    compute_label_similarity,
    compute_used_similarity,
)
from hardlook.open_vocabulary.published import add_comparability
from hardlook.open_vocabulary.record_columns import flatten_column, read_label_names

if TYPE_CHECKING:
    import polars as pl

# Prefix of a score's name: the kind of AP and how it is matched.
KINDS = {
    "": ("vanilla", "COCO's own: matched within classes"),
    "dagger-": ("dagger", "classes pooled in matching, only the right label counts"),
    "open-": ("open", "classes pooled in matching, similar labels count in part"),
}

QUANTITIES = {
    "ap": ("AP", "mean precision over IoU .5 to .95"),
    "ap50": ("AP50", "mean precision at IoU .5"),
    "ap75": ("AP75", "mean precision at IoU .75"),
    "aps": ("APs", "AP of objects below 32 x 32 pixels"),
    "apm": ("APm", "AP of objects between 32 x 32 and 96 x 96 pixels"),
    "apl": ("APl", "AP of objects above 96 x 96 pixels"),
    "ar": ("AR", "mean share of objects found over IoU .5 to .95"),
}

SCORES = (
    *(
        ScoreMeaning(prefix + name, f"{kind} {title}", f"{meaning}; {how}", headline=name == "ap")
        for prefix, (kind, how) in KINDS.items()
        for name, (title, meaning) in QUANTITIES.items()
    ),
    ScoreMeaning("open-gain", "given back", "open AP minus dagger AP, on the same images", headline=True, ranked=False),
    ScoreMeaning(
        "confused-objects", "confused objects", "objects of one label found under another", higher_is_better=False
    ),
    ScoreMeaning(
        "unforgiven-objects", "unforgiven objects", "the part that similarity does not forgive", higher_is_better=False
    ),
)

SET_QUANTITIES = ("ap", "ap50")
CONTEXT_SCORES = ("ap", "dagger-ap", "open-ap", "open-gain")
MAX_CONFUSIONS = 25

_KEY = ("open-ap", "bootstrap")
_ONLY_ALL_AREAS = 1  # the first of the area ranges, where no other is needed

Matrix = NDArray[np.float64]


def score_records(card: BenchmarkCard, records: pl.DataFrame, options: OpenApOptions) -> Scorecard:
    """Every score with its interval over images, the most costly confusions, and what was left out."""
    records = records.sort("image_id")  # ties of scores are broken by image id, whatever the units are called
    names = read_label_names(records)
    check_categories(names[: int(records["known"][0])], options)
    similarity = compute_label_similarity(names, options)
    tallies = _tally_contexts(records, similarity.matrix, options)
    scores = [score for tally in tallies for score in score_tally(tally, options)]
    table, images = tallies[0].tables[ALL_CLASSES], len(records)
    for measure, matrix in compute_compared_similarities(names, options).items():
        value = soft_precision(table, matrix).summary()["AP"]
        scores.append(Score("open-ap", value, images, slice={"measure": measure}))
    # Among objects that are found at IoU .5, of all areas.
    costs = confusion_costs(table.label_counts(), similarity.matrix, most=MAX_CONFUSIONS)
    for true, called, count, cost in zip(costs.true, costs.called, costs.hard, costs.soft, strict=True):
        where = {"true": names[true], "called": names[called]}
        scores.append(Score("confused-objects", float(count), images, slice=where))
        scores.append(Score("unforgiven-objects", float(cost), images, slice=where))
    notes = (*_note_left_out(records, table, names, options.max_detections), *similarity.notes)
    return add_comparability(Scorecard(card.name, card.version, "", tuple(scores), left_out=notes), options)


def tally_records(records: pl.DataFrame, options: OpenApOptions) -> list[WeightedTally]:
    """The matches of all images, then of those of each context; labels may be those of several runs."""
    return _tally_contexts(records.sort("image_id"), compute_run_similarity(records, options), options)


def compute_unit_qualities(records: pl.DataFrame, options: OpenApOptions) -> pl.DataFrame:
    """`unit`, `image-open-ap50` and `image-ap50`, from 0 to 1; NaN for an image without objects.

    All detections of an image in one ranking, whatever their labels: at each object found (IoU .5), the precision so
    far, times the similarity of predicted and true label; divided by the number of objects. The second one counts the
    right label only. They are AP in the plain sense, not interpolated as COCO's, which is not defined for one image.
    """
    import polars as pl

    images, similarity = FlatImages.from_records(records), compute_run_similarity(records, options)
    opened, vanilla = (
        compute_image_precision(images, matrix, options.max_detections)
        for matrix in (similarity, np.eye(len(similarity)))
    )
    return pl.DataFrame({"unit": records["unit"], "image-open-ap50": opened, "image-ap50": vanilla})


def compute_run_similarity(records: pl.DataFrame, options: OpenApOptions) -> Matrix:
    """(K, K) the similarity that the options choose, of the labels that the records use."""
    names = read_label_names(records)
    used = np.zeros(len(names), bool)
    for column in ("object_labels", "labels"):
        used[flatten_column(records[column])] = True
    return compute_used_similarity(names, used, options)


def _tally_contexts(records: pl.DataFrame, similarity: Matrix, options: OpenApOptions) -> list[WeightedTally]:
    names, value = read_label_names(records), unmatched_ids(options)
    sets = load_class_sets(options.class_sets, names)
    released, reading = value == "released", f"unmatched={value}"
    matches = match_records(records, max_detections=options.max_detections, released=released, sets=sets)
    class_images = dict(zip(names, _count_class_images(matches), strict=True))
    basis = {"class": sum(count > 0 for count in class_images.values())}
    entries = tuple(
        Entry(name, count, where, reading, clusters=count)
        if (count := class_images.get(where.get("class", ""))) is not None
        else Entry(name, matches.images, where, reading, rests_on={} if where else basis)
        for name, where in _list_figures(names, sets)
    )
    # Open AP is never below dagger AP, so that what is given back is a share as well.
    tallies = [
        WeightedTally(with_ranges(entries), matches, similarity, partial(_compute_figures, sets=sets), (*_KEY, ""))
    ]
    contexts = records["context"].to_numpy()
    for context in sorted(set(contexts) - {""}):
        inside = np.flatnonzero(contexts == context)
        entries = tuple(Entry(name, len(inside), {"context": context}, reading) for name in CONTEXT_SCORES)
        entries = with_ranges(entries)
        inside_matches, key = matches.select(inside), (*_KEY, context)
        tallies.append(
            WeightedTally(entries, inside_matches, similarity, _compute_context_figures, key, ranges=_ONLY_ALL_AREAS)
        )
    return tallies


def _list_figures(names: Sequence[str], sets: ClassMasks) -> list[tuple[str, dict[str, str]]]:
    """Name and slice of each number of `_compute_figures`."""
    figures: list[tuple[str, dict[str, str]]] = [(prefix + name, {}) for name in QUANTITIES for prefix in KINDS]
    figures.insert(len(KINDS), ("open-gain", {}))
    for name in sets:
        for setting in ("generalised", "constrained"):
            where = {"classes": name, "setting": setting}
            figures += [(prefix + one, where) for prefix in KINDS for one in SET_QUANTITIES]
    return figures + [(f"{prefix}ap", {"class": name}) for prefix in KINDS for name in names]


def _compute_figures(results: Results, sets: ClassMasks) -> list[float]:
    """All scores of one weighting of the images."""
    result = results[ALL_CLASSES]
    summary = result.summary()
    kinds = [kind for kind, _ in KINDS.values()]
    figures = [summary[kind][title] for title, _ in QUANTITIES.values() for kind in kinds]
    figures.insert(len(kinds), summary["open"]["AP"] - summary["dagger"]["AP"])
    for name, mask in sets.items():
        for within in (result.summary(np.flatnonzero(mask)), results[name].summary()):
            figures += [within[kind][QUANTITIES[one][0]] for kind in kinds for one in SET_QUANTITIES]
    for kind in kinds:
        figures += getattr(result, kind).per_class().tolist()
    return figures


def _compute_context_figures(results: Results) -> list[float]:
    """The numbers of `CONTEXT_SCORES`."""
    means = []
    for kind, _ in KINDS.values():
        values = getattr(results[ALL_CLASSES], kind).per_class()
        defined = values[~np.isnan(values)]
        means.append(float(defined.mean()) if defined.size else float("nan"))
    _, dagger, opened = means
    return [*means, opened - dagger]


def _count_class_images(matches: RunMatches) -> list[int]:
    """Per class the images that have it among objects or detections; 0 where there is no object to find."""
    held, objects = np.zeros((matches.images, matches.classes), bool), np.zeros(matches.classes, bool)
    for row, image in enumerate(matches.by_set[ALL_CLASSES]):
        held[row, image.object_classes] = held[row, image.labels] = True
        objects[image.object_classes[image.counted[0]]] = True
    counts: list[int] = np.where(objects, held.sum(0), 0).tolist()
    return counts


def _note_left_out(
    records: pl.DataFrame, table: MatchTable, names: Sequence[str], max_detections: int
) -> tuple[LeftOut, ...]:
    """What enters no score, or only in part."""
    found = records["labels"].list.len().cast(int)
    empty = records.filter((records["object_labels"].list.len() == 0).to_numpy())["unit"].to_list()
    crowds = int(records["object_crowd"].list.sum().sum())
    full = records.filter((found > max_detections).to_numpy())["unit"].to_list()
    beyond = int((found - max_detections).clip(0).sum())
    counts = table.objects()[0]
    named = np.bincount(table.labels, minlength=len(names))
    silent = [name for row, name in enumerate(names) if counts[row] and not named[row]]
    absent = [name for row, name in enumerate(names) if not counts[row]]
    undetected = 0 if int(found.sum()) else len(records)
    limit = f"--max-detections {max_detections}: over all classes for dagger and open, of each class for AP"
    rows: list[tuple[str, int, str, list[str]]] = [
        ("images without detections", undetected, "no image has any: every AP is 0", []),
        ("images without objects", len(empty), "their detections are false positives", empty),
        ("crowd regions", crowds, "detections in them neither count nor harm, as in COCO", []),
        ("detections beyond the best of their image", beyond, limit, full),
        ("classes that no detection names", len(silent), "they have objects, so they stay in every mean", silent),
        ("labels without objects", len(absent), "they have no AP; a detection of theirs can still match", absent),
    ]
    still = ("images without detections", "images without objects", "classes that no detection names")
    return tuple(
        LeftOut(what, count, why, tuple(examples[:5]), kept=what in still)
        for what, count, why, examples in rows
        if count
    )
