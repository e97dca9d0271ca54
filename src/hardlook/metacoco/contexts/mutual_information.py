"""Mutual information of concept and context labels, normalised and adjusted: how well one predicts the other.

Normalised mutual information is 0 where context says nothing about the concept. It grows by chance where images are few
and labels many. The adjusted one subtracts chance, so that 0 means chance, and is the index to compare datasets by:
Vinh, Epps and Bailey, "Information theoretic measures for clusterings comparison", JMLR 2010. Both divide by the mean
of the two entropies, so 1 needs one context per concept and one concept per context.

Mutual information grows when images repeat, as they do in a bootstrap. Intervals therefore come from the delete-half
jackknife (J. Shao and C. F. J. Wu, 1989): random halves of the images are left out, and the spread of the halves is the
standard error of the whole.

>>> study = study_labels(["cat", "dog"] * 20, ["snow", "fog"] * 20, seed=0)
>>> study.images, round(study.adjusted.value, 3)
(40, 1.0)
>>> concept, context = [0, 0, 1, 1, 2, 2], [0, 1] * 3
>>> round(normalised_mutual_information(concept, context), 6), adjusted_mutual_information(concept, context) < 0
(0.0, True)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardlook.errors import DataError
from hardlook.harness.stats import Estimate, Interval
from hardlook.randomness import generator

HALVES = 200
LEVEL = 0.95


@dataclass(frozen=True)
class LabelStudy:
    """The result of `study_labels`: mutual information in nats, its mean by chance, and the two indices.

    `normalised` in [0, 1] grows by chance; `adjusted` is 0 at chance, at most 1; `empty` counts pairs without an image.
    """

    images: int
    concepts: int
    contexts: int
    empty: int
    information: float
    chance: float
    normalised: Estimate
    adjusted: Estimate


def study_labels(concepts: Sequence[str], contexts: Sequence[str], *, seed: int) -> LabelStudy:
    """Measure how far the contexts of images predict their concepts, from one concept and one context per image."""
    table = contingency_table(concepts, contexts)
    if min(table.shape) < 2:
        what = f"{table.shape[0]} concepts and {table.shape[1]} contexts leave nothing to compare"
        raise DataError(what, remedy="two of each are needed; give another split, or none")
    rows, columns = np.array(concepts), np.array(contexts)
    return LabelStudy(
        images=int(table.sum()),
        concepts=table.shape[0],
        contexts=table.shape[1],
        empty=int((table == 0).sum()),
        information=mutual_information(table),
        chance=expected_mutual_information(table.sum(1), table.sum(0)),
        normalised=delete_half_jackknife(
            len(rows),
            lambda kept: normalised_mutual_information(rows[kept], columns[kept]),
            rng=generator(seed, "spuriousness", "normalised"),
            bounds=(0, 1),
        ),
        adjusted=delete_half_jackknife(
            len(rows),
            lambda kept: adjusted_mutual_information(rows[kept], columns[kept]),
            rng=generator(seed, "spuriousness", "adjusted"),
            bounds=(-1, 1),
        ),
    )


def contingency_table(concept: ArrayLike, context: ArrayLike) -> NDArray[np.int64]:
    """(concepts, contexts) counts of images; rows and columns are the labels that occur, of any type, sorted.

    >>> contingency_table(["cat", "cat", "dog"], ["snow", "fog", "fog"]).tolist()
    [[1, 1], [1, 0]]
    """
    rows, columns = np.asarray(concept), np.asarray(context)
    if rows.shape != columns.shape or rows.ndim != 1:
        raise ValueError(f"concept and context: expected two lists of one length, got {rows.shape} and {columns.shape}")
    _, i = np.unique(rows, return_inverse=True)
    _, j = np.unique(columns, return_inverse=True)
    shape = (int(i.max(initial=-1)) + 1, int(j.max(initial=-1)) + 1)
    return np.bincount(i * shape[1] + j, minlength=shape[0] * shape[1]).reshape(shape)


def mutual_information(table: NDArray[np.int64]) -> float:
    """Mutual information of rows and columns of a table of counts, in nats, at least 0.

    >>> round(mutual_information(np.array([[5, 0], [0, 5]])), 6)  # ln 2
    0.693147
    """
    n = table.sum()
    if not n:
        return 0.0
    expected = np.outer(table.sum(1), table.sum(0)) / n
    filled = table > 0
    return max(0.0, float((table[filled] * np.log(table[filled] / expected[filled])).sum() / n))


def normalised_mutual_information(concept: ArrayLike, context: ArrayLike) -> float:
    """Mutual information over the mean of both entropies, in [0, 1]; 0 where there is one concept or one context."""
    table = contingency_table(concept, context)
    entropy = _mean_entropy(table)
    return mutual_information(table) / entropy if entropy > 0 and min(table.shape) > 1 else 0.0


def adjusted_mutual_information(concept: ArrayLike, context: ArrayLike) -> float:
    """Mutual information above chance over its maximum above chance: 0 is chance, 1 the maximum.

    Chance is the mean over all assignments of the same contexts to the same concepts. NaN where it is undefined: one
    concept, one context, or as many of both as images.
    """
    table = contingency_table(concept, context)
    n = int(table.sum())
    if n == 0 or min(table.shape) == 1 or table.shape == (n, n):
        return float("nan")
    chance = expected_mutual_information(table.sum(1), table.sum(0))
    maximum = _mean_entropy(table) - chance
    # With hardly more images than labels chance can reach the entropies: rounding must not decide the sign.
    return (mutual_information(table) - chance) / maximum if maximum > 1e-12 else float("nan")


def expected_mutual_information(rows: ArrayLike, columns: ArrayLike) -> float:
    """Mean mutual information, in nats, of all tables with these row sums (R,) and column sums (C,).

    Each cell has a hypergeometric distribution. Values further than 12 standard deviations plus 30 from its mean are
    left out: they add less than the rounding error. 100 x 155 cells of 175,000 images take a tenth of a second.

    >>> round(expected_mutual_information([1, 1], [1, 1]), 6)  # both tables are ln 2
    0.693147
    """
    from scipy.special import gammaln

    a, b = np.asarray(rows, np.int64), np.asarray(columns, np.int64)
    n = int(a.sum())
    if n == 0 or n != b.sum():
        raise ValueError(f"sums: expected equal totals above 0, got {a.sum()} and {b.sum()}")
    logs = gammaln(np.arange(n + 2) + 1.0)
    mean = np.outer(a, b) / n
    spread = np.sqrt(mean * (1 - a[:, None] / n) * (1 - b[None] / n))
    least = np.maximum(np.maximum(1, a[:, None] + b[None] - n), np.floor(mean - 12 * spread - 30).astype(np.int64))
    most = np.minimum(np.minimum(a[:, None], b[None]), np.ceil(mean + 12 * spread + 30).astype(np.int64))
    total = 0.0
    for i, size in enumerate(a):
        k = least[i][:, None] + np.arange(int((most[i] - least[i]).max(initial=-1)) + 1)
        inside = k <= most[i][:, None]
        k = np.where(inside, k, least[i][:, None].clip(0, most[i][:, None]))
        other = b[:, None]
        probability = np.exp(
            logs[size] + logs[n - size] + logs[other] + logs[n - other] - logs[n]
            - logs[k] - logs[size - k] - logs[other - k] - logs[(n - size - other + k).clip(0)]
        )  # fmt: skip
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = k / n * np.log(n * k / (float(size) * other)) * probability
        total += float(terms[inside].sum())
    return total


def _mean_entropy(table: NDArray[np.int64]) -> float:
    n = table.sum()
    entropies = [-float((p * np.log(p)).sum()) for sums in (table.sum(1), table.sum(0)) for p in [sums[sums > 0] / n]]
    return sum(entropies) / 2


def delete_half_jackknife(
    count: int,
    statistic: Callable[[NDArray[np.int64]], float],
    *,
    rng: np.random.Generator,
    halves: int = HALVES,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> Estimate:
    """The statistic of all `count` images with a normal 95 % interval by the delete-half jackknife, cut at `bounds`.

    `statistic` maps row numbers (m,), ascending, to a number, NaN where undefined. The bounds are NaN if there are
    fewer than 4 images, or if the statistic is defined for fewer than 2 of the `halves` random halves.

    >>> labels = np.arange(400) % 2
    >>> share = delete_half_jackknife(400, lambda kept: float(labels[kept].mean()), rng=np.random.default_rng(0))
    >>> share.value, 0.4 < share.interval.low < 0.5 < share.interval.high < 0.6
    (0.5, True)
    """
    from scipy.special import ndtri

    value = statistic(np.arange(count))
    kept = count // 2
    drawn = [statistic(np.sort(rng.permutation(count)[:kept])) for _ in range(halves if count >= 4 else 0)]
    defined = [one for one in drawn if math.isfinite(one)]
    error = float(np.std(defined, ddof=1)) * math.sqrt(kept / (count - kept)) if len(defined) > 1 else math.nan
    reach = float(ndtri((1 + LEVEL) / 2)) * error
    low, high = (max(bounds[0], value - reach), min(bounds[1], value + reach)) if error == error else (error, error)
    interval = Interval(low, high, LEVEL, "delete-half jackknife", count, "image")
    return Estimate(value, interval, error, len(drawn), len(drawn) - len(defined))
