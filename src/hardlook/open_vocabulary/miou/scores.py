"""Scores of open mIoU from records: vanilla and open side by side, from the same resamples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hardlook.harness.benchmark import BenchmarkCard, ScoreMeaning
from hardlook.harness.scorecard import LeftOut, Score, Scorecard
from hardlook.harness.tally import DIFFERENCE, Entry, SoftTally, score_tally, with_ranges
from hardlook.metrics import mean_iou as metric
from hardlook.metrics.arrays import look_up_pairs
from hardlook.metrics.confusion import PairCounts, confusion_costs
from hardlook.metrics.open_miou import harmonic_mean, soft_counts, soft_counts_by_image
from hardlook.open_vocabulary.class_sets import load_class_sets
from hardlook.open_vocabulary.free_words import SAID, find_labels_of_truth, merge_words, note_words, score_said
from hardlook.open_vocabulary.label_similarity import (
    MAX_MATRIX_LABELS,
    compute_compared_pairs,
    compute_compared_similarities,
    compute_label_pairs,
    compute_label_similarity,
    compute_used_pairs,
    compute_used_similarity,
    find_kinds,
)
from hardlook.open_vocabulary.miou.evaluation import (
    NO_LABEL,
    count_pixels,
    join_image_vocabularies,
    keep_used_labels,
    merge_classes,
    read_cells,
    sum_pairs,
)
from hardlook.open_vocabulary.miou.options import OpenMiouOptions, SemanticOptions, mean_over
from hardlook.open_vocabulary.off_by_one import describe_shift, shift_labels, warn_of_shift
from hardlook.open_vocabulary.published import add_comparability
from hardlook.open_vocabulary.record_columns import flatten_column, read_label_names
from hardlook.similarity.label_sets import load_label_set
from hardlook.similarity.pair_measures import PairSimilarity

if TYPE_CHECKING:
    import polars as pl

VANILLA = ("miou", "pixel-accuracy", "mean-accuracy", "fw-iou")
MAX_CONFUSIONS = 25
RANGES = {"open-gain": DIFFERENCE}
# Counts of images at a time, images x labels: a bound on memory.
MAX_COUNTS = 2**20

Matrix = NDArray[np.float64]
Similarity = Matrix | PairSimilarity
Groups = list[tuple[dict[str, str], NDArray[np.bool_]]]

SCORES = (
    ScoreMeaning(
        "open-miou", "open mIoU", "mean over classes of soft IoU: similar labels count in part", headline=True
    ),
    ScoreMeaning("miou", "vanilla mIoU", "mean over classes of IoU where only the right label counts", headline=True),
    ScoreMeaning(
        "open-gain", "given back", "open mIoU minus vanilla mIoU, on the same images", headline=True, ranked=False
    ),
    ScoreMeaning("open-pixel-accuracy", "open pixel accuracy", "pixels with the right label, similar ones in part"),
    ScoreMeaning("pixel-accuracy", "pixel accuracy", "share of pixels with the right label"),
    ScoreMeaning("open-mean-accuracy", "open mean accuracy", "mean over classes of the soft share that is found"),
    ScoreMeaning("mean-accuracy", "mean accuracy", "mean over classes of the share of its pixels that is found"),
    ScoreMeaning("open-fw-iou", "open fwIoU", "soft IoU of each class weighted by its share of the pixels"),
    ScoreMeaning("fw-iou", "fwIoU", "IoU of each class weighted by its share of the pixels"),
    ScoreMeaning("open-iou", "open IoU", "soft IoU of one class"),
    ScoreMeaning("iou", "IoU", "IoU of one class"),
    ScoreMeaning("confused-pixels", "confused pixels", "pixels of one label called another", higher_is_better=False),
    ScoreMeaning(
        "unforgiven-pixels", "unforgiven pixels", "the part that similarity does not forgive", higher_is_better=False
    ),
    SAID,
)


def score_records(card: BenchmarkCard, records: pl.DataFrame, options: OpenMiouOptions) -> Scorecard:
    """Every score with its interval over images, and the most costly confusions."""
    warnings = note_numbering(records, options)
    records, merged = merge_words(join_image_vocabularies(records), options, merge_classes, keep=False)
    records, every = _keep_used_labels(records)
    names = read_label_names(records)
    similarity, treatments = _compute_similarity(names, options, every)
    scores = [
        score for tally in _tally_contexts(records, similarity, names, options) for score in score_tally(tally, options)
    ]
    confusion, labels = sum_pairs(records), find_labels_of_truth(names)
    compared = compute_compared_pairs if callable(similarity) else compute_compared_similarities
    for measure, other in compared(names, options).items():
        value = float(metric.mean_iou(soft_counts(confusion, other)[..., labels], mean_over(options)))
        scores.append(Score("open-miou", value, len(records), slice={"measure": measure}))
    costs = confusion_costs(confusion, similarity, most=MAX_CONFUSIONS)
    for true, called, count, cost in zip(costs.true, costs.called, costs.hard, costs.soft, strict=True):
        where = {"true": names[true], "called": [*names, NO_LABEL][called]}
        scores.append(Score("confused-pixels", float(count), len(records), slice=where))
        scores.append(Score("unforgiven-pixels", float(cost), len(records), slice=where))
    words = note_words(records, merged) if options.pred_words == "free" else ()
    scores += score_said(records, merged)
    notes = (*note_empty_images(records), *warnings, *words, *treatments)
    return add_comparability(Scorecard(card.name, card.version, "", tuple(scores), left_out=notes), options)


def _keep_used_labels(records: pl.DataFrame) -> tuple[pl.DataFrame, list[str] | None]:
    """The records with the labels that occur alone where there are very many, and then all labels; else None."""
    kept, every = keep_used_labels(records), read_label_names(records)
    return kept, every if len(read_label_names(kept)) < len(every) else None


def _compute_similarity(
    names: list[str], options: OpenMiouOptions, every: list[str] | None
) -> tuple[Similarity, tuple[LeftOut, ...]]:
    """The similarity of the labels, some of `every`, and notes on labels that needed a special treatment."""
    if len(names) > MAX_MATRIX_LABELS:
        many = compute_label_pairs(names, options, every=every)
        return many.pairs, many.notes
    few = compute_label_similarity(names, options, every=every)
    return few.matrix, few.notes


def overall_scores(counts: Matrix, over: metric.MeanOver) -> Matrix:
    """(..., 4) the scores `VANILLA` of counts (..., 3, K) of pixels hit, true and predicted."""
    scores = [
        metric.mean_iou(counts, over),
        metric.pixel_accuracy(counts),
        metric.mean_class_accuracy(counts),
        metric.frequency_weighted_iou(counts),
    ]
    return np.stack(scores, -1)


def note_empty_images(records: pl.DataFrame) -> tuple[LeftOut, ...]:
    """How many images have no labelled pixel, where there are any."""
    empty = records.filter(records["cells"].list.len() == 0)["unit"].to_list()
    note = LeftOut("images without a labelled pixel", len(empty), "they add nothing to any score", (*empty[:5],))
    return (note,) if empty else ()


def note_numbering(records: pl.DataFrame, options: SemanticOptions) -> tuple[LeftOut, ...]:
    """What speaks against the numbering of the predictions: numbers that are no label, and labels off by one."""
    notes = []
    numbers, pixels = flatten_column(records["unknown_numbers"]), flatten_column(records["unknown_pixels"])
    if len(numbers):
        images = int((records["unknown_numbers"].list.len() > 0).sum())
        distinct = sorted(set(numbers.tolist()))
        why = (
            f"{len(distinct)} numbers in {images} of {len(records)} images are no label, and so wrong: check "
            "--pred-labels, --labels, --numbering and --pred-numbering"
        )
        shown = tuple(map(str, distinct[:5]))
        more = f" and {len(distinct) - len(shown)} more" if len(distinct) > len(shown) else ""
        what = f"pixels predicted as a number that is no label ({', '.join(shown)}{more})"
        notes.append(LeftOut(what, int(pixels.sum()), why, shown, kept=True))
    cells = read_cells(records)
    if void := int(cells.pixels[cells.predicted == cells.labels].sum()):
        why = (
            "a number that is no label, -1, that of --ignore, or a label that the data do not have: they count as wrong"
        )
        notes.append(LeftOut("labelled pixels that are predicted as no label", void, why, kept=True))
    free = getattr(options, "pred_words", "labels") == "free"  # then numbers are no order of labels
    hint = _find_off_by_one(records, options) if (options.data or options.gt) and not free else ""
    return (*notes, *warn_of_shift("predicted numbers look off by one", len(records), hint))


def _find_off_by_one(records: pl.DataFrame, options: SemanticOptions) -> str:
    """A sentence where all predictions one higher or lower would more than double the mIoU and raise it by .1."""
    pairs, names = sum_pairs(records), read_label_names(records)
    pred_labels = options.pred_labels if isinstance(options, OpenMiouOptions) else None
    predicted = load_label_set(pred_labels).names if pred_labels else names
    over, shifted = mean_over(options), {}
    true, called, pixels = pairs.pairs()
    for word, table in shift_labels(names, predicted).items():
        moved = PairCounts(pairs.classes, ignore=None, most_in_table=MAX_MATRIX_LABELS)
        moved.add_cells(true * (pairs.classes + 1) + table[called], pixels)
        shifted[word] = float(metric.mean_iou(metric.class_counts_of_pairs(moved), over))
    score = float(metric.mean_iou(metric.class_counts_of_pairs(pairs), over))
    remedy = "check --numbering and --pred-numbering, or the order of the model's labels"
    return describe_shift("mIoU", score, shifted, remedy)


def tally_records(records: pl.DataFrame, options: OpenMiouOptions) -> list[SoftTally]:
    """The counts of all images, hard and soft, then of those of each context; labels may be those of several runs."""
    records, _ = merge_words(join_image_vocabularies(records), options, merge_classes, keep=True)
    return _tally_contexts(records, _compute_run_similarity(records, options), read_label_names(records), options)


def compute_unit_qualities(records: pl.DataFrame, options: OpenMiouOptions) -> pl.DataFrame:
    """`unit`, `image-open-miou`, `image-miou` and their difference `image-gain`, over the true classes of an image."""
    import polars as pl

    records, _ = merge_words(join_image_vocabularies(records), options, merge_classes, keep=True)
    records, every = _keep_used_labels(records)
    similarity = _compute_run_similarity(records, options, every)
    opened, vanilla = per_image_open_miou(records, similarity), per_image_miou(records)
    columns = {"image-open-miou": opened, "image-miou": vanilla, "image-gain": opened - vanilla}
    return pl.DataFrame({"unit": records["unit"], **columns})


def per_image_miou(records: pl.DataFrame) -> Matrix:
    """(N,) mIoU of each image by itself, over its true classes; NaN without a labelled pixel."""
    parts = [metric.mean_iou(count_pixels(part), "gt-only") for part in _split(records)]
    return np.concatenate([np.zeros(0), *parts])


def per_image_open_miou(records: pl.DataFrame, similarity: Similarity) -> Matrix:
    """(N,) open mIoU of each image by itself under `similarity`, (K, K) or of pairs, over its true classes."""
    values = [np.zeros(0)]
    for part in _split(records):
        cells = read_cells(part)
        counts = soft_counts_by_image(
            cells.image, cells.cell, cells.pixels, similarity, images=cells.images, classes=cells.labels
        )
        values.append(metric.mean_iou(counts, "gt-only"))
    return np.concatenate(values)


def _split(records: pl.DataFrame) -> Iterator[pl.DataFrame]:
    if len(records):
        yield from records.iter_slices(max(1, MAX_COUNTS // (int(records["labels"][0]) + 1)))


def _compute_run_similarity(
    records: pl.DataFrame, options: OpenMiouOptions, every: list[str] | None = None
) -> Similarity:
    """The similarity that the options choose, of the labels that the records use, some of `every`."""
    cells = read_cells(records)
    used = np.zeros(cells.labels + 1, np.bool_)
    used[cells.true] = True
    used[cells.predicted] = True
    compute = compute_used_pairs if cells.labels > MAX_MATRIX_LABELS else compute_used_similarity
    return compute(read_label_names(records), used[:-1], options, every=every)


def _tally_contexts(
    records: pl.DataFrame, similarity: Similarity, names: list[str], options: OpenMiouOptions
) -> list[SoftTally]:
    kinds = find_kinds(names, options)
    sets = load_class_sets(options.class_sets, names)
    groups: Groups = [({"kind": name}, mask) for name, mask in kinds.items()] if len(kinds) > 1 else []
    groups += [({"classes": name}, mask) for name, mask in sets.items()]
    tallies = _tally(records, similarity, names, options, groups, {})
    for context in sorted(set(records["context"]) - {""}):
        inside = records.filter((records["context"] == context).to_numpy())
        tallies += _tally(inside, similarity, names, options, [], {"context": context})
    return tallies


def count_basis(present: Any) -> dict[str, Any]:
    """What a mean over classes rests on; `present` (images, classes), dense or sparse, is where a class occurs."""
    by_image, by_class = (np.asarray(present.sum(axis)).ravel() for axis in (1, 0))
    n = int((by_image > 0).sum())
    reason = "" if n else "no pixel of these classes is labelled or predicted"
    return {"n": n, "clusters": n, "rests_on": {"class": int((by_class > 0).sum())}, "reason": reason}


def _tally(
    records: pl.DataFrame,
    similarity: Similarity,
    names: list[str],
    options: OpenMiouOptions,
    groups: Groups,
    where: dict[str, str],
) -> list[SoftTally]:
    """One tally of all scores; with very many labels one of the means, then those of the classes, part by part."""
    classes, over = len(names), mean_over(options)
    sets = [key for key, _ in groups if "classes" in key]
    sums, present = _sum_by_image(records, similarity)
    labels = find_labels_of_truth(names)
    parted = classes > MAX_MATRIX_LABELS

    def statistic(totals: Matrix) -> Matrix:
        both = totals.reshape(len(totals), 2, 3, classes)  # vanilla, then open
        # A selection of all has another layout in memory, in which sums may have another last bit.
        table = overall_scores(both if labels.all() else both[..., labels], over)
        columns = [table[:, 0], table[:, 1], table[:, 1, :1] - table[:, 0, :1]]
        columns += [metric.mean_iou(both[..., mask & labels], over) for _, mask in groups]
        if len(sets) == 2:
            columns.append(harmonic_mean(columns[-2], columns[-1]))
        if not parted:
            columns += list(np.moveaxis(metric.class_iou(both), 1, 0))
        return np.concatenate(columns, axis=-1)

    reading, basis = f"mean-over={over}", count_basis(present[:, np.flatnonzero(labels)])
    entries = []
    for name in (*VANILLA, *(f"open-{name}" for name in VANILLA), "open-gain"):
        mean = name.endswith("miou") or name == "open-gain"
        entries.append(Entry(name, slice=where, reading=reading if mean else "", **basis))
    slices = [key for key, _ in groups] + ([{"classes": "harmonic mean"}] if len(sets) == 2 else [])
    bases = [count_basis(present[:, np.flatnonzero(mask & labels)]) for _, mask in groups]
    bases += [basis] * (len(slices) - len(bases))
    for one, own in zip(slices, bases, strict=True):
        entries += [Entry(score, slice={**where, **one}, **own) for score in ("miou", "open-miou")]
    images = np.asarray(present.sum(0)).ravel()
    shown = {
        score: [
            Entry(score, int(n), {**where, "class": name}, clusters=int(n))
            for name, n in zip(names, images.tolist(), strict=True)
        ]
        for score in ("iou", "open-iou")
    }
    key = ("open-miou", "bootstrap", *where.values())
    if not parted:
        entries += [entry for some in shown.values() for entry in some]
        return [SoftTally(with_ranges(entries, RANGES), sums, statistic, key, "image")]
    # The classes need only their own columns, and equal keys draw equal resamples.
    tallies = [SoftTally(with_ranges(entries, RANGES), sums, statistic, key, "image")]
    by_column = sums.tocsc()
    for place, some in enumerate(shown.values()):
        for start in range(0, classes, MAX_MATRIX_LABELS):
            part = np.arange(start, min(start + MAX_MATRIX_LABELS, classes))
            columns = np.concatenate([(3 * place + row) * classes + part for row in range(3)])
            chosen = with_ranges([some[k] for k in part.tolist()], RANGES)
            tallies.append(SoftTally(chosen, by_column[:, columns].tocsr(), _compute_class_iou, key, "image"))
    return tallies


def _compute_class_iou(totals: Matrix) -> Matrix:
    """(m, K) the IoU of each class from totals (m, 3 * K) of pixels hit, true and predicted."""
    iou: Matrix = metric.class_iou(totals.reshape(len(totals), 3, -1))
    return iou


def _sum_by_image(records: pl.DataFrame, similarity: Similarity) -> tuple[Any, Any]:
    """(images, 6 K) pixels hit, true and predicted, hard then soft; and (images, K) where a class occurs.

    Both are dense, or sparse where the similarity is one of pairs.
    """
    cells = read_cells(records)
    if not callable(similarity):
        hard = count_pixels(records).astype(np.float64)
        soft = soft_counts_by_image(cells.image, cells.cell, cells.pixels, similarity, images=cells.images)
        return np.stack([hard, soft], axis=1).reshape(len(hard), -1), hard[:, 1:].sum(1) > 0
    from scipy.sparse import csr_array

    classes, true, called = cells.labels, cells.true, cells.predicted
    share = look_up_pairs(similarity, true, called, classes)
    labelled = called < classes
    # A slot is an image's class; each sum is made in the order of the cells, as the dense ones are.
    slots, place = np.unique(
        np.concatenate([cells.image * classes + true, (cells.image * classes + called)[labelled]]), return_inverse=True
    )
    of_true, of_called = place[: len(true)], place[len(true) :]

    def add(places: NDArray[np.int64], weights: NDArray[Any]) -> Matrix:
        return np.bincount(places, weights, len(slots)).astype(np.float64, copy=False)

    hit = true == called
    found, all_true = add(of_true, share * cells.pixels), add(of_true, cells.pixels)
    false = add(of_called, ((1 - share) * cells.pixels)[labelled])
    counted = [add(of_true[hit], cells.pixels[hit]), all_true, add(of_called, cells.pixels[labelled])]
    image, label = slots // classes, slots % classes
    rows = np.concatenate([image] * 6)
    columns = np.concatenate([block * classes + label for block in range(6)])
    sums = csr_array(
        (np.concatenate([*counted, found, all_true, found + false]), (rows, columns)), (cells.images, 6 * classes)
    )
    sums.eliminate_zeros()
    return sums, csr_array((np.ones(len(slots), np.int64), (image, label)), (cells.images, classes))
