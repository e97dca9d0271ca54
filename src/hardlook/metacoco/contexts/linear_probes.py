"""Linear probes: how well concept and context can be read from frozen vectors.

Three questions: is the context in the vectors, is the concept, and is the concept still read in a context in which it
was not seen in training, while other concepts were? The fall from the second to the third is the effect of context.

A probe is a ridge classifier on columns standardised over the training rows, with targets +1 and -1 per class; the
penalty is chosen by leaving one out. Everything is closed-form and needs no seed.

>>> rng = np.random.default_rng(0)
>>> labels = np.arange(90) % 3
>>> vectors = np.eye(3)[labels] + 0.1 * rng.standard_normal((90, 3))
>>> float((cross_val_predict(vectors, labels, np.arange(90) // 30) == labels).mean())
1.0
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardlook.harness.stats import Estimate, Interval, bootstrap_score
from hardlook.randomness import generator

Floats = NDArray[np.float64]
PENALTIES = tuple(float(10.0**power) for power in range(-2, 6))
FOLDS = 5
RESAMPLES = 2000


@dataclass(frozen=True)
class ProbeResult:
    """The accuracy of a probe: the mean over labels of the share of their images that are read right, in [0, 1].

    `chance` is that of guessing, 1 / labels. `images` were tested; `left_out` were not, since their label has a single
    image (or, in unseen contexts, a single context).
    """

    what: str
    accuracy: Estimate
    chance: float
    labels: int
    images: int
    left_out: int

    @property
    def above_chance(self) -> float:
        """0 for guessing, 1 for all right."""
        return (self.accuracy.value - self.chance) / (1 - self.chance)


def probe_labels(
    vectors: ArrayLike, concept: ArrayLike, context: ArrayLike, *, seed: int, folds: int = FOLDS
) -> tuple[ProbeResult, ...]:
    """Probe vectors (n, D) for the context, the concept, and the concept in unseen contexts; labels are (n,).

    >>> rng = np.random.default_rng(0)
    >>> concept, context = np.arange(120) % 3, np.arange(120) % 4
    >>> vectors = np.eye(3)[concept] + 0.1 * rng.standard_normal((120, 3))
    >>> for one in probe_labels(vectors, concept, context, seed=0):
    ...     one.what, round(one.accuracy.value, 1) == 1, one.chance
    ('context', False, 0.25)
    ('concept', True, 0.333...)
    ('concept in unseen contexts', True, 0.333...)
    """
    x, concepts, contexts = np.asarray(vectors, np.float64), np.asarray(concept), np.asarray(context)
    probes = (
        ("context", contexts, assign_image_folds(contexts, folds, generator(seed, "probe", "context"))),
        ("concept", concepts, assign_image_folds(concepts, folds, generator(seed, "probe", "concept"))),
        (
            "concept in unseen contexts",
            concepts,
            assign_cell_folds(concepts, contexts, folds, generator(seed, "probe", "unseen")),
        ),
    )
    return tuple(_probe(what, x, labels, numbers, seed) for what, labels, numbers in probes)


def assign_image_folds(labels: ArrayLike, folds: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """(n,) one fold per image, each label's images spread evenly; -1 for the image of a label that has one.

    >>> np.bincount(assign_image_folds([0] * 10 + [1] * 5, 5, np.random.default_rng(0))).tolist()
    [3, 3, 3, 3, 3]
    """
    truth = np.asarray(labels)
    numbers = np.full(len(truth), -1, np.int64)
    for kind in np.unique(truth):
        rows = np.flatnonzero(truth == kind)
        if len(rows) > 1:
            numbers[rng.permutation(rows)] = (np.arange(len(rows)) + int(rng.integers(folds))) % folds
    return numbers


def assign_cell_folds(
    concept: ArrayLike, context: ArrayLike, folds: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """(n,) one fold per image, the same for all images of a concept in a context; -1 for concepts of one context.

    >>> assign_cell_folds(["cat"] * 4 + ["dog"], list("aabbc"), 2, np.random.default_rng(0)).tolist() in (
    ...     [0, 0, 1, 1, -1], [1, 1, 0, 0, -1])
    True
    """
    concepts, contexts = np.asarray(concept), np.asarray(context)
    numbers = np.full(len(concepts), -1, np.int64)
    for kind in np.unique(concepts):
        places = np.unique(contexts[concepts == kind])
        if len(places) > 1:
            start = int(rng.integers(folds))
            for step, place in enumerate(rng.permutation(places)):
                numbers[(concepts == kind) & (contexts == place)] = (start + step) % folds
    return numbers


def _probe(what: str, vectors: Floats, labels: NDArray[np.generic], folds: NDArray[np.int64], seed: int) -> ProbeResult:
    tested = folds >= 0
    truth, kinds = labels[tested], len(np.unique(labels))
    if kinds < 2 or not len(truth):
        interval = Interval(math.nan, math.nan, 0.95, "percentile", len(truth), "image within label")
        accuracy = Estimate(math.nan, interval, math.nan, 0, 0)
    else:
        hits = (cross_val_predict(vectors, labels, folds)[tested] == truth).astype(np.float64)
        accuracy = average_over_labels(hits, truth, generator(seed, "mean over labels"))
    return ProbeResult(what, accuracy, 1 / max(kinds, 1), kinds, len(truth), int((~tested).sum()))


def average_over_labels(
    values: Floats, labels: Sequence[str] | NDArray[np.generic], rng: np.random.Generator, lowest: float = 0.0
) -> Estimate:
    """The mean over labels of each label's mean of `values` (n,), in [`lowest`, 1], with images drawn within labels."""
    _, codes, counts = np.unique(np.asarray(labels), return_inverse=True, return_counts=True)
    # With strata of fixed sizes the mean of means is one weighted sum.
    return bootstrap_score(
        (values / counts[codes] / len(counts))[:, None],
        lambda totals: totals[..., 0],
        rng=rng,
        strata=codes,
        resamples=RESAMPLES,
        range=(lowest, 1.0),
        resampled="image within label",
    )


def cross_val_predict(vectors: ArrayLike, labels: ArrayLike, folds: ArrayLike) -> NDArray[np.generic]:
    """Labels (n,) predicted for every row by a probe of the other folds; rows of fold -1 are always trained on.

    `folds` (n,) are whole numbers from -1; those rows keep their label. A fold's complement needs two kinds of labels.
    """
    x, truth, numbers = np.asarray(vectors), np.asarray(labels), np.asarray(folds)
    predicted = truth.copy()
    for fold in np.unique(numbers[numbers >= 0]):
        held_out = numbers == fold
        predicted[held_out] = fit_and_predict(x[~held_out], truth[~held_out], x[held_out])
    return np.asarray(predicted)


def fit_and_predict(
    vectors: ArrayLike, labels: ArrayLike, others: ArrayLike, penalties: tuple[float, ...] = PENALTIES
) -> NDArray[np.generic]:
    """Labels (m,) for `others` (m, D), from `vectors` (n, D) with `labels` (n,) of two or more kinds.

    The penalty with the least squared leave-one-out error over all classes is taken; a tie goes to the smaller one.
    """
    x, new = np.asarray(vectors, np.float64), np.asarray(others, np.float64)
    kinds, codes = np.unique(np.asarray(labels), return_inverse=True)
    if len(kinds) < 2 or x.ndim != 2 or len(x) != len(codes):
        raise ValueError(f"labels: expected two or more kinds for {x.shape} vectors, got {len(kinds)} in {len(codes)}")
    centre, scale = x.mean(0), x.std(0)
    # A column that rounding alone makes vary must not be blown up to full size.
    scale = np.where(scale > 1e-9 * np.abs(x).max(0, initial=0), scale, 1.0)
    x, new = (x - centre) / scale, (new - centre) / scale
    targets = np.where(codes[:, None] == np.arange(len(kinds)), 1.0, -1.0)
    offset = targets.mean(0)
    basis, squares = _left_basis(x)
    along = basis.T @ (targets - offset)
    errors = [_leave_one_out(basis, squares, along, targets - offset, penalty) for penalty in penalties]
    weights = x.T @ (basis @ (along / (squares + penalties[int(np.argmin(errors))])[:, None]))
    return np.asarray(kinds[np.argmax(new @ weights + offset, axis=1)])


def _left_basis(x: Floats) -> tuple[Floats, Floats]:
    """Left singular vectors (n, r) and squared singular values (r,), from the smaller of the two Gram matrices."""
    rows, columns = x.shape
    squares, vectors = np.linalg.eigh(x @ x.T if rows <= columns else x.T @ x)
    kept = squares > squares.max(initial=0.0) * max(rows, columns) * np.finfo(np.float64).eps
    squares, vectors = squares[kept], vectors[:, kept]
    return (vectors if rows <= columns else x @ vectors / np.sqrt(squares)), squares


def _leave_one_out(basis: Floats, squares: Floats, along: Floats, targets: Floats, penalty: float) -> float:
    """Mean squared error of leaving one out: residuals over one minus leverage, without refitting."""
    shrunk = squares / (squares + penalty)
    residuals = targets - basis @ (shrunk[:, None] * along)
    leverage = (basis**2) @ shrunk + 1 / len(basis)  # 1 / n is the intercept's
    return float(np.mean((residuals / np.maximum(1 - leverage, 1e-12)[:, None]) ** 2))
