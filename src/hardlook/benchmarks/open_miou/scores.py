"""Scores of open mIoU from records: vanilla and open side by side, from the same resamples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hardlook.benchmarks.closed_miou.options import mean_over
from hardlook.benchmarks.open_labels.matrix import (
    free_similarities,
    kinds_of,
    label_similarity,
    read_class_sets,
    similarity_in_use,
)
from hardlook.benchmarks.open_labels.soft_tally import SoftTally
from hardlook.benchmarks.open_miou.options import OpenMiouOptions
from hardlook.benchmarks.semantic_images.qualities import NO_LABEL, per_image_miou, per_image_open_miou
from hardlook.benchmarks.semantic_images.records import cells_of, confusion_of, image_counts, label_names
from hardlook.contract.benchmark import BenchmarkCard
from hardlook.contract.scorecard import LeftOut, Score, Scorecard
from hardlook.contract.tally import Entry, scores_of
from hardlook.metrics import mean_iou as metric
from hardlook.metrics.confusion_costs import confusion_costs
from hardlook.metrics.open_miou import harmonic_mean
from hardlook.metrics.soft_counts import soft_counts, soft_counts_by_image

if TYPE_CHECKING:
    import polars as pl

VANILLA = ("miou", "pixel-accuracy", "mean-accuracy", "fw-iou")
MOST_CONFUSIONS = 25
Groups = list[tuple[dict[str, str], NDArray[np.bool_]]]


def score_images(card: BenchmarkCard, records: pl.DataFrame, options: OpenMiouOptions) -> Scorecard:
    """Every score with its interval over images, and the dearest confusions."""
    names = label_names(records)
    similarity = label_similarity(names, options.labels, options)
    tallies = _tallies(records, similarity.matrix, names, options)
    scores = [score for tally in tallies for score in scores_of(tally, options)]
    scores += _by_measure(records, names, options)
    scores += _costs(records, similarity.matrix, names)
    empty = records.filter(records["cells"].list.len() == 0)["unit"].to_list()
    notes = [LeftOut("images without a labelled pixel", len(empty), "they add nothing to any score", (*empty[:5],))]
    return Scorecard(
        card.name, card.version, "", tuple(scores), left_out=(*(notes if empty else []), *similarity.notes)
    )


def tally_images(records: pl.DataFrame, options: OpenMiouOptions) -> list[SoftTally]:
    """The counts of all images, hard and soft, then of those of each context; labels may be those of several runs."""
    return _tallies(records, _similarity_of_run(records, options), label_names(records), options)


def judged_images(records: pl.DataFrame, options: OpenMiouOptions) -> pl.DataFrame:
    """`unit`, `image-open-miou`, `image-miou` and their difference `image-gain`, over the true classes of an image."""
    import polars as pl

    opened, closed = per_image_open_miou(records, _similarity_of_run(records, options)), per_image_miou(records)
    columns = {"image-open-miou": opened, "image-miou": closed, "image-gain": opened - closed}
    return pl.DataFrame({"unit": records["unit"], **columns})


def _similarity_of_run(records: pl.DataFrame, options: OpenMiouOptions) -> NDArray[np.float64]:
    """(K, K) the similarity that the options choose, of the labels that the records use."""
    cells = cells_of(records)
    used = np.zeros(cells.labels + 1, np.bool_)
    used[cells.cell // (cells.labels + 1)] = True
    used[cells.cell % (cells.labels + 1)] = True
    return similarity_in_use(label_names(records), used[:-1], options.labels, options)


def _tallies(
    records: pl.DataFrame, similarity: NDArray[np.float64], names: list[str], options: OpenMiouOptions
) -> list[SoftTally]:
    kinds = kinds_of(names, options.labels, options)
    sets = read_class_sets(options.class_sets, names) if options.class_sets else {}
    groups = [({"kind": name}, mask) for name, mask in kinds.items()] if len(kinds) > 1 else []
    groups += [({"classes": name}, mask) for name, mask in sets.items()]
    tallies = [_tally(records, similarity, names, options, groups, {})]
    for context in sorted(set(records["context"]) - {""}):
        inside = records.filter((records["context"] == context).to_numpy())
        tallies.append(_tally(inside, similarity, names, options, [], {"context": context}))
    return tallies


def _tally(
    records: pl.DataFrame,
    similarity: NDArray[np.float64],
    names: list[str],
    options: OpenMiouOptions,
    groups: Groups,
    where: dict[str, str],
) -> SoftTally:
    cells, classes, over = cells_of(records), len(names), mean_over(options)
    sets = [where for where, _ in groups if "classes" in where]
    hard = image_counts(records).astype(np.float64)
    soft = soft_counts_by_image(cells.image, cells.cell, cells.pixels, similarity, images=cells.images)

    def statistic(totals: NDArray[np.float64]) -> NDArray[np.float64]:
        both = totals.reshape(len(totals), 2, 3, classes)
        overall = [
            metric.mean_iou(both, over),
            metric.pixel_accuracy(both),
            metric.mean_class_accuracy(both),
            metric.frequency_weighted_iou(both),
        ]
        table = np.stack(overall, -1)  # (m, 2, 4): vanilla, then open
        columns = [table[:, 0], table[:, 1], table[:, 1, :1] - table[:, 0, :1]]
        columns += [metric.mean_iou(both[..., mask], over) for _, mask in groups]
        if len(sets) == 2:
            columns.append(harmonic_mean(columns[-2], columns[-1]))
        per_class = metric.class_iou(both)
        return np.concatenate([*columns, per_class[:, 0], per_class[:, 1]], axis=-1)

    reading, n = f"mean-over={over}", len(hard)
    entries = []
    for name in (*VANILLA, *(f"open-{name}" for name in VANILLA), "open-gain"):
        mean = name.endswith("miou") or name == "open-gain"
        entries.append(Entry(name, n, where, reading if mean else ""))
    slices = [group for group, _ in groups] + ([{"classes": "harmonic mean"}] if len(sets) == 2 else [])
    entries += [Entry(score, n, {**where, **one}) for one in slices for score in ("miou", "open-miou")]
    present = (hard[:, 1:].sum(1) > 0).sum(0)
    for score in ("iou", "open-iou"):
        entries += [Entry(score, int(n), {**where, "class": name}) for name, n in zip(names, present, strict=True)]
    sums = np.stack([hard, soft], axis=1).reshape(len(hard), -1)
    return SoftTally(tuple(entries), sums, statistic, ("open-miou", "bootstrap", *where.values()), "image")


def _by_measure(records: pl.DataFrame, names: list[str], options: OpenMiouOptions) -> list[Score]:
    """Open mIoU under every measure that needs nothing but the package: what the choice does, at no cost."""
    confusion, over = confusion_of(records), mean_over(options)
    return [
        Score(
            "open-miou",
            float(metric.mean_iou(soft_counts(confusion, matrix), over)),
            len(records),
            slice={"measure": measure},
        )
        for measure, matrix in free_similarities(names, options.labels, options).items()
    ]


def _costs(records: pl.DataFrame, similarity: NDArray[np.float64], names: list[str]) -> list[Score]:
    """The dearest confusions, as scores in slices: pixels confused, and the part of them that is not forgiven."""
    costs = confusion_costs(confusion_of(records), similarity, most=MOST_CONFUSIONS)
    called = [*names, NO_LABEL]
    scores = []
    for true, other, hard, soft in zip(costs.true, costs.called, costs.hard, costs.soft, strict=True):
        where = {"true": names[true], "called": called[other]}
        scores.append(Score("confused-pixels", float(hard), len(records), slice=where))
        scores.append(Score("unforgiven-pixels", float(soft), len(records), slice=where))
    return scores
