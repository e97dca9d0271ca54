"""Scores of open PQ from records: vanilla and open side by side, from the same resamples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hardlook.benchmarks.open_labels.matrix import (
    LabelSimilarity,
    free_similarities,
    label_similarity,
    read_class_sets,
    similarity_in_use,
)
from hardlook.benchmarks.open_labels.soft_tally import SoftTally
from hardlook.benchmarks.open_pq.options import OpenPqOptions, chosen_crowds
from hardlook.benchmarks.open_pq.records import matches_of, words_of_run
from hardlook.benchmarks.open_pq.words import Words
from hardlook.contract.benchmark import BenchmarkCard
from hardlook.contract.scorecard import LeftOut, Score, Scorecard
from hardlook.contract.tally import Entry, scores_of
from hardlook.errors import DataError
from hardlook.metrics.panoptic_matching import SegmentMatches
from hardlook.metrics.panoptic_quality import class_quality, mean_quality, quality_sums, quality_sums_by_image
from hardlook.metrics.segment_costs import segment_costs

if TYPE_CHECKING:
    import polars as pl

QUALITIES = ("pq", "sq", "rq")
BOTH = (*QUALITIES, *(f"open-{name}" for name in QUALITIES))
MOST_CONFUSIONS = 25
Slice = Mapping[str, str]
Groups = list[tuple[Slice, NDArray[np.bool_]]]
Matrix = NDArray[np.float64]


def score_images(card: BenchmarkCard, records: pl.DataFrame, options: OpenPqOptions) -> Scorecard:
    """Every score with its interval over images, and the dearest confusions."""
    words = words_of_run(records)
    similarity = similarity_of_words(words, options)
    tallies = _tallies(records, similarity.matrix, words, options)
    scores = [score for tally in tallies for score in scores_of(tally, options)]
    matches = matches_of(records, chosen_crowds(options))
    scores += _by_measure(matches, words, options)
    scores += _costs(matches, similarity.matrix, words)
    notes = (*_left_out(records, matches), *similarity.notes)
    return Scorecard(card.name, card.version, "", tuple(scores), left_out=notes)


def tally_images(records: pl.DataFrame, options: OpenPqOptions) -> list[SoftTally]:
    """The sums of all images, hard and soft, then of those of each context; labels may be those of several runs."""
    return _tallies(records, similarity_of_run(records, options), words_of_run(records), options)


def similarity_of_run(records: pl.DataFrame, options: OpenPqOptions) -> Matrix:
    """(K, K) the similarity that the options choose, of the labels that the records use."""
    names, matches = words_of_run(records).names, matches_of(records)
    used = np.isin(np.arange(len(names)), [matches.true, matches.called])
    return similarity_in_use(names, used, options.labels, options)


def similarity_of_words(words: Words, options: OpenPqOptions) -> LabelSimilarity:
    """The similarity that the options choose; where senses are missing and no label set was named, that is said."""
    try:
        return label_similarity(words.names, options.labels, options)
    except DataError as error:
        if options.labels or options.similarity:
            raise
        remedy = f"name the label set that has the senses (--labels coco133, say); else {error.remedy}"
        raise DataError(error.what, file=error.file, unit=error.unit, remedy=remedy) from None


def _tallies(records: pl.DataFrame, similarity: Matrix, words: Words, options: OpenPqOptions) -> list[SoftTally]:
    sets = read_class_sets(options.class_sets, words.names) if options.class_sets else {}
    things = np.array(words.things, np.bool_)
    groups: Groups = [({"kind": "things"}, things), ({"kind": "stuff"}, ~things)]
    groups += [({"classes": name}, mask) for name, mask in sets.items()]
    every = np.arange(len(words.names))
    tallies = [_tally(records, similarity, words, options, groups, every, {})]
    for context in sorted(set(records["context"]) - {""}):
        inside = records.filter((records["context"] == context).to_numpy())
        # Slices by context together with kind or class would be thousands of numbers, each of a few images.
        tallies.append(_tally(inside, similarity, words, options, [], every[:0], {"context": context}))
    return tallies


def _tally(
    records: pl.DataFrame,
    similarity: Matrix,
    words: Words,
    options: OpenPqOptions,
    groups: Groups,
    shown: NDArray[np.int64],
    where: Slice,
) -> SoftTally:
    crowds, classes = chosen_crowds(options), len(words.names)
    matches = matches_of(records, crowds)
    hard = quality_sums_by_image(matches, np.eye(classes), words.things)
    soft = quality_sums_by_image(matches, similarity, words.things)
    groups = [({}, np.ones(classes, np.bool_)), *groups]

    def statistic(totals: Matrix) -> Matrix:
        both = totals.reshape(len(totals), 2, 4, classes)  # vanilla, then open
        columns = []
        for _, mask in groups:
            means = mean_quality(both, mask)
            columns += [means.reshape(-1, 6), means[:, 1, :1] - means[:, 0, :1]]
        each = class_quality(both[..., shown]).reshape(len(totals), 6 * len(shown))
        return np.concatenate([*columns, each], axis=-1)

    images = np.asarray(hard.any(axis=1).sum(0))  # (K,) in which the class occurs
    reading = f"crowds={crowds}"
    entries = []
    for key, mask in groups:
        n = len(hard) if not key or images[mask].any() else 0
        entries += [Entry(name, n, {**where, **key}, reading) for name in (*BOTH, "open-gain")]
    for name in BOTH:
        entries += [Entry(name, int(images[k]), {**where, "class": words.names[k]}, reading) for k in shown]
    sums = np.stack([hard, soft], axis=1).reshape(len(hard), -1)
    return SoftTally(tuple(entries), sums, statistic, ("open-pq", "bootstrap", *where.values()), "image")


def _by_measure(matches: SegmentMatches, words: Words, options: OpenPqOptions) -> list[Score]:
    """Open scores under every measure that needs nothing but the package: what the choice does, at no cost."""
    scores = []
    for measure, matrix in free_similarities(words.names, options.labels, options).items():
        means = mean_quality(quality_sums(matches, matrix, words.things))
        for name, value in zip(QUALITIES, means, strict=True):
            scores.append(Score(f"open-{name}", float(value), matches.images, slice={"measure": measure}))
    return scores


def _costs(matches: SegmentMatches, similarity: Matrix, words: Words) -> list[Score]:
    """The dearest confusions, as scores in slices: segments misnamed, and the part of them that is not forgiven."""
    costs = segment_costs(matches, similarity, np.array(words.things, np.bool_), most=MOST_CONFUSIONS)
    scores = []
    for true, called, hard, soft in zip(costs.true, costs.called, costs.hard, costs.soft, strict=True):
        where = {"true": words.names[true], "called": words.names[called]}
        scores.append(Score("misnamed-segments", float(hard), matches.images, slice=where))
        scores.append(Score("unforgiven-segments", float(soft), matches.images, slice=where))
    return scores


def _left_out(records: pl.DataFrame, matches: SegmentMatches) -> list[LeftOut]:
    notes = []
    excused = int(matches.excused.sum())
    if excused:
        why = "they lie mostly on void or on crowd of their class, and are never false positives"
        notes.append(LeftOut("predicted segments", excused, why))
    some = set(matches.image[matches.true >= 0].tolist())
    empty = [unit for row, unit in enumerate(records["unit"].to_list()) if row not in some]
    if empty:
        why = "they can add false positives and nothing else"
        notes.append(LeftOut("images without a true segment", len(empty), why, tuple(empty[:5])))
    return notes
