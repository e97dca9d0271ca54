"""Class negative bias: the IoU of each class beside how often it was background in training.

The IoU of a class is the sum of intersections over the sum of unions of its pairs, the mean over seeds. Pairs are those
of tier 1, or those of the support study with the right support, which has equally many of each class. Query images are
resampled, the same for all trainings, so that differences are paired; seeds add their own variance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.data.untrained_images import read_excluded
from hardlook.harness.stats import pearson, spearman
from hardlook.randomness import generator
from hardlook.toss.bias.negatives import measure_distractor_shares
from hardlook.toss.bias.training_images import assign_folds, open_images, split_of_fold

RESAMPLES = 2000
Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ClassScores:
    """IoU of C classes by S seeds: `values` (S, C), and `resampled` (R, C) means over seeds of R draws of images.

    `queries` (C,) counts the images of each class.
    """

    names: tuple[str, ...]
    values: Values
    resampled: Values
    queries: tuple[int, ...]


def score_classes(seeds: Sequence[Any], *, resamples: int = RESAMPLES) -> ClassScores:
    """The IoU of the classes in runs of TOSS or of bias-support, one for each seed; equal queries give equal draws."""
    import polars as pl

    counted = []
    for run in seeds:
        right = pl.col("tier") == 1 if "tier" in run.records.columns else pl.col("condition") == "correct"
        own = run.records.filter(right)
        union = pl.col("predicted") + pl.col("truth") - pl.col("intersection") - pl.col("predicted_void")
        sums = own.group_by("class", "query").agg(pl.col("intersection").sum(), union.sum().alias("union"))
        counted.append(sums.sort("class", "query"))
    names = tuple(sorted(set(counted[0]["class"])))
    values, drawn = np.empty((len(seeds), len(names))), np.zeros((resamples, len(names)))
    for place, name in enumerate(names):
        for row, sums in enumerate(counted):
            own = sums.filter(pl.col("class") == name)
            pixels = own.select("intersection", "union").to_numpy().astype(np.float64)
            values[row, place] = pixels[:, 0].sum() / pixels[:, 1].sum()
            picks = generator(0, "queries of a class", name).integers(0, len(pixels), (resamples, len(pixels)))
            summed = pixels[picks].sum(1)
            drawn[:, place] += summed[:, 0] / np.maximum(summed[:, 1], 1) / len(seeds)
    queries = tuple(int((counted[0]["class"] == name).sum()) for name in names)
    return ClassScores(names, values, drawn, queries)


def estimate(values: Values, resampled: Values) -> dict[str, float]:
    """A mean over seeds (S,) with an interval of 95 %: variance of the resampled means (R,), and that of seeds.

    `smallest` is the least effect that would be found four times in five.

    >>> found = estimate(np.array([0.2, 0.4]), np.array([0.25, 0.35]))
    >>> round(found["value"], 3), round(found["smallest"], 3)
    (0.3, 0.343)
    """
    between = float(values.var(ddof=1)) / len(values) if len(values) > 1 else 0.0
    error = math.sqrt(float(np.var(resampled, ddof=1)) + between)
    value = float(values.mean())
    return {"value": value, "low": value - 1.96 * error, "high": value + 1.96 * error, "smallest": 2.8 * error}


def measure_shares(train: Path, test: Path, classes: Sequence[str], folds: int) -> dict[str, dict[str, float]]:
    """Of every class: its share of the training images of its fold in which it is background, by both readings."""
    opened = open_images({"voc": train}, None, None)
    excluded = read_excluded(test)
    images = [one.classes for one in opened.images if one.image not in excluded]
    order = tuple(opened.source.classes)
    fold_of = assign_folds(order, folds)
    training = {name: split_of_fold(order, fold_of[name], folds).training for name in classes}
    found = measure_distractor_shares(images, training)
    return {
        name: {"fold": fold_of[name], "share_of_images": one.paper.value, "share_of_masks": one.released.value}
        for name, one in found.items()
    }


def list_classes(
    scored: Mapping[str, ClassScores], shares: Mapping[str, Mapping[str, float]], base: str = "all"
) -> list[dict[str, Any]]:
    """A row per class: shares, IoU of each training, and paired differences from that on all images."""
    rows = []
    for place, name in enumerate(scored[base].names):
        row: dict[str, Any] = {"class": name, **shares[name], "queries": scored[base].queries[place]}
        for selection, one in scored.items():
            found = estimate(one.values[:, place], one.resampled[:, place])
            row |= {f"{selection}_{key}": found[key] for key in ("value", "low", "high")}
        for selection in (other for other in scored if other != base):
            found = compare(scored[selection], scored[base], [place])
            row |= {f"{selection}_less_{base}_{key}": found[key] for key in ("value", "low", "high")}
        rows.append(row)
    return rows


def compare(first: ClassScores, second: ClassScores, places: Sequence[int]) -> dict[str, float]:
    """The paired difference of the mean over some classes, with its interval and the smallest effect."""
    chosen = list(places)
    seeds = min(len(first.values), len(second.values))
    by_seed = (first.values[:seeds] - second.values[:seeds])[:, chosen].mean(1)
    return estimate(by_seed, (first.resampled - second.resampled)[:, chosen].mean(1))


def list_class_means(
    scored: Mapping[str, ClassScores], shares: Mapping[str, Mapping[str, float]], base: str = "all"
) -> list[dict[str, Any]]:
    """What each selection changes in the mean over classes: all, the one that is background most often, the others."""
    names = scored[base].names
    most = max(range(len(names)), key=lambda place: shares[names[place]]["share_of_masks"])
    groups = {"all": range(len(names)), names[most]: [most], f"all but {names[most]}": {*range(len(names))} - {most}}
    return [
        {"selection": name, "less": base, "classes": group, **compare(one, scored[base], sorted(places))}
        for name, one in scored.items()
        if name != base
        for group, places in groups.items()
    ]


def list_associations(
    scored: Mapping[str, ClassScores],
    shares: Mapping[str, Mapping[str, float]],
    base: str = "all",
    *,
    untrained: ClassScores | None = None,
) -> list[dict[str, Any]]:
    """Correlation over classes of the share as background with IoU and with what each selection changes.

    `untrained` are scores of a model without training: no class was background to it.

    The p-value is that of 10,000 permutations of the classes, two-sided, of Spearman's.
    """
    share = np.array([shares[name]["share_of_masks"] for name in scored[base].names])
    measured = {base: scored[base].values.mean(0)}
    if untrained is not None:
        measured["a model without training"] = untrained.values.mean(0)
        measured[f"{base} less that model"] = measured[base] - untrained.values.mean(0)
    for selection in (other for other in scored if other != base):
        measured[f"{selection} less {base}"] = scored[selection].values.mean(0) - measured[base]
    rows = []
    for name, values in measured.items():
        rank = spearman(share, values)
        rng = generator(0, "permuted classes", name)
        swapped = np.array([spearman(share, rng.permutation(values)) for _ in range(10_000)])
        p_value = (1 + (np.abs(swapped) >= abs(rank) - 1e-12).sum()) / (1 + len(swapped))
        rows.append(
            {"iou_of": name, "classes": len(values), "spearman": rank, "pearson": pearson(share, values), "p": p_value}
        )
    return rows
