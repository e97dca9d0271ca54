"""Scores of open PQ from records: vanilla and open side by side, from the same resamples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hardlook.harness.benchmark import BenchmarkCard, ScoreMeaning
from hardlook.harness.scorecard import LeftOut, Score, Scorecard
from hardlook.harness.tally import DIFFERENCE, Entry, SoftTally, score_tally, with_ranges
from hardlook.metrics.open_pq import class_quality, mean_quality, quality_sums, quality_sums_by_image, segment_costs
from hardlook.metrics.panoptic import NO_PARTNER, SegmentMatches
from hardlook.open_vocabulary.class_sets import load_class_sets
from hardlook.open_vocabulary.free_words import SAID, find_labels_of_truth, merge_words, note_words, score_said
from hardlook.open_vocabulary.label_similarity import (
    compute_compared_similarities,
    compute_label_similarity,
    compute_used_similarity,
)
from hardlook.open_vocabulary.off_by_one import describe_shift, shift_labels, warn_of_shift
from hardlook.open_vocabulary.pq.annotations import PanopticVocabulary
from hardlook.open_vocabulary.pq.evaluation import (
    join_image_vocabularies,
    merge_classes,
    read_matches,
    read_vocabulary,
)
from hardlook.open_vocabulary.pq.options import OpenPqOptions, get_crowds_reading
from hardlook.open_vocabulary.published import add_comparability
from hardlook.similarity.label_sets import load_label_set

if TYPE_CHECKING:
    import polars as pl

QUALITIES = ("pq", "sq", "rq")
# Vanilla and open.
ALL_QUALITIES = (*QUALITIES, *(f"open-{name}" for name in QUALITIES))
MAX_CONFUSIONS = 25
RANGES = {"open-gain": DIFFERENCE}
# The most sums (images x labels) computed at a time, to bound memory.
MAX_SUMS = 2**20

Matrix = NDArray[np.float64]
Groups = list[tuple[dict[str, str], NDArray[np.bool_]]]

NOTHING = "no segment is true or predicted"
SCORES = (
    ScoreMeaning(
        "open-pq", "open PQ", "mean over classes; a segment with a similar label counts in part", headline=True
    ),
    ScoreMeaning("pq", "vanilla PQ", "mean over classes of IoU where only the right label counts", headline=True),
    ScoreMeaning(
        "open-gain", "given back", "open PQ minus vanilla PQ, on the same images", headline=True, ranked=False
    ),
    ScoreMeaning("open-sq", "open SQ", "mean IoU of matched segments, weighted by similarity"),
    ScoreMeaning("sq", "vanilla SQ", "mean IoU of matched segments with the right label"),
    ScoreMeaning("open-rq", "open RQ", "F1 of finding and naming segments, similar names in part"),
    ScoreMeaning("rq", "vanilla RQ", "F1 of finding and naming segments"),
    ScoreMeaning(
        "misnamed-segments",
        "misnamed segments",
        "segments of one label, found and called another",
        higher_is_better=False,
    ),
    ScoreMeaning(
        "unforgiven-segments",
        "unforgiven segments",
        "the part of them that similarity does not forgive",
        higher_is_better=False,
    ),
    SAID,
)


def score_records(card: BenchmarkCard, records: pl.DataFrame, options: OpenPqOptions) -> Scorecard:
    """Every score with its interval over images, and the most costly confusions."""
    records, merged = merge_words(join_image_vocabularies(records), options, merge_classes, keep=False)
    vocabulary = read_vocabulary(records)
    names = vocabulary.names
    similarity = compute_label_similarity(names, options)
    tallies = _tally_contexts(records, similarity.matrix, vocabulary, options)
    scores = [score for tally in tallies for score in score_tally(tally, options)]
    matches = read_matches(records, get_crowds_reading(options))
    for measure, matrix in compute_compared_similarities(names, options).items():
        means = mean_quality(quality_sums(matches, matrix, vocabulary.things), find_labels_of_truth(names))
        for name, value in zip(QUALITIES, means, strict=True):
            scores.append(Score(f"open-{name}", float(value), matches.images, slice={"measure": measure}))
    costs = segment_costs(matches, similarity.matrix, np.array(vocabulary.things, np.bool_), most=MAX_CONFUSIONS)
    for true, called, count, cost in zip(costs.true, costs.called, costs.hard, costs.soft, strict=True):
        where = {"true": names[true], "called": names[called]}
        scores.append(Score("misnamed-segments", float(count), matches.images, slice=where))
        scores.append(Score("unforgiven-segments", float(cost), matches.images, slice=where))
    free = options.pred_words == "free"  # then category ids are no order of labels
    hint = _find_off_by_one(matches, vocabulary, options) if (options.data or options.gt) and not free else ""
    warnings = warn_of_shift("predicted category ids look off by one", matches.images, hint)
    words = note_words(records, merged) if free else ()
    scores += score_said(records, merged)
    notes = (*_note_left_out(records, matches), *warnings, *words, *similarity.notes)
    return add_comparability(Scorecard(card.name, card.version, "", tuple(scores), left_out=notes), options)


def tally_records(records: pl.DataFrame, options: OpenPqOptions) -> list[SoftTally]:
    """One tally of all images, then one per context; the records may be of several runs with different labels."""
    records, _ = merge_words(join_image_vocabularies(records), options, merge_classes, keep=True)
    return _tally_contexts(records, _compute_run_similarity(records, options), read_vocabulary(records), options)


def compute_unit_qualities(records: pl.DataFrame, options: OpenPqOptions) -> pl.DataFrame:
    """Columns `unit`, `image-open-pq` and `image-pq`: PQ over the classes in each image; NaN where there are none."""
    import polars as pl

    records, _ = merge_words(join_image_vocabularies(records), options, merge_classes, keep=True)
    vocabulary, crowds = read_vocabulary(records), get_crowds_reading(options)
    matrices = {"image-open-pq": _compute_run_similarity(records, options), "image-pq": np.eye(len(vocabulary.names))}
    columns = {name: [np.zeros(0)] for name in matrices}
    for part in records.iter_slices(max(1, MAX_SUMS // len(vocabulary.names))):
        matches = read_matches(part, crowds)
        for name, matrix in matrices.items():
            sums = quality_sums_by_image(matches, matrix, vocabulary.things)
            columns[name].append(mean_quality(sums, find_labels_of_truth(vocabulary.names))[:, 0])
    return pl.DataFrame({"unit": records["unit"], **{name: np.concatenate(parts) for name, parts in columns.items()}})


def _compute_run_similarity(records: pl.DataFrame, options: OpenPqOptions) -> Matrix:
    """(K, K) similarity of the labels by the options; labels that the records do not use may have no sense."""
    names, matches = read_vocabulary(records).names, read_matches(records)
    used = np.isin(np.arange(len(names)), [matches.true, matches.called])
    return compute_used_similarity(names, used, options)


def _tally_contexts(
    records: pl.DataFrame, similarity: Matrix, vocabulary: PanopticVocabulary, options: OpenPqOptions
) -> list[SoftTally]:
    sets = load_class_sets(options.class_sets, vocabulary.names)
    things = np.array(vocabulary.things, np.bool_)
    groups: Groups = [({"kind": "things"}, things), ({"kind": "stuff"}, ~things)]
    groups += [({"classes": name}, mask) for name, mask in sets.items()]
    all_classes = np.arange(len(vocabulary.names))
    tallies = [_tally(records, similarity, vocabulary, options, groups, all_classes, {})]
    for context in sorted(set(records["context"]) - {""}):
        inside = records.filter((records["context"] == context).to_numpy())
        # Slices by context together with kind or class would be thousands of numbers, each of a few images.
        tallies.append(_tally(inside, similarity, vocabulary, options, [], all_classes[:0], {"context": context}))
    return tallies


def _tally(
    records: pl.DataFrame,
    similarity: Matrix,
    vocabulary: PanopticVocabulary,
    options: OpenPqOptions,
    groups: Groups,
    classes_shown: NDArray[np.int64],
    where: dict[str, str],
) -> SoftTally:
    """Sums of vanilla and open PQ per image, and the scores of all classes, of `groups` and of `classes_shown`."""
    crowds, classes = get_crowds_reading(options), len(vocabulary.names)
    matches = read_matches(records, crowds)
    hard = quality_sums_by_image(matches, np.eye(classes), vocabulary.things)
    soft = quality_sums_by_image(matches, similarity, vocabulary.things)
    labels = find_labels_of_truth(vocabulary.names)
    groups = [({}, labels), *((key, mask & labels) for key, mask in groups)]

    def statistic(totals: Matrix) -> Matrix:
        both = totals.reshape(len(totals), 2, 4, classes)  # vanilla, then open
        columns = []
        for _, mask in groups:
            means = mean_quality(both, mask)
            columns += [means.reshape(-1, 6), means[:, 1, :1] - means[:, 0, :1]]
        per_class = class_quality(both[..., classes_shown]).reshape(len(totals), 6 * len(classes_shown))
        return np.concatenate([*columns, per_class], axis=-1)

    present = np.asarray(hard.any(axis=1))
    images = np.asarray(present.sum(0))  # (K,) images in which each class occurs
    reading = f"crowds={crowds}"
    entries = []
    for key, mask in groups:
        n = int(present[:, mask].any(1).sum())
        basis = {"class": int((images[mask] > 0).sum())}
        entries += [
            Entry(name, n, {**where, **key}, reading, clusters=n, rests_on=basis, reason="" if n or key else NOTHING)
            for name in (*ALL_QUALITIES, "open-gain")
        ]
    for name in ALL_QUALITIES:
        entries += [
            Entry(name, int(images[k]), {**where, "class": vocabulary.names[k]}, reading, clusters=int(images[k]))
            for k in classes_shown
        ]
    sums = np.stack([hard, soft], axis=1).reshape(len(hard), -1)
    return SoftTally(with_ranges(entries, RANGES), sums, statistic, ("open-pq", "bootstrap", *where.values()), "image")


def _find_off_by_one(matches: SegmentMatches, vocabulary: PanopticVocabulary, options: OpenPqOptions) -> str:
    """A sentence where all predicted categories one higher or lower would more than double the PQ and add .1.

    Segments on void or crowd are excused as they were under their own label.
    """
    names, closed = vocabulary.names, np.eye(len(vocabulary.names))
    predicted = names
    if options.pred_labels:
        labels = load_label_set(options.pred_labels)
        predicted = tuple(labels.names[row] for row in np.argsort(labels.category_ids, kind="stable").tolist())

    def compute_quality(some: SegmentMatches) -> float:
        return float(mean_quality(quality_sums(some, closed, vocabulary.things))[0])

    shifted = {}
    for word, table in shift_labels(names, predicted).items():
        paired = matches.called >= 0
        called = np.where(paired, table[matches.called], NO_PARTNER)
        # A segment that is of no label after the shift is none: its true one is missed.
        lost = called == len(names)
        called[lost] = NO_PARTNER
        kept = ~(lost & (matches.true < 0))
        moved = SegmentMatches(
            matches.image[kept],
            matches.true[kept],
            called[kept],
            np.where(lost, 0, matches.intersection)[kept],
            np.where(lost, 0, matches.union)[kept],
            (matches.excused & ~lost)[kept],
            matches.images,
        )
        shifted[word] = compute_quality(moved)
    remedy = "check the category_id of the predictions and --pred-labels, or the order of the model's labels"
    return describe_shift("PQ", compute_quality(matches), shifted, remedy)


def _note_left_out(records: pl.DataFrame, matches: SegmentMatches) -> list[LeftOut]:
    notes = []
    excused = int(matches.excused.sum())
    if excused:
        why = "they lie mostly on void or on crowd of their class, and are never false positives"
        notes.append(LeftOut("predicted segments", excused, why))
    some = set(matches.image[matches.true >= 0].tolist())
    empty = [unit for row, unit in enumerate(records["unit"].to_list()) if row not in some]
    if empty:
        why = "they can add false positives and nothing else"
        notes.append(LeftOut("images without a true segment", len(empty), why, tuple(empty[:5]), kept=True))
    return notes
