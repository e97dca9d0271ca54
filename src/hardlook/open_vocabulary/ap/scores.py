"""Scores of open AP from records: vanilla, dagger and open side by side, from the same resamples.

>>> [score.name for score in SCORES if score.headline]
['ap', 'dagger-ap', 'open-ap', 'open-gain']
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from hardlook.harness.benchmark import BenchmarkCard, ScoreMeaning
from hardlook.harness.scorecard import LeftOut, Reading, Score, Scorecard
from hardlook.harness.tally import Entry, score_tally, with_ranges
from hardlook.metrics.average_precision import MatchTable, soft_precision, vanilla_precision
from hardlook.metrics.confusion import confusion_costs
from hardlook.metrics.detection import IGNORED
from hardlook.open_vocabulary.ap.evaluation import join_image_vocabularies, merge_classes, read_own_labels
from hardlook.open_vocabulary.ap.image_precision import FlatImages, compute_image_precision, match_objects
from hardlook.open_vocabulary.ap.matches import ALL_CLASSES, Results, RunMatches, WeightedTally, match_records
from hardlook.open_vocabulary.ap.options import OpenApOptions, choose_protocol, unmatched_ids
from hardlook.open_vocabulary.ap.units import check_categories
from hardlook.open_vocabulary.class_sets import ClassMasks, load_class_sets
from hardlook.open_vocabulary.free_words import SAID, merge_words, note_words, score_said
from hardlook.open_vocabulary.label_similarity import (
    compute_compared_similarities,
    compute_label_similarity,
    compute_used_similarity,
)
from hardlook.open_vocabulary.off_by_one import describe_shift, shift_labels, warn_of_shift
from hardlook.open_vocabulary.published import add_comparability
from hardlook.open_vocabulary.record_columns import flatten_column, read_label_names, relabel_column
from hardlook.similarity.label_sets import load_label_set

if TYPE_CHECKING:
    import polars as pl

# Prefix of a score's name: the kind of AP and how it is matched.
KINDS = {
    "": ("vanilla", "COCO's rules, or LVIS's for its data: matched within classes"),
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
    "ar1": ("AR1", "AR when 1 detection counts"),
    "ar10": ("AR10", "AR when 10 detections count"),
    "ar": ("AR", "mean share of objects found over IoU .5 to .95, by as many detections as count (100; LVIS: 300)"),
    "ars": ("ARs", "AR of objects below 32 x 32 pixels"),
    "arm": ("ARm", "AR of objects between 32 x 32 and 96 x 96 pixels"),
    "arl": ("ARl", "AR of objects above 96 x 96 pixels"),
}

# Of LVIS, by the letter of the group: the score's name, its title and meaning.
GROUPS = {
    "r": ("apr", "APr", "AP of LVIS's rare classes, in at most 10 training images"),
    "c": ("apc", "APc", "AP of LVIS's common classes, in 11 to 100 training images"),
    "f": ("apf", "APf", "AP of LVIS's frequent classes, in more than 100 training images"),
}

SCORES = (
    *(
        ScoreMeaning(prefix + name, f"{kind} {title}", f"{meaning}; {how}", headline=name == "ap")
        for prefix, (kind, how) in KINDS.items()
        for name, title, meaning in (*((name, *words) for name, words in QUANTITIES.items()), *GROUPS.values())
    ),
    ScoreMeaning("open-gain", "given back", "open AP minus dagger AP, on the same images", headline=True, ranked=False),
    ScoreMeaning(
        "confused-objects", "confused objects", "objects of one label found under another", higher_is_better=False
    ),
    ScoreMeaning(
        "unforgiven-objects", "unforgiven objects", "the part that similarity does not forgive", higher_is_better=False
    ),
    SAID,
)

SET_QUANTITIES = ("ap", "ap50")
CLASS_QUANTITIES: dict[str, Literal["AP", "AP50", "AR"]] = {"ap": "AP", "ap50": "AP50", "ar": "AR"}
CONTEXT_SCORES = ("ap", "dagger-ap", "open-ap", "open-gain")
MAX_CONFUSIONS = 25

_KEY = ("open-ap", "bootstrap")
_ONLY_ALL_AREAS = 1  # the first of the area ranges, where no other is needed

Matrix = NDArray[np.float64]


def score_records(card: BenchmarkCard, records: pl.DataFrame, options: OpenApOptions) -> Scorecard:
    """Every score with its interval over images, the most costly confusions, and what was left out."""
    records = records.sort("image_id")  # ties of scores are broken by image id, whatever the units are called
    records, merged = merge_words(
        join_image_vocabularies(records), options, merge_classes, keep=False, own=read_own_labels(records)
    )
    names = read_label_names(records)
    check_categories(names[: int(records["known"][0])], options)
    own = read_own_labels(records)
    similarity = compute_label_similarity(names, options, own)
    protocol = read_protocol(records, options)
    tallies = _tally_contexts(records, similarity.matrix, options)
    scores = [score for tally in tallies for score in score_tally(tally, options)]
    table, images = tallies[0].tables[ALL_CLASSES], len(records)
    for measure, matrix in compute_compared_similarities(names, options, own).items():
        value = soft_precision(table, matrix).summary()["AP"]
        scores.append(Score("open-ap", value, images, slice={"measure": measure}))
    # Among objects that are found at IoU .5, of all areas.
    costs = confusion_costs(table.label_counts(), similarity.matrix, most=MAX_CONFUSIONS)
    for true, called, count, cost in zip(costs.true, costs.called, costs.hard, costs.soft, strict=True):
        where = {"true": names[true], "called": names[called]}
        scores.append(Score("confused-objects", float(count), images, slice=where))
        scores.append(Score("unforgiven-objects", float(cost), images, slice=where))
    free = options.pred_words == "free"  # then category ids are no order of labels
    hint = _find_off_by_one(records, table, options) if (options.data or options.gt) and not free else ""
    warnings = warn_of_shift("predicted category ids look off by one", images, hint)
    words = note_words(records, merged) if free else ()
    scores += score_said(records, merged)
    notes = (*_note_left_out(records, table, names, options), *warnings, *words, *similarity.notes)
    scorecard = Scorecard(card.name, card.version, "", tuple(scores), (protocol,), notes)
    return add_comparability(scorecard, options)


def _find_off_by_one(records: pl.DataFrame, table: MatchTable, options: OpenApOptions) -> str:
    """A sentence where all predicted categories one higher or lower would more than double the AP and add .1."""
    import polars as pl

    names = read_label_names(records)
    predicted: Sequence[str] = names[: int(records["known"][0])]
    if options.pred_labels:
        labels = load_label_set(options.pred_labels)
        predicted = [labels.names[row] for row in np.argsort(labels.category_ids, kind="stable").tolist()]
    images = FlatImages.from_records(records)
    true, called = images.object_labels[images.pair_object], images.labels[images.pair_detection]
    shifted = {}
    for word, places in shift_labels(names, predicted).items():
        # More overlaps of one label are needed for a higher AP; matching anew takes longer than counting these.
        if (places[called] == true).sum() > (called == true).sum():
            column = relabel_column(records["labels"], places.__getitem__)
            moved = records.with_columns(column, pl.lit("\n".join([*names, "(no label)"])).alias("names"))
            again = _match(moved, options, {}).tables()[ALL_CLASSES]
            shifted[word] = vanilla_precision(again).summary()["AP"]
    if not shifted:
        return ""
    remedy = "check the category_id of the predictions and --pred-labels, or the order of the model's labels"
    return describe_shift("AP", vanilla_precision(table).summary()["AP"], shifted, remedy)


def read_protocol(records: pl.DataFrame, options: OpenApOptions) -> Reading:
    """Whose rules the records are scored by: those of their data, unless the options say otherwise."""
    return choose_protocol(options, str(records["protocol"][0]))


def is_federated(records: pl.DataFrame, options: OpenApOptions) -> bool:
    """Whether the records are scored by LVIS's rules."""
    return read_protocol(records, options).value == "lvis"


def _get_limit(options: OpenApOptions, *, federated: bool) -> int:
    return options.max_detections_lvis if federated else options.max_detections


def tally_records(records: pl.DataFrame, options: OpenApOptions) -> list[WeightedTally]:
    """The matches of all images, then of those of each context; labels may be those of several runs."""
    records, _ = merge_words(
        join_image_vocabularies(records), options, merge_classes, keep=True, own=read_own_labels(records)
    )
    return _tally_contexts(records.sort("image_id"), compute_run_similarity(records, options), options)


def compute_unit_qualities(records: pl.DataFrame, options: OpenApOptions) -> pl.DataFrame:
    """`unit`, `image-open-ap50` and `image-ap50`, from 0 to 1; NaN for an image without objects.

    All detections of an image in one ranking, whatever their labels: at each object found (IoU .5), the precision so
    far, times the similarity of predicted and true label; divided by the number of objects. The second one counts the
    right label only. They are AP in the plain sense, not interpolated as COCO's, which is not defined for one image.
    """
    import polars as pl

    records, _ = merge_words(
        join_image_vocabularies(records), options, merge_classes, keep=True, own=read_own_labels(records)
    )
    federated, similarity = is_federated(records, options), compute_run_similarity(records, options)
    images = FlatImages.from_records(records, federated=federated)
    opened, vanilla = (
        compute_image_precision(images, matrix, _get_limit(options, federated=federated))
        for matrix in (similarity, np.eye(len(similarity)))
    )
    return pl.DataFrame({"unit": records["unit"], "image-open-ap50": opened, "image-ap50": vanilla})


def compute_run_similarity(records: pl.DataFrame, options: OpenApOptions) -> Matrix:
    """(K, K) the similarity that the options choose, of the labels that the records use."""
    names = read_label_names(records)
    used = np.zeros(len(names), bool)
    for column in ("object_labels", "labels"):
        used[flatten_column(records[column])] = True
    return compute_used_similarity(names, used, options, read_own_labels(records))


def _match(records: pl.DataFrame, options: OpenApOptions, sets: ClassMasks) -> RunMatches:
    federated, released = is_federated(records, options), unmatched_ids(options) == "released"
    limit = _get_limit(options, federated=federated)
    return match_records(records, max_detections=limit, released=released, sets=sets, federated=federated)


def _tally_contexts(records: pl.DataFrame, similarity: Matrix, options: OpenApOptions) -> list[WeightedTally]:
    names = read_label_names(records)
    sets = load_class_sets(options.class_sets, names)
    federated = is_federated(records, options)
    reading = f"unmatched={unmatched_ids(options)}" + (", protocol=lvis" if federated else "")
    matches = _match(records, options, sets)
    groups = read_groups(records) if federated else {}
    counts = _count_class_images(matches)
    class_images, present = dict(zip(names, counts, strict=True)), np.array(counts) > 0
    members = {prefix + name: present[group] for name, group in groups.items() for prefix in KINDS}
    entries = tuple(
        Entry(name, count, where, reading, clusters=count)
        if (count := class_images.get(where.get("class", ""))) is not None
        else Entry(
            name, matches.images, where, reading,
            rests_on={} if where else {"class": int(members.get(name, present).sum())},
        )
        for name, where in _list_scores(names, sets, list(groups))
    )  # fmt: skip
    # Open AP is never below dagger AP, so the gain lies between 0 and 1 as well.
    compute = partial(_compute_scores, sets=sets, groups=groups)
    tallies = [WeightedTally(with_ranges(entries), matches, similarity, compute, (*_KEY, ""))]
    contexts = records["context"].to_numpy()
    for context in sorted(set(contexts) - {""}):
        inside = np.flatnonzero(contexts == context)
        entries = tuple(Entry(name, len(inside), {"context": context}, reading) for name in CONTEXT_SCORES)
        entries = with_ranges(entries)
        inside_matches, key = matches.select(inside), (*_KEY, context)
        tallies.append(
            WeightedTally(entries, inside_matches, similarity, _compute_context_scores, key, ranges=_ONLY_ALL_AREAS)
        )
    return tallies


def read_groups(records: pl.DataFrame) -> dict[str, NDArray[np.int64]]:
    """The labels of LVIS's rare, common and frequent classes, by the name of their score; empty where none is known."""
    letters = np.array(list(records["frequencies"][0]), dtype=str)
    return {name: np.flatnonzero(letters == group) for group, (name, _, _) in GROUPS.items()} if len(letters) else {}


def _list_scores(names: Sequence[str], sets: ClassMasks, groups: Sequence[str]) -> list[tuple[str, dict[str, str]]]:
    """Name and slice of each score of `_compute_scores`."""
    scores: list[tuple[str, dict[str, str]]] = [
        (prefix + name, {}) for name in (*QUANTITIES, *groups) for prefix in KINDS
    ]
    scores.insert(len(KINDS), ("open-gain", {}))
    for name in sets:
        for setting in ("generalised", "constrained"):
            where = {"classes": name, "setting": setting}
            scores += [(prefix + one, where) for prefix in KINDS for one in SET_QUANTITIES]
    return scores + [(prefix + one, {"class": name}) for one in CLASS_QUANTITIES for prefix in KINDS for name in names]


def _compute_scores(results: Results, sets: ClassMasks, groups: Mapping[str, NDArray[np.int64]]) -> list[float]:
    """All scores of one weighting of the images."""
    result = results[ALL_CLASSES]
    summary = result.summary()
    kinds = [kind for kind, _ in KINDS.values()]
    scores = [summary[kind][title] for title, _ in QUANTITIES.values() for kind in kinds]
    for group in groups.values():
        within_group = result.summary(group)
        scores += [within_group[kind]["AP"] for kind in kinds]
    scores.insert(len(kinds), summary["open"]["AP"] - summary["dagger"]["AP"])
    for name, mask in sets.items():
        for within in (result.summary(np.flatnonzero(mask)), results[name].summary()):
            scores += [within[kind][QUANTITIES[one][0]] for kind in kinds for one in SET_QUANTITIES]
    for quantity in CLASS_QUANTITIES.values():
        for kind in kinds:
            scores += getattr(result, kind).per_class(quantity).tolist()
    return scores


def _compute_context_scores(results: Results) -> list[float]:
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
    records: pl.DataFrame, table: MatchTable, names: Sequence[str], options: OpenApOptions
) -> tuple[LeftOut, ...]:
    """What enters no score, or only in part."""
    federated = is_federated(records, options)
    max_detections = _get_limit(options, federated=federated)
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
    limit = (
        f"--max-detections-lvis {max_detections}: over all classes"
        if federated
        else f"--max-detections {max_detections}: over all classes for dagger and open, of each class for AP"
    )
    rows: list[tuple[str, int, str, list[str]]] = [
        ("images without detections", undetected, "no image has any: every AP is 0", []),
        ("images without objects", len(empty), "their detections are false positives", empty),
        ("crowd regions", crowds, "detections in them neither count nor harm, as in COCO", []),
        ("detections beyond the best of their image", beyond, limit, full),
        *(_list_lvis_notes(records) if federated else ()),
        ("classes that no detection names", len(silent), "they have objects, so they stay in every mean", silent),
        ("labels without objects", len(absent), "they have no AP; a detection of theirs can still match", absent),
    ]
    still = ("images without detections", "images without objects", "classes that no detection names")
    return tuple(
        LeftOut(what, count, why, tuple(examples[:5]), kept=what in still)
        for what, count, why, examples in rows
        if count
    )


def _list_lvis_notes(records: pl.DataFrame) -> list[tuple[str, int, str, list[str]]]:
    """What LVIS's rules leave out: how many, why, and units."""
    images, units = FlatImages.from_records(records, federated=True), records["unit"].to_list()
    ignored = match_objects(images) == IGNORED
    unverified = "LVIS does not say whether the image has the class: neither objects nor in neg_category_ids"
    exhaustive = "not all objects of the class are annotated (not_exhaustive_category_ids), IoU .5"
    rows = (
        ("detections of classes that are not verified", images.unverified, unverified),
        ("unmatched detections of classes that are not exhaustive", images.excused & ignored, exhaustive),
    )
    return [
        (what, int(chosen.sum()), why, [units[row] for row in np.unique(images.image[chosen]).tolist()])
        for what, chosen, why in rows
    ]
