"""Class negative bias: what it costs a one-shot target to have stood as background in training.

The drop of a class is the mean, over its images, of a supervised model's IoU minus the one-shot IoU. Both are IoU of
one image, so like is taken from like; an image that only one of the two has is not in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hardlook.bias.distractors import DistractorShare
from hardlook.bias.one_shot_answers import OneShotAnswers, class_iou
from hardlook.randomness import generator
from hardlook.stats import Estimate, bootstrap_indices, bootstrap_mean, pearson, spearman

if TYPE_CHECKING:
    import polars as pl

MEAN, POOLED = "mean over images", "pooled over pairs"


@dataclass(frozen=True)
class ClassNegatives:
    """One class: the fold that tests it, how it stands in training, and how well it is found.

    `one_shot` is pooled over the pairs of a run, or the mean over images of a file; `supervised` is the mean over
    images. Each is None where nothing is known of it.
    """

    name: str
    fold: int
    distractors: DistractorShare
    one_shot: Estimate | None = None
    supervised: Estimate | None = None
    drop: Estimate | None = None


@dataclass(frozen=True)
class Association:
    """How two measurements of `n` classes go together; intervals over classes."""

    n: int
    spearman: Estimate
    pearson: Estimate


def class_negatives(
    shares: Mapping[str, DistractorShare],
    folds: Mapping[str, int],
    answers: OneShotAnswers | None,
    attributes: pl.DataFrame | None,
    *,
    seed: int = 0,
    resamples: int = 2000,
) -> list[ClassNegatives]:
    """One row a class, in the order of `shares`.

    `attributes` is a table of `attribute_file`; its column oss_perf stands for the one-shot IoU where there is no run.
    """
    images = _by_image(answers, attributes)
    rows = []
    for name, share in shares.items():
        one, supervised = images.get(name, (np.empty(0), np.empty(0)))
        both = np.isfinite(one) & np.isfinite(supervised)
        if answers is not None and name in set(answers.frame["class"]):
            found: Estimate | None = class_iou(answers, name, generator(seed, "class-iou", name), resamples)
        else:
            found = _mean(one, seed, resamples, "one-shot", name)
        rows.append(
            ClassNegatives(
                name,
                folds[name],
                share,
                found,
                _mean(supervised, seed, resamples, "supervised", name),
                _mean(supervised[both] - one[both], seed, resamples, "drop", name),
            )
        )
    return rows


def associate(
    x: Sequence[float], y: Sequence[float], *, seed: int = 0, key: str = "", resamples: int = 2000
) -> Association:
    """Spearman's and Pearson's correlation of two measurements of classes; classes without one of them are left out.

    The interval resamples classes. With some twenty of them it is wide, and that is the truth about it.

    >>> found = associate([1, 2, 3, 4, float("nan")], [1, 3, 2, 4, 5], resamples=100)
    >>> found.n, found.spearman.value
    (4, 0.8)
    """
    first, second = np.asarray(x, np.float64), np.asarray(y, np.float64)
    known = np.isfinite(first) & np.isfinite(second)
    a, b = first[known], second[known]

    def estimate(measure: str) -> Estimate:
        correlation = spearman if measure == "spearman" else pearson
        return bootstrap_indices(
            len(a),
            lambda rows: correlation(a[rows], b[rows]),
            rng=generator(seed, "association", key),
            resamples=resamples,
            resampled="class",
        )

    return Association(len(a), estimate("spearman"), estimate("pearson"))


def _by_image(
    answers: OneShotAnswers | None, attributes: pl.DataFrame | None
) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Per class the one-shot and the supervised IoU of every image, NaN where one is not known."""
    import polars as pl

    if attributes is None:
        return {}
    table = attributes.select("class", "image", supervised="iou", one_shot="oss_perf")
    if answers is not None:
        found = answers.frame.select("class", "image", one_shot="iou")
        table = table.drop("one_shot").join(found, on=["class", "image"], how="left")
    groups = table.with_columns(pl.col("one_shot", "supervised").fill_null(float("nan"))).partition_by(
        "class", as_dict=True, maintain_order=True
    )
    return {
        str(key[0]): (group["one_shot"].to_numpy(), group["supervised"].to_numpy()) for key, group in groups.items()
    }


def _mean(values: NDArray[np.float64], seed: int, resamples: int, what: str, name: str) -> Estimate | None:
    known = values[np.isfinite(values)]
    if not len(known):
        return None
    return bootstrap_mean(known, rng=generator(seed, what, name), resamples=resamples, resampled="image")
