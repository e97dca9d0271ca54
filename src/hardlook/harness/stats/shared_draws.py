"""Means over tasks that are drawn from one pool of images: how much the draw of the images adds to their variance.

An interval over tasks covers the draw of the tasks from this pool. Other images would have given other tasks: two tasks
that share an image are correlated, and the variance of the mean has a part for every such pair. It is estimated as in
cluster-robust standard errors, from the products of what an image contributes to the error in each of its tasks (A. C.
Cameron, J. B. Gelbach and D. L. Miller, "Robust Inference with Multiway Clustering", Journal of Business & Economic
Statistics 29 (2011)).

>>> shared = ImageShares(np.array([0, 0, 1, 1]), np.array([7, 8, 7, 9]), np.array([[0.2], [-0.1], [0.2], [0.0]]))
>>> apart = ImageShares(np.array([0, 0, 1, 1]), np.array([7, 8, 5, 9]), np.array([[0.2], [-0.1], [0.2], [0.0]]))
>>> shared.measure()[0] > 0, apart.measure()[0]  # image 7 is in both tasks
(True, 0.0)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Numbers = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ImageShares:
    """What each image contributes to the error of a mean in each task: `task` and `image` (m,), `share` (m, k).

    The error is the mean's, so shares are small where there are many tasks. The k columns are different accounts of the
    same; the variance is the largest that one of them gives. `groups` counts the classes whose means were taken off.
    """

    task: Codes
    image: Codes
    share: Numbers
    groups: int = 1

    def minus(self, other: ImageShares) -> ImageShares:
        """The shares of the difference of two means over the same tasks, such as those of two models."""
        return ImageShares(
            np.concatenate([self.task, other.task]),
            np.concatenate([self.image, other.image]),
            np.concatenate([self.share, -other.share]),
            max(self.groups, other.groups),
        )

    def measure(self) -> tuple[float, float]:
        """The variance that shared images add, at least 0, and its degrees of freedom.

        These are as many as the images would have if all contributed alike: few images that matter say little.
        """
        found = [self._measure(column) for column in self.share.T] if len(self.share) else []
        return max(found, default=(0.0, 1.0))

    def _measure(self, shares: Numbers) -> tuple[float, float]:
        image = np.unique(self.image, return_inverse=True)[1]
        task = np.unique(self.task, return_inverse=True)[1]
        tasks = int(task.max()) + 1
        cells, cell = np.unique(image * tasks + task, return_inverse=True)
        share, owner = np.bincount(cell, weights=shares), cells // tasks
        sums, squares, counts = np.bincount(owner, weights=share), float((share**2).sum()), np.bincount(owner)
        # The errors of a class sum to 0, so that two of them are negatively correlated, and images are of one class.
        pairs = float((counts.astype(np.float64) ** 2).sum()) - len(share)
        correction = pairs * squares * self.groups / len(share) ** 2
        square = sums**2
        freedom = float(square.sum()) ** 2 / max(float((square**2).sum()), 1e-300)
        return max(float(square.sum()) - squares + correction, 0.0), max(freedom, 1.0)


def share_out_errors(right: ArrayLike, classes: Codes, support: Codes, query: Codes) -> ImageShares:
    """The shares of a mean accuracy over T tasks of W classes, S supports and Q queries of each.

    `right` (T, W, Q) is 1 for a right answer; `classes` (T, W), `support` (T, W, S) and `query` (T, W, Q) are numbers
    of classes and images. A query contributes its answer, less the mean of its class; a support the errors of all
    answers of the task, and by another account those of its own class.
    """
    answers = np.asarray(right, np.float64)
    tasks, ways, queries = answers.shape
    counts = np.bincount(classes.ravel())
    means = np.bincount(classes.ravel(), weights=answers.mean(axis=2).ravel()) / np.maximum(counts, 1)
    error = (answers - means[classes][:, :, None]) / (tasks * ways * queries)
    whole, own = error.sum(axis=(1, 2))[:, None, None], error.sum(axis=2)[:, :, None]
    by_support = np.stack(np.broadcast_arrays(whole, own, support)[:2], axis=-1).reshape(-1, 2)
    number = np.arange(tasks)[:, None, None]
    task = np.concatenate([np.broadcast_to(number, one.shape).ravel() for one in (query, support)])
    share = np.concatenate([np.repeat(error.ravel()[:, None], 2, axis=1), by_support])
    return ImageShares(task, np.concatenate([query.ravel(), support.ravel()]), share, int((counts > 0).sum()))
